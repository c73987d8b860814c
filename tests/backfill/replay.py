"""The plain way to what a backfill gives: its slices in order, each of its tasks a live one (E4).

A task is given its records topic by topic, an internal topic's as the backfill has staged them, and merges them itself,
by timestamp; it commits behind each so many records. Nothing of the stage function is used: no Arrow, no chunks, no
given order. What comes out must be what the backfill staged, in bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pystreams.backfill.manifest import InputRange
from pystreams.backfill.plan import Slice
from pystreams.backfill.records import EXTERNAL, Kind, headers_of, upstream_id
from pystreams.backfill.result import BackfillResult, ChangelogEntry, SinkRecord
from pystreams.backfill.staging import Selection
from pystreams.broker.port import CommittedOffset, Member
from pystreams.clock import ManualClock
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import Metrics
from pystreams.metrics.names import DROPPED_RECORDS
from pystreams.partitioning import partition_for_key
from pystreams.record import NO_HEADERS, Headers, RecordBatch
from pystreams.runtime.new_task import NewTask, new_task
from pystreams.runtime.partition_group import NEVER_IDLE
from pystreams.runtime.stream_task import Position, TaskServices
from pystreams.state.cache import ThreadCache
from tests.backfill.kit import CUT_TIME_MS, History, Line

Sent = dict[TopicPartition, list[SinkRecord]]


class Replayed(NamedTuple):
    """By slice and task: what it sent by partition, its stores, its changelogs after compaction, times, operator state,
    records and drops."""

    sent: Sent
    stores: dict[str, list[tuple[bytes, bytes]]]
    changelogs: dict[str, list[ChangelogEntry]]
    times: dict[str, int]
    operator_state: Mapping[str, int]
    records: int
    dropped: int


class _Sink:
    """A producer that keeps what it is given."""

    def __init__(self, task: int, partition_count: Callable[[str], int]) -> None:
        self.sent: Sent = defaultdict(list)
        self._task = task
        self._partition_count = partition_count

    def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
    ) -> None:
        if partition is None:
            count = self._partition_count(topic)
            partition = self._task % count if key is None else partition_for_key(key, count)
        self.sent[TopicPartition(topic, partition)].append(SinkRecord(key, value, timestamp, headers))

    def log_change(
        self,
        topic: str,
        partition: int,
        key: bytes,
        value: bytes | None,
        timestamp: int | None,
        headers: Headers,
    ) -> None:
        """The stores' own ``log_change`` keeps changes."""

    def commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset], member: Member | None
    ) -> dict[TopicPartition, int]:
        return {}

    def abort(self) -> None:
        """Nothing to take back."""

    def close(self) -> None:
        """Nothing to release."""


class _Left(NamedTuple):
    """What a task's visit leaves for its next one."""

    changelogs: dict[str, dict[bytes, ChangelogEntry]]
    times: dict[str, int]
    operator_state: Mapping[str, int]
    taken: dict[str, int]


def replayed(result: BackfillResult, history: History, folder: Path) -> dict[tuple[int, int], Replayed]:
    """By slice and task, what live tasks give over the records of the backfill's ranges and of its internal topics."""
    left: dict[TaskId, _Left] = {}
    return {
        (one.index, task): _Replay(result, history, one, task, left).run(folder / f"{one.index}-{task}")
        for one in result.plan.slices
        for task in range(one.tasks)
    }


def staged(result: BackfillResult) -> dict[tuple[int, int], Replayed]:
    """The same as the backfill has staged it."""
    found: dict[tuple[int, int], Replayed] = {}
    for one in result.plan.slices:
        for task in range(one.tasks):
            outcome = result.outcome(one, task)
            stores = {store: _entries(result, store, one, task) for store in one.stores}
            found[one.index, task] = Replayed(
                {partition: _sent(result, one, task, partition) for partition in outcome.written},
                {name: [(entry.key, entry.value) for entry in of] for name, of in stores.items()},
                {name: stores[name] for name, topic in one.stores.items() if topic is not None},
                dict(outcome.partition_times),
                outcome.operator_state,
                outcome.records,
                outcome.dropped,
            )
    return found


def _entries(result: BackfillResult, store: str, one: Slice, task: int) -> list[ChangelogEntry]:
    found: list[ChangelogEntry] = []
    for rows in result.staging.rows(Selection(Kind.STATE, store, (one.index,), one.tasks), task):
        columns = (rows.column(name).to_pylist() for name in ("key", "value", "timestamp"))
        found += map(ChangelogEntry, *columns)
    return sorted(found)


def _sent(result: BackfillResult, one: Slice, task: int, to: TopicPartition) -> list[SinkRecord]:
    selection = Selection(
        Kind.RECORD, to.topic, (one.index,), result.plan.partitions.get(to.topic, one.tasks)
    )
    own = upstream_id(one.subtopology, task)
    rows = _rows(result, selection, to.partition)
    return [SinkRecord(*line) for upstream, line in rows if upstream == own]


def _rows(result: BackfillResult, selection: Selection, partition: int) -> list[tuple[int, Line]]:
    found: list[tuple[int, Line]] = []
    for rows in result.staging.rows(selection, partition):
        columns = (rows.column(name).to_pylist() for name in ("key", "value", "timestamp"))
        headers = headers_of(rows.column("headers")) or [NO_HEADERS] * rows.num_rows
        found += zip(rows.column("upstream").to_pylist(), map(Line, *columns, headers), strict=True)
    return found


