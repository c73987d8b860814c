"""What live tests have in common: a log to write to and read from, clients that end, conditions that come true."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pystreams.app import App
from pystreams.broker.embedded import EmbeddedBroker
from pystreams.broker.port import Broker, CommittedOffset, Consumer, TopicSpec
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS, Headers
from pystreams.runtime.client_state import ClientState
from pystreams.runtime.streams import Streams
from pystreams.serde import serde_for
from tests.linux import fields_of

if TYPE_CHECKING:
    import pytest

#: Beside four busy processes on two cores what takes a second here takes ten. It costs nothing where all is well.
TIMEOUT_S = 240.0

KEPT = {"retention.ms": "-1"}


class Read(NamedTuple):
    """A record of a topic, decoded."""

    key: Any
    value: Any
    timestamp: int


class Line(NamedTuple):
    """A record in bytes."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = NO_HEADERS


class Log:
    """An embedded log below ``path``, and the state directory beside it."""

    broker: Broker

    def __init__(self, path: Path, **settings: Any) -> None:
        self.path = path
        self._stack = ExitStack()
        self.broker = self.broker_with(**settings)
        self.admin = self._stack.enter_context(closing(self.broker.admin()))
        self._producer = self._stack.enter_context(closing(self.broker.producer("test", "test")))

    def close(self) -> None:
        self._stack.close()

    def broker_with(self, **settings: Any) -> Broker:
        """Another connection, closed at the end of the test."""
        return self._stack.enter_context(closing(EmbeddedBroker(self.path / "log.db", **settings)))

    # Topics and records

    def create(self, *names: str, partitions: int = 1, config: Mapping[str, str] = KEPT) -> None:
        self.admin.create_topics([TopicSpec(name, partitions, config) for name in names])

    def write(
        self,
        topic: str,
        records: Iterable[tuple[Any, Any, int]],
        *,
        key: Any = str,
        value: Any = int,
        partition: int | None = None,
    ) -> None:
        """Write (key, value, timestamp) to a topic, durable at the end."""
        write_key, write_value = serde_for(key).serializer(topic), serde_for(value).serializer(topic)
        for k, v, timestamp in records:
            data = None if v is None else write_value(v)
            self._producer.send(topic, partition, None if k is None else write_key(k), data, timestamp, ())
        self._producer.commit({}, None)

    def read(self, topic: str, *, key: Any = str, value: Any = int) -> list[Read]:
        """All records of a topic, partition by partition."""
        read_key, read_value = serde_for(key).deserializer(topic), serde_for(value).deserializer(topic)
        records = []
        for partition in self.partitions(topic):
            for k, v, timestamp, _ in self.lines(partition).values():
                records.append(
                    Read(None if k is None else read_key(k), None if v is None else read_value(v), timestamp)
                )
        return records

    def table(self, topic: str, *, key: Any = str, value: Any = int) -> dict[Any, Any]:
        """The last value of each key."""
        return {record.key: record.value for record in self.read(topic, key=key, value=value)}

    def lines(self, partition: TopicPartition) -> dict[int, Line]:
        """All records of a partition by offset, without those of transactions that were given up."""
        end = self.admin.end_offsets([partition])[partition]
        start = self.admin.beginning_offsets([partition])[partition]
        found: dict[int, Line] = {}
        with closing(self.broker.consumer("test", "restore")) as consumer:
            consumer.assign({partition: start})
            while consumer.position(partition) < end:
                for batch in consumer.poll(100):
                    headers = batch.headers or [NO_HEADERS] * len(batch)
                    lines = map(Line, batch.keys, batch.values, batch.timestamps, headers)
                    found.update(zip(batch.offsets, lines, strict=True))
        return found

    def partitions(self, *topics: str) -> list[TopicPartition]:
        counts = self.admin.partition_counts()
        return [TopicPartition(topic, partition) for topic in topics for partition in range(counts[topic])]

    def committed(self, group: str) -> dict[TopicPartition, CommittedOffset]:
        return self.admin.group_offsets(group)

    def all_committed(self, group: str, *topics: str) -> bool:
        """Whether a group has processed everything that topics hold."""
        partitions = self.partitions(*topics)
        committed, ends = self.committed(group), self.admin.end_offsets(partitions)
        return all(committed[p].offset == end if p in committed else end == 0 for p, end in ends.items())

    # Applications

    def app(self, name: str, **settings: Any) -> App:
        """An application with its state below the log's path, quick to see what is new."""
        return App(name, **{"state_dir": self.path / "state", "poll_ms": 10, **settings})

    def start(self, app: App, *, prepare: Callable[[Streams], None] | None = None) -> Streams:
        """Start a client that is closed at the end of the test at the latest."""
        streams = Streams(app, broker=self.broker)
        if prepare is not None:
            prepare(streams)
        self._stack.callback(streams.close, 1000 * TIMEOUT_S)
        streams.start()
        return streams


