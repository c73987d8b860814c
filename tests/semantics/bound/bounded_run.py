"""A task whose stream time has a bound that the test sets, with commits, crashes and restarts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from pystreams import StreamsBuilder
from pystreams.broker.port import CommittedOffset
from pystreams.clock import ManualClock
from pystreams.config import StreamsConfig
from pystreams.engine.commit import commit
from pystreams.engine.hosted_task import HostedTask
from pystreams.engine.new_task import new_task
from pystreams.engine.offset_metadata import TaskMetadata, encode_committed, merge_committed
from pystreams.engine.stream_task import Position, TaskServices
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics.registry import Metrics
from pystreams.record import Headers, RecordBatch
from pystreams.state.cache.thread_cache import ThreadCache
from pystreams.state.store import LogChange
from pystreams.testing.producer import MemoryProducer
from pystreams.testing.producer import ProducedRecord as Record

TASK = TaskId(0, 0)

#: (key, value, timestamp, headers), as a changelog has them.
Logged = tuple[bytes, "bytes | None", "int | None", Headers]


class Input(NamedTuple):
    topic: str
    key: str
    value: str | None
    timestamp: int


class BoundedRun:
    """A task of the only sub-topology that ``build`` makes. ``crash`` takes back what was not committed."""

    def __init__(self, build: Callable[[StreamsBuilder], Any], cache_bytes: int = 0) -> None:
        builder = StreamsBuilder()
        build(builder)
        (self._sub,) = builder.build().build("app").subtopologies
        self._cache_bytes = cache_bytes
        self._config = StreamsConfig.of(application_id="app")
        self._folder = tempfile.TemporaryDirectory()
        self._inputs: dict[str, list[Input]] = {topic: [] for topic in self._sub.source_topics}
        #: How many records of each input the task was given.
        self._given = dict.fromkeys(self._inputs, 0)
        self._logs: dict[str, list[Logged]] = {spec.name: [] for spec in self._sub.stores}
        self._log_ends = dict.fromkeys(self._logs, 0)
        self._committed: dict[TopicPartition, CommittedOffset] = {}
        self.metrics = Metrics()
        self.producer = MemoryProducer()
        #: Everything that was written to topics and committed.
        self.written: list[Record] = []
        self.task = self._open("first")
        self._start(None)

    def __enter__(self) -> BoundedRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.task.close()
        self._folder.cleanup()

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that the task reads."""
        return self._sub.source_topics

    @property
    def dropped(self) -> float:
        """The number of records that steps and stores have dropped."""
        return self.metrics.total("dropped-records-total")

    @property
    def metadata(self) -> TaskMetadata:
        """What the last commit tells of the task."""
        return merge_committed(self._committed)

    def feed(self, *records: Input) -> None:
        for record in records:
            self._inputs[record.topic].append(record)
            self._give(record.topic)

    def limit(self, bound_ms: int) -> None:
        self.task.stream.limit_time(bound_ms)

    def commit(self) -> None:
        commit([self.task], self.producer)
        positions = self.task.stream.positions()
        offsets, times = ({p: at[i] for p, at in positions.items()} for i in (0, 1))
        self._committed = encode_committed(offsets, times, self.task.stream.operator_state(), {})
        self._log_ends = {store: len(log) for store, log in self._logs.items()}
        self.written += self.producer.take()

    def crash(self, *, bound_ms: int, wipe: bool, atomic: bool = True) -> None:
        """Restart from the last commit, with that bound from the beginning; give the task again what came after it.

        ``wipe``: the stores are restored from their changelogs. ``atomic``: these end at the commit.
        """
        self.task.close()
        self.producer.abort()
        if atomic:
            for store, log in self._logs.items():
                del log[self._log_ends[store] :]
        self.task = self._open(tempfile.mktemp(dir=self._folder.name) if wipe else None)
        self._start(bound_ms)
        for topic, records in self._inputs.items():
            at = self._committed.get(TopicPartition(topic, 0))
            self._given[topic] = 0 if at is None else at.offset
            for _ in records[self._given[topic] :]:
                self._give(topic)

    def records(self, topic: str = "out") -> list[tuple[str, str | None, int | None]]:
        """(key, value, timestamp) of what was written to a topic and committed, as text."""
        return [
            (
                (record.key or b"").decode(),
                None if record.value is None else record.value.decode(),
                record.timestamp,
            )
            for record in self.written
            if record.topic == topic
        ]

    def _give(self, topic: str) -> None:
        offset = self._given[topic]
        self._given[topic] = offset + 1
        _, key, value, timestamp = self._inputs[topic][offset]
        values = [None if value is None else value.encode()]
        batch = RecordBatch(topic, 0, [key.encode()], values, [timestamp], [offset], None, offset + 1)
        self.task.stream.add_batch(batch)
        assert self.task.stream.process(1, 0) == 1

    def _open(self, folder: str | None) -> HostedTask:
        self._directory = self._directory if folder is None else Path(self._folder.name) / folder
        services = TaskServices(
            config=self._config,
            metrics=self.metrics,
            clock=ManualClock(0),
            producer=self.producer,
            partition_count=lambda _: 1,
            lag=lambda _: 0,
            thread_id="thread",
        )
        task = new_task(
            TASK,
            self._sub.nodes,
            self._sub.stores,
            [TopicPartition(topic, 0) for topic in self._sub.source_topics],
            services=services,
            directory=self._directory,
            log_of=self._log_of,
        )
        task.changelogs = {store: TopicPartition(store, 0) for store in self._logs}
        return task

    def _log_of(self, store: str) -> LogChange:
        log = self._logs[store]
        return lambda *change: log.append(change)

    def _start(self, bound_ms: int | None) -> None:
        metadata, state = self.metadata, self.task.state
        state.hold(metadata.foreign)
        state.limit_time(metadata.stream_time, metadata.time_seen)
        for store, log in self._logs.items():
            start = state.changelog_offset(store) or 0
            if log[start:]:
                keys, values, times, headers = zip(*log[start:], strict=True)
                stamps = [0 if time is None else time for time in times]
                offsets = range(start, len(log))
                batch = RecordBatch(
                    store,
                    0,
                    [*keys],
                    [*values],
                    stamps,
                    offsets,
                    [*headers] if any(headers) else None,
                    len(log),
                )
                state.restore(store, batch)
        if bound_ms is not None:
            self.limit(bound_ms)
        positions = {
            p: Position(metadata.positions.get(p, 0), metadata.partition_times.get(p, -1))
            for p in self.task.stream.partitions
        }
        self.task.start(ThreadCache(self._cache_bytes), positions, {**metadata.foreign, **metadata.own})
