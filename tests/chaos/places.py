"""Where the application runs: on the embedded log, or on a cluster of Kafka whose brokers are harmed as well."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException

from tests.chaos.worker import EMBEDDED, ON_KAFKA
from tests.kafka.server import JVM_OPTIONS, KafkaServer
from tests.kafka.support import Cluster
from tests.kills.aim import Point
from tests.live.support import Log, freeze

#: Of several brokers: any one of them may be lost.
REPLICATED = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}
#: Two controllers that get too little of a busy machine keep each other for dead after 2 s, and elect again and again:
#: meanwhile no partition gets another leader.
_PATIENT = {"controller.quorum.fetch.timeout.ms": "8000", "controller.quorum.election.timeout.ms": "3000"}
_METADATA_TIMEOUT_S = 5.0
_SMALL = ("-Xmx320m", *JVM_OPTIONS[1:])


class Broker:
    """One of the servers, and since when it is as it is."""

    def __init__(self, server: KafkaServer) -> None:
        self.server = server
        #: When it was last harmed or healed (monotonic), and whether it answers.
        self.changed = time.monotonic()
        self.answers = True

    def kill(self) -> None:
        self._changes(answers=False)
        self.server.kill()

    def start(self) -> None:
        self.server.start()
        self._changes(answers=True)

    def restart(self) -> None:
        """Stop it cleanly and start it again, as an operator would."""
        self._changes(answers=False)
        self.server.stop()
        self.start()

    def freeze(self) -> None:
        self._changes(answers=False)
        freeze(self.server.pid)

    def thaw(self) -> None:
        os.kill(self.server.pid, signal.SIGCONT)
        self._changes(answers=True)

    def was_away_since(self, moment: float) -> bool:
        return not self.answers or self.changed >= moment

    def _changes(self, *, answers: bool) -> None:
        self.changed, self.answers = time.monotonic(), answers


@dataclass(frozen=True)
class Place:
    """A log, the arguments by which processes find it, and moments at which they can be killed."""

    log: Log
    arguments: Sequence[str]
    points: Mapping[str, Point]
    brokers: Sequence[Broker] = ()

    def may_lose_a_broker(self) -> bool:
        """Whether all brokers answer and have all records: then the others can do without any one of them."""
        if not all(broker.answers for broker in self.brokers):
            return False
        if len(self.brokers) == 1:
            return True
        try:
            found = self.log.broker._client.list_topics(timeout=_METADATA_TIMEOUT_S).topics.values()
        except KafkaException:
            return False
        partitions = [partition for topic in found for partition in topic.partitions.values()]
        return all(len(one.isrs) == len(one.replicas) == len(self.brokers) for one in partitions)


@contextmanager
def on_the_embedded_log(folder: Path) -> Iterator[Place]:
    log = Log(folder)
    try:
        yield Place(log, ("--embedded-log", str(folder / "log.db")), EMBEDDED)
    finally:
        log.close()


@contextmanager
def on_kafka(folder: Path, brokers: int = 1) -> Iterator[Place]:
    """A new cluster of one broker or of three."""
    servers = [KafkaServer(folder / "kafka")] if brokers == 1 else _cluster(folder, brokers)
    with ExitStack() as stack:
        for server in servers:
            stack.callback(server.kill)
        # A controller is up when most are.
        starts = [threading.Thread(target=server.start) for server in servers]
        for start in starts:
            start.start()
        for start in starts:
            start.join()
        assert all(server.running for server in servers), f"a broker did not start: {folder}"
        addresses = ",".join(server.bootstrap_servers for server in servers)
        # kafka-python leaves sockets of refused connections to the garbage collector: now, where that is expected.
        stack.callback(gc.collect)
        cluster = Cluster(addresses, folder)
        stack.callback(cluster.close)
        cluster.broker = cluster.broker_with(exactly_once=True)
        yield Place(cluster, _on_kafka(addresses), ON_KAFKA, [Broker(server) for server in servers])


def on_a_shared_kafka(cluster: Cluster) -> Place:
    """On a cluster that others use later: its brokers are left alone."""
    cluster.broker = cluster.broker_with(exactly_once=True)
    return Place(cluster, _on_kafka(cluster.bootstrap_servers), ON_KAFKA)


def _on_kafka(addresses: str) -> tuple[str, ...]:
    return ("--bootstrap-servers", addresses, "-s", "processing_guarantee=exactly_once_v2")


def _cluster(folder: Path, brokers: int) -> list[KafkaServer]:
    """Brokers that are controllers, too, on three machines as it were."""
    cluster_id = uuid.uuid4().hex[:22]
    numbers = range(1, brokers + 1)
    servers = [
        KafkaServer(folder / f"kafka{number}", jvm_options=_SMALL, cluster_id=cluster_id)
        for number in numbers
    ]
    voters = ",".join(
        f"{number}@127.0.0.1:{server.controller_port}"
        for number, server in zip(numbers, servers, strict=True)
    )
    for number, server in zip(numbers, servers, strict=True):
        server.configure(
            {**REPLICATED, **_PATIENT, "node.id": str(number), "controller.quorum.voters": voters}
        )
    return servers