class _Replay:
    def __init__(
        self, result: BackfillResult, history: History, one: Slice, task: int, left: dict[TaskId, _Left]
    ) -> None:
        self._result = result
        self._history = history
        self._slice = one
        self._id = TaskId(one.subtopology, task)
        self._left = left
        self._before = left.get(self._id, _Left({}, {}, {}, {}))
        self._metrics = Metrics()
        self._sink = _Sink(task, lambda topic: result.plan.partitions.get(topic, one.tasks))
        self._changelogs = {name: dict(self._before.changelogs.get(name, {})) for name in one.stores}
        self._taken = dict(self._before.taken)

    def run(self, folder: Path) -> Replayed:
        folder.mkdir(parents=True)
        task = self._new_task(folder)
        try:
            return self._run(task)
        finally:
            task.state.close()

    def _run(self, task: NewTask) -> Replayed:
        stream, state = task
        self._start(task)
        for input in self._slice.topics_of(self._id.partition):
            stream.add_batch(self._batch(input.topic, input.internal, input.upstream, input.partitions))
        consumed = 0
        while any(stream.buffered(partition) for partition in stream.partitions):
            # Bad records go with the one behind them: each counts.
            before = sum(stream.buffered(partition) for partition in stream.partitions)
            stream.process(1, CUT_TIME_MS)
            consumed += before - sum(stream.buffered(partition) for partition in stream.partitions)
            if consumed % self._result.manifest.commit_records == 0 or stream.commit_requested:
                self._commit(task)
        self._commit(task)
        times = {p.topic: stream.partition_time(p) for p in stream.partitions}
        left = _Left(
            self._changelogs,
            {**self._before.times, **times},
            stream.operator_state(),
            dict(self._taken),
        )
        self._left[self._id] = left
        contents = {name: [entry[:2] for entry in state.stores[name].logged()] for name in self._slice.stores}
        logged = {name: topic for name, topic in self._slice.stores.items() if topic is not None}
        for name in self._slice.stores.keys() - logged.keys():
            # Nothing tells of its changes: it goes on as it is.
            entries = [ChangelogEntry(key, value, at or 0) for key, value, at in state.stores[name].logged()]
            self._changelogs[name] = {entry.key: entry for entry in entries}
        found = Replayed(
            dict(self._sink.sent),
            {name: sorted(content) for name, content in contents.items()},
            {name: self._compacted(name, contents[name]) for name in logged},
            left.times,
            {**self._before.operator_state, **left.operator_state},
            consumed,
            int(self._metrics.total(DROPPED_RECORDS)),
        )
        stream.suspend()
        stream.close()
        return found

    def _compacted(self, store: str, content: list[Any]) -> list[ChangelogEntry]:
        """Of windows those that the store still shows."""
        shown = {key for key, _ in content}
        return sorted(entry for key, entry in self._changelogs[store].items() if key in shown)

    def _commit(self, task: NewTask) -> None:
        task.stream.flush()
        task.state.commit({})
        task.stream.committed()

    def _new_task(self, folder: Path) -> NewTask:
        loaded, plan, one = self._result.loaded, self._result.plan, self._slice
        sub = loaded.built.subtopologies[one.subtopology]
        services = TaskServices(
            config=loaded.config.override({"max_task_idle_ms": NEVER_IDLE}),
            metrics=self._metrics,
            clock=ManualClock(CUT_TIME_MS),
            producer=self._sink,
            partition_count=lambda topic: plan.partitions.get(topic, one.tasks),
            lag=lambda _: 0,
            thread_id="replay",
        )
        return new_task(
            self._id,
            sub.nodes,
            sub.stores,
            [TopicPartition(input.topic, self._id.partition) for input in one.topics_of(self._id.partition)],
            services=services,
            directory=folder,
            cache=ThreadCache(self._result.manifest.cache_max_bytes),
            log_change=self._log_change,
        )

    def _log_change(self, store: str) -> Any:
        changelog = self._changelogs[store]

        def log_change(key: bytes, value: bytes | None, timestamp: int | None, _: Headers) -> None:
            changelog.pop(key, None)
            if value is not None:
                changelog[key] = ChangelogEntry(key, value, timestamp or 0)

        return log_change

    def _start(self, task: NewTask) -> None:
        """As live starts: stores from their changelogs, then positions with times."""
        for name, changes in self._changelogs.items():
            entries = list(changes.values())
            if entries:
                keys, values, timestamps = (list(column) for column in zip(*entries, strict=True))
                offsets = range(len(entries))
                batch = RecordBatch(name, 0, keys, values, timestamps, offsets, None, len(entries))
                task.state.restore(name, batch)
        times = self._before.times
        positions = {p: Position(0, times.get(p.topic, -1)) for p in task.stream.partitions}
        task.stream.start(positions, self._before.operator_state, max(times.values(), default=-1))

    def _batch(self, topic: str, internal: bool, upstream: tuple[int, ...], partitions: int) -> RecordBatch:
        number = self._id.partition
        if internal:
            rows = _rows(self._result, Selection(Kind.RECORD, topic, upstream, partitions), number)
            assert all(writer != EXTERNAL for writer, _ in rows)
            start, lines = self._taken.get(topic, 0), [line for _, line in rows]
            self._taken[topic] = start + len(lines)
        else:
            ends: dict[TopicPartition, InputRange] = {
                one.partition: one for one in self._result.manifest.inputs
            }
            range_ = ends[TopicPartition(topic, number)]
            start, lines = range_.start, list(self._history[topic][number][range_.start : range_.end])
        columns = [list(column) for column in zip(*lines, strict=True)] or [[], [], [], []]
        keys, values, timestamps, headers = columns
        offsets = list(range(start, start + len(lines)))
        return RecordBatch(topic, number, keys, values, timestamps, offsets, headers, start + len(lines))
