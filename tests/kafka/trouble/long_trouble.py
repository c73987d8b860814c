"""Outages of a minute, and a cluster of three that loses the broker of the group: ``make trouble``.

Not collected by itself: name the file. It takes about five minutes.
"""

from __future__ import annotations

import gc
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kafka.server import JVM_OPTIONS, KafkaServer
from tests.kafka.support import Cluster, connect
from tests.kafka.trouble_support import Counting
from tests.live.support import caught_up

pytestmark = pytest.mark.filterwarnings(
    # kafka-python leaves sockets of refused connections to the garbage collector.
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::ResourceWarning",
)

NODES = 3
SMALL = ("-Xmx320m", *JVM_OPTIONS[1:])
REPLICATED = {
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "1",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}


@pytest.fixture
def three(server: KafkaServer, tmp_path: Path) -> Iterator[list[KafkaServer]]:
    """Brokers that are controllers, too. (``server`` is asked for because it knows whether Kafka can be had.)"""
    cluster_id = uuid.uuid4().hex[:22]
    nodes = [
        KafkaServer(tmp_path / f"kafka{number}", jvm_options=SMALL, cluster_id=cluster_id)
        for number in range(1, NODES + 1)
    ]
    voters = ",".join(f"{i}@127.0.0.1:{node.controller_port}" for i, node in enumerate(nodes, 1))
    for number, node in enumerate(nodes, 1):
        node.configure({**REPLICATED, "node.id": str(number), "controller.quorum.voters": voters})
    # A controller is up when most are.
    starts = [threading.Thread(target=node.start) for node in nodes]
    for start in starts:
        start.start()
    for start in starts:
        start.join()
    yield nodes
    for node in nodes:
        node.kill()
    gc.collect()


def test_a_broker_that_is_away_for_a_minute_is_survived_with_the_state_kept(
    fragile_server: KafkaServer, fragile: Cluster
):
    counting = Counting(fragile, session_timeout_ms=45_000)
    counting.write(2_000)
    streams = counting.start()
    caught_up(streams)
    counting.write(5_000)
    fragile_server.kill()
    time.sleep(60.0)  # that is what this test is about
    assert streams.failure is None
    fragile_server.start()
    counting.write(2_000)
    counting.check(streams, timeout_s=120)
    assert streams.close(30_000)


def test_an_application_that_is_stopped_while_the_broker_is_away_ends_in_time(
    fragile_server: KafkaServer, fragile: Cluster
):
    counting = Counting(fragile)
    counting.write(1_000)
    streams = counting.start()
    caught_up(streams)
    fragile_server.kill()
    try:
        started = time.monotonic()
        assert streams.close(90_000)
        assert time.monotonic() - started < 60
    finally:
        fragile_server.start()


def test_the_death_of_the_groups_broker_costs_no_membership(three: list[KafkaServer], tmp_path: Path):
    servers = ",".join(node.bootstrap_servers for node in three)
    broker = connect(servers, session_timeout_ms=45_000)
    cluster = Cluster(servers, tmp_path)
    cluster.broker = broker
    counting = Counting(cluster, session_timeout_ms=45_000)
    counting.write(2_000)
    streams = counting.start()
    caught_up(streams)
    (thread,) = streams._threads
    member = thread._rounds.clients.member
    generation = member._coordinator.group_metadata().generation_id
    three[member._connection._node - 1].kill()
    counting.write(2_000)
    counting.check(streams, timeout_s=120)
    assert member._coordinator.group_metadata().generation_id == generation
    assert streams.close(30_000)
    broker.close()
    cluster.close()


def test_brokers_that_are_restarted_one_after_the_other_are_not_noticed(
    three: list[KafkaServer], tmp_path: Path
):
    servers = ",".join(node.bootstrap_servers for node in three)
    cluster = Cluster(servers, tmp_path)
    counting = Counting(cluster, session_timeout_ms=45_000)
    counting.write(2_000)
    cluster.broker = cluster.broker_with(session_timeout_ms=45_000)
    # Its internal topics need all three; it joins its group and restores while the first of them goes down.
    streams = counting.start()
    three[0].stop()
    three[0].start()
    for node in three[1:]:
        counting.write(1_000)
        node.stop()
        counting.write(1_000)
        node.start()
    counting.check(streams, timeout_s=120)
    assert streams.close(30_000)
    cluster.close()
