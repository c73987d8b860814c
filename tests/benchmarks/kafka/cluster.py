"""The broker of a bench, started for it with the memory that Kafka's own script gives it, or one that is there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.benchmarks.kafka.offsets import Offsets
from tests.kafka.server import KafkaServer

PARTITIONS = 4

#: What kafka-server-start.sh gives a broker.
_JVM_OPTIONS = ("-Xmx1g", "-Xms1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
_TIMEOUT_S = 30.0


class Cluster:
    """Topics and groups of the broker at ``bootstrap_servers``. ``broker_pids`` are known if we started it."""

    def __init__(self, bootstrap_servers: str, broker_pids: Sequence[int] = ()) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.broker_pids = broker_pids
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 2})

    def create(self, *topics: str) -> None:
        """Make topics that keep what they get; one of that name that is left from before is deleted."""
        self.delete(lambda name: name in topics)
        made = [NewTopic(topic, PARTITIONS, 1, config={"retention.ms": "-1"}) for topic in topics]
        for future in self._admin.create_topics(made).values():
            future.result(_TIMEOUT_S)
        self._wait(lambda names: names >= set(topics))

    def delete(self, chosen: Callable[[str], bool]) -> None:
        """Delete the topics whose name is chosen."""
        names = [name for name in self._names() if chosen(name)]
        for future in self._admin.delete_topics(names).values() if names else ():
            future.result(_TIMEOUT_S)
        self._wait(lambda left: not left & set(names))

    def records(self, topics: Sequence[str]) -> dict[str, int]:
        """How many records each topic holds."""
        with closing(Offsets(self.bootstrap_servers, "bench-reader")) as offsets:
            return offsets.ends(topics)

    def _names(self) -> set[str]:
        return set(self._admin.list_topics(timeout=_TIMEOUT_S).topics)

    def _wait(self, there: Callable[[set[str]], bool]) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        while not there(self._names()):
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"topics are not as they should be after {_TIMEOUT_S:g} s: {self._names()}"
                )
            time.sleep(0.05)


@contextmanager
def cluster(folder: Path, bootstrap_servers: str | None) -> Iterator[Cluster]:
    """The broker at ``bootstrap_servers``, or one of our own with its data below ``folder``, stopped at the end."""
    if bootstrap_servers is not None:
        yield Cluster(bootstrap_servers)
        return
    server = KafkaServer(folder / "broker", jvm_options=_JVM_OPTIONS)
    server.start()
    try:
        yield Cluster(server.bootstrap_servers, [server.pid])
    finally:
        server.stop()
