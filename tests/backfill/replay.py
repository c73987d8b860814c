"""The plain way to what a backfill gives: its slices in order, each of its tasks a live one (E4).

A task is given its records topic by topic, an internal topic's as the backfill has staged them, and merges them itself,
by timestamp; it commits behind each so many records. Nothing of the stage function is used: no Arrow, no chunks, no
given order. What comes out must be what the backfill staged, in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pystreams.backfill.compute.backfill_result import BackfillResult, ChangelogEntry, changelog_entries
from pystreams.backfill.exchange.rows import EXTERNAL, Kind, headers_of, upstream_id
from pystreams.backfill.plan.slices import Slice
from pystreams.backfill.sources.ranges import InputRange
from pystreams.backfill.staging.port import Selection
from pystreams.clock import ManualClock
from pystreams.engine.commit import commit
from pystreams.engine.global_state import GlobalState
from pystreams.engine.hosted_task import HostedTask
from pystreams.engine.input.partition_group import NEVER_IDLE
from pystreams.engine.new_task import new_task
from pystreams.engine.stream_task import Position, TaskServices
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import Metrics
from pystreams.metrics.names import DROPPED_RECORDS
from pystreams.record import NO_HEADERS, Headers, RecordBatch
from pystreams.state.cache.thread_cache import ThreadCache
from pystreams.state.spec import EXPIRING_KINDS, StoreSpec
from pystreams.state.store import Store
from pystreams.state.value_forms import headers_apart
from pystreams.testing.producer import MemoryProducer
from tests.backfill.kit import CUT_TIME_MS, History, sent
from tests.backfill.versions import shown_versions
from tests.live.support import Line


class Replayed(NamedTuple):
    """By slice and task: what it sent by partition, its stores, its changelogs after compaction, times, operator state,
    records and drops."""

    sent: dict[TopicPartition, list[Line]]
    stores: dict[str, list[tuple[bytes, bytes | None]]]
    changelogs: dict[str, list[ChangelogEntry]]
    times: dict[str, int]
    operator_state: Mapping[str, int]
    records: int
    dropped: int


class _Left(NamedTuple):
    """What a task's visit leaves for its next one. Changelogs are compacted, but for those of versioned stores."""

    changelogs: dict[str, dict[bytes, ChangelogEntry]]
    times: dict[str, int]
    operator_state: Mapping[str, int]
    taken: dict[str, int]
    #: Of stores without a changelog.
    store_times: dict[str, int]


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
            specs = _specs(result)
            stores = {
                name: _told(specs[name], _entries(result, specs[name], one, task)) for name in one.stores
            }
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


def _entries(result: BackfillResult, spec: StoreSpec, one: Slice, task: int) -> list[ChangelogEntry]:
    rows = result.staging.rows(Selection(Kind.STATE, spec.name, (one.index,), one.tasks), task)
    return [_apart(spec, entry) for entry in changelog_entries(rows)]


def _apart(spec: StoreSpec, entry: ChangelogEntry) -> ChangelogEntry:
    """As the changelog has it: a store with headers has them before the value."""
    if not spec.headers or entry.value is None:
        return entry
    headers, value = headers_apart(entry.value)
    return entry._replace(value=value, headers=headers)


def _told(spec: StoreSpec, entries: list[ChangelogEntry]) -> list[ChangelogEntry]:
    """The entries of a store to be compared; of a versioned one, which come in the order of time, what they show."""
    if spec.kind != "versioned":
        return sorted(entries)
    return [
        ChangelogEntry(key, value + b" until %d" % (-1 if until is None else until), since)
        for key, since, value, until in shown_versions(spec, entries)
    ]


def _specs(result: BackfillResult) -> dict[str, StoreSpec]:
    return {spec.name: spec for spec in result.loaded.built.stores}