@contextmanager
def chosen_log(request: pytest.FixtureRequest, folder: Path) -> Iterator[Log]:
    """A fresh log for a fixture: the embedded one, and Kafka as well where a test is marked ``both_logs``. Everything
    that was opened through it is closed at the end."""
    match getattr(request, "param", "embedded"):
        case "kafka":
            yield request.getfixturevalue("cluster")
        case "embedded":
            with closing(Log(folder)) as log:
                yield log
        case other:
            raise ValueError(f"there is no log {other}")


def eventually(condition: Callable[[], Any], what: object = "", timeout_s: float = TIMEOUT_S) -> Any:
    """Wait until ``condition`` gives something true, and give that. If that takes too long, ``what`` is shown as it is
    then.

    A condition that takes long is looked at less often: what it waits for needs the processor, too.
    """
    end = time.monotonic() + timeout_s
    while True:
        began = time.monotonic()
        result = condition()
        if result:
            return result
        now = time.monotonic()
        if now > end:
            raise AssertionError(f"not within {timeout_s:g} s: {what or condition}")
        time.sleep(min(max(0.01, 3 * (now - began)), 0.2))


def freeze(pid: int) -> None:
    """Stop a process with SIGSTOP until it gets SIGCONT, and return when it stands still: on a busy machine its threads
    go on for a moment."""
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: _threads_in(pid) <= {"T"}, f"process {pid} stands still")


def _threads_in(pid: int) -> set[str]:
    """The states of a process' threads, as Linux names them."""
    with suppress(FileNotFoundError):  # A thread has just ended.
        return {fields_of(thread)[0] for thread in Path(f"/proc/{pid}/task").iterdir()}
    return {"?"}


def consumer_of(streams: Streams) -> Consumer:
    """What the only thread of a client reads its inputs with."""
    (thread,) = streams._threads
    assert thread._rounds is not None
    return thread._rounds.clients.consumer


def running(streams: Streams) -> None:
    """Wait until a client runs; raise what made it end instead. It may rebalance again the moment after: while its
    threads join, it does."""
    runs = streams.wait_for(
        lambda: streams.state is ClientState.RUNNING or streams.finished, 1000 * TIMEOUT_S
    )
    if streams.failure is not None:
        raise streams.failure
    assert runs, streams.state
    assert not streams.finished


def processed(streams: Streams, records: int) -> None:
    """Wait until a client has processed so many records, committed or not."""
    running(streams)
    eventually(lambda: streams.progress().records >= records, f"{records} records processed")


def caught_up(streams: Streams) -> None:
    """Wait until everything is processed and committed; raise what made the client end instead."""
    running(streams)
    eventually(lambda: streams.caught_up() or streams.finished, "caught up")
    if streams.failure is not None:
        raise streams.failure


def run_to_the_end(log: Log, app: App) -> Streams:
    """Run an application until it has caught up, and stop it. Returns the client, which knows what it has done."""
    streams = log.start(app)
    caught_up(streams)
    assert streams.close(1000 * TIMEOUT_S)
    return streams
