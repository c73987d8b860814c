"""The broker goes away and comes back, topics vanish: survived, or a clear error."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pystreams.errors import BrokerError, TopicError
from tests.kafka.server import KafkaServer
from tests.kafka.support import Cluster
from tests.live.support import caught_up, eventually

pytestmark = [
    pytest.mark.slow,
    # kafka-python leaves sockets of refused connections to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]


@pytest.fixture
def own_server(server: KafkaServer, tmp_path: Path) -> Iterator[KafkaServer]:
    """One that may be killed. (``server`` is asked for because it knows whether Kafka can be had.)"""
    own = KafkaServer(tmp_path / "kafka")
    own.start()
    yield own
    own.stop()
    gc.collect()


@pytest.fixture
def fragile(own_server: KafkaServer, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(own_server.bootstrap_servers, tmp_path)
    yield cluster
    cluster.close()


def counting(cluster: Cluster):
    app = cluster.app("counting", session_timeout_ms=20_000)
    app.stream("in", key=str, value=int).group_by_key().count(name="counts").to_stream().to("out")
    return app


@pytest.mark.parametrize("away_s", [0.0, 12.0])
def test_a_broker_that_is_killed_and_comes_back_is_survived(
    own_server: KafkaServer, fragile: Cluster, away_s: float
):
    fragile.create("in", "out", partitions=2)
    truth: Counter[str] = Counter()

    def write(count: int) -> None:
        records = [(f"k{i % 7}", i, i + 1) for i in range(count)]
        fragile.write("in", records)
        truth.update(key for key, _, _ in records)

    write(2_000)
    streams = fragile.start(counting(fragile))
    caught_up(streams)
    write(5_000)
    own_server.kill()
    time.sleep(away_s)  # the broker is away for a while: that is what this test is about
    own_server.start()
    write(2_000)
    eventually(lambda: streams.finished or is_caught_up(streams), "caught up", timeout_s=90)
    assert streams.failure is None
    found = fragile.table("out")
    assert found.keys() == truth.keys()
    assert all(found[key] >= truth[key] for key in truth), (found, truth)
    assert streams.close(30_000)


def is_caught_up(streams) -> bool:
    try:
        return bool(streams.caught_up())
    except BrokerError:
        return False  # not answering yet


def test_a_topic_that_is_deleted_under_an_application_is_a_clear_error(cluster: Cluster):
    cluster.create("in", "out", partitions=2)
    cluster.write("in", [("k", 1, 1)])
    streams = cluster.start(counting(cluster))
    caught_up(streams)
    cluster.admin.delete_topics(["in"])
    eventually(lambda: streams.finished, "the application ends", timeout_s=90)
    assert isinstance(streams.failure, TopicError)
    assert "'in'" in str(streams.failure)