def _sent(result: BackfillResult, one: Slice, task: int, to: TopicPartition) -> list[Line]:
    selection = Selection(Kind.RECORD, to.topic, (one.index,), result.plan.partitions_of(to.topic))
    own = upstream_id(one.subtopology, task)
    return [line for upstream, line in _rows(result, selection, to.partition) if upstream == own]


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
        self._before = left.get(self._id, _Left({}, {}, {}, {}, {}))
        self._metrics = Metrics()
        self._producer = MemoryProducer()
        self._changelogs = {name: dict(self._before.changelogs.get(name, {})) for name in one.stores}
        self._specs = _specs(result)
        self._globals: GlobalState | None = None
        self._taken = dict(self._before.taken)

    def run(self, folder: Path) -> Replayed:
        folder.mkdir(parents=True)
        task = self._new_task(folder)
        try:
            return self._run(task)
        finally:
            task.state.close()
            if self._globals is not None:
                self._globals.close()

    def _run(self, task: HostedTask) -> Replayed:
        stream, state = task.stream, task.state
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
            {name: time for name, time in state.times().items() if self._slice.stores[name] is None},
        )
        self._left[self._id] = left
        entries = {name: self._held(state.stores[name]) for name in self._slice.stores}
        told = {name: _told(self._specs[name], of) for name, of in entries.items()}
        contents = {name: [entry[:2] for entry in of] for name, of in told.items()}
        logged = {name: topic for name, topic in self._slice.stores.items() if topic is not None}
        for name in self._slice.stores.keys() - logged.keys():
            # Nothing tells of its changes: it goes on as it is.
            self._changelogs[name] = {b"%d" % number: entry for number, entry in enumerate(entries[name])}
        found = Replayed(
            sent(self._producer, self._result.plan.partitions_of, lambda count: self._id.partition % count),
            contents,
            {name: self._compacted(name, contents[name]) for name in logged},
            left.times,
            {**self._before.operator_state, **left.operator_state},
            consumed,
            int(self._metrics.total(DROPPED_RECORDS)),
        )
        stream.close()
        return found

    def _compacted(self, store: str, content: list[Any]) -> list[ChangelogEntry]:
        """Of windows those that the store still shows."""
        if self._specs[store].kind == "versioned":
            return _told(self._specs[store], [*self._changelogs[store].values()])
        shown = {key for key, _ in content}
        return sorted(entry for key, entry in self._changelogs[store].items() if key in shown)

    def _held(self, store: Store) -> list[ChangelogEntry]:
        found = [_apart(store.spec, ChangelogEntry(key, value, at or 0)) for key, value, at in store.logged()]
        if store.spec.kind == "versioned":
            found.sort(key=lambda entry: entry.timestamp)
        return found

    def _commit(self, task: HostedTask) -> None:
        commit([task], self._producer)

    def _new_task(self, folder: Path) -> HostedTask:
        loaded, plan, one = self._result.loaded, self._result.plan, self._slice
        sub = loaded.built.subtopologies[one.subtopology]
        services = TaskServices(
            config=loaded.config.override({"max_task_idle_ms": NEVER_IDLE}),
            metrics=self._metrics,
            clock=ManualClock(CUT_TIME_MS),
            producer=self._producer,
            partition_count=plan.partitions_of,
            lag=lambda _: 0,
            thread_id="replay",
            global_stores=self._global_stores(folder),
        )
        return new_task(
            self._id,
            sub.nodes,
            sub.stores,
            [TopicPartition(input.topic, self._id.partition) for input in one.topics_of(self._id.partition)],
            services=services,
            directory=folder,
            log_of=self._log_of,
        )

    def _global_stores(self, folder: Path) -> Mapping[str, Any]:
        """With all that their topics hold, as live has them when it begins."""
        loaded, history = self._result.loaded, self._history
        if not loaded.built.global_stores:
            return {}
        state = self._globals = GlobalState(
            loaded.built,
            loaded.config,
            lambda topic: len(history[topic]),
            metrics=Metrics(),
            clock=ManualClock(CUT_TIME_MS),
            thread_id="replay",
            directory=folder / "global",
        )
        state.start(dict.fromkeys(state.partitions, 0))
        for partition in sorted(state.partitions):
            end = self._result.manifest.end_of(partition)
            lines = list(history[partition.topic][partition.partition][:end])
            if lines:
                state.apply([_as_batch(partition, lines, 0)])
        return state.stores

    def _log_of(self, store: str) -> Any:
        changelog, spec = self._changelogs[store], self._specs[store]

        def log_change(key: bytes, value: bytes | None, timestamp: int | None, headers: Headers) -> None:
            entry = ChangelogEntry(key, value, timestamp or 0, headers if spec.headers else NO_HEADERS)
            if spec.kind == "versioned":
                # Every change counts.
                changelog[b"%d" % len(changelog)] = entry
                return
            changelog.pop(key, None)
            # By deletions, too, the time of a window store goes on.
            if value is not None or spec.kind in EXPIRING_KINDS:
                changelog[key] = entry

        return log_change

    def _start(self, task: HostedTask) -> None:
        """As live starts: stores from their changelogs, then positions with times."""
        task.state.go_on(self._before.store_times)
        for name, changes in self._changelogs.items():
            entries = list(changes.values())
            if entries:
                keys, values, timestamps, headers = (list(column) for column in zip(*entries, strict=True))
                offsets = range(len(entries))
                batch = RecordBatch(name, 0, keys, values, timestamps, offsets, headers, len(entries))
                task.state.restore(name, batch)
        times = self._before.times
        positions = {p: Position(0, times.get(p.topic, -1)) for p in task.stream.partitions}
        cache = ThreadCache(self._result.manifest.cache_max_bytes)
        task.start(cache, positions, self._before.operator_state, max(times.values(), default=-1))

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
        return _as_batch(TopicPartition(topic, number), lines, start)


def _as_batch(partition: TopicPartition, lines: list[Line], start: int) -> RecordBatch:
    columns = [list(column) for column in zip(*lines, strict=True)] or [[], [], [], []]
    keys, values, timestamps, headers = columns
    end = start + len(lines)
    return RecordBatch(*partition, keys, values, timestamps, list(range(start, end)), headers, end)
