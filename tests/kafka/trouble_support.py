"""What the tests about trouble have in common: an application that counts, and a broker that may be killed."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pystreams import App, Streams
from pystreams.errors import BrokerError
from tests.kafka.server import KafkaServer
from tests.kafka.support import Cluster
from tests.live.support import TIMEOUT_S, eventually

#: Everything is allowed until a test forbids something.
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@contextmanager
def cluster_on(server: KafkaServer, path: Path) -> Iterator[Cluster]:
    """The cluster of a server that some test before may have left in any state."""
    if not server.running:
        server.start()
    cluster = Cluster(server.bootstrap_servers, path)
    try:
        yield cluster
    finally:
        cluster.close()
        # kafka-python leaves sockets of refused connections to the garbage collector: now, where that is expected.
        gc.collect()


class Counting:
    """An application that counts by key, what is written to it, and what it has to come to."""

    def __init__(self, cluster: Cluster, name: str = "counting", **settings: Any) -> None:
        cluster.create("in", "out", partitions=2)
        self.cluster = cluster
        self.truth: Counter[str] = Counter()
        self.app: App = cluster.app(name, **{"session_timeout_ms": 20_000, **settings})
        counts = self.app.stream("in", key=str, value=int).group_by_key().count(name="counts")
        counts.to_stream().to("out")

    def start(self) -> Streams:
        return self.cluster.start(self.app)

    def write(self, count: int) -> None:
        records = [(f"k{i % 7}", i, i + 1) for i in range(count)]
        self.cluster.write("in", records)
        self.truth.update(key for key, _, _ in records)

    def check(self, streams: Streams, timeout_s: float = TIMEOUT_S) -> None:
        """The application catches up by itself, and nothing is lost."""
        eventually(lambda: streams.finished or is_caught_up(streams), "caught up", timeout_s)
        if streams.failure is not None:
            raise streams.failure
        found = self.cluster.table("out")
        assert found.keys() == self.truth.keys()
        assert all(found[key] >= self.truth[key] for key in self.truth), (found, self.truth)


def is_caught_up(streams: Streams) -> bool:
    try:
        return bool(streams.caught_up())
    except BrokerError:
        return False  # not answering yet


def failure_of(streams: Streams, timeout_s: float = TIMEOUT_S) -> BaseException:
    """What an application ends with."""
    eventually(lambda: streams.finished, "the application ends", timeout_s)
    assert streams.failure is not None
    return streams.failure
