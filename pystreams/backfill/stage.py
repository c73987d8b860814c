"""The stage function: one task of a slice, from Arrow batches to Arrow batches.

It is what ``mapInArrow`` wants. The rows that come in are those of one task in the order of ``order.ORDER``: first what
an earlier visit left (outcome and stores), then records. What goes out are records for internal topics and sinks as
they are produced, then the stores, then the outcome. The task itself is the live one: same code, same stores.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from pystreams.backfill.application import Application, Loaded, check_fingerprint
from pystreams.backfill.feeding import Feed, GivenOrder, chunks
from pystreams.backfill.outcome import Digest, Outcome
from pystreams.backfill.plan import Slice
from pystreams.backfill.recorder import Recorder
from pystreams.backfill.records import (
    QUEUE_TIME,
    Arrow,
    Kind,
    exchange_rows,
    headers_column,
    of_kind,
    pc,
    record_batch,
    repeated,
    upstream_id,
)
from pystreams.backfill.stored import ChangeTimes, Entry, entries
from pystreams.clock import ManualClock
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import Metrics
from pystreams.metrics.names import DROPPED_RECORDS
from pystreams.record import ContextCell
from pystreams.runtime.partition_group import NEVER_IDLE
from pystreams.runtime.stream_task import Position, StreamTask, TaskServices
from pystreams.runtime.task_lifecycle import TaskStatus
from pystreams.state.cache import ThreadCache
from pystreams.state.task_state import TaskState

#: Rows that are handed on together.
OUTPUT_ROWS = 10_000

_THREAD = "backfill"


@dataclass(frozen=True, slots=True)
class StageWork:
    """What a worker process needs to run tasks of a slice; picklable.

    ``partitions`` counts those of all topics, ``inputs`` are the topics that come from outside. ``work_dir`` is where
    tasks keep their stores while they run (None: the machine's temporary folder).
    """

    application: Application
    fingerprint: str
    slice: Slice
    partitions: Mapping[str, int]
    inputs: frozenset[str]
    commit_records: int
    cache_max_bytes: int
    cut_time_ms: int
    work_dir: str | None = None


def run_stage(work: StageWork, task: int, batches: Iterable[Arrow]) -> Iterator[Arrow]:
    """Run the task with number ``task``. Yields batches of ``EXCHANGE_SCHEMA``, the outcome last.

    Raises what the task raises: ``ProcessingError``, ``SerializationError``, ``ProductionError``; ``TopologyError`` if
    this process has another topology.
    """
    loaded = work.application.load()
    check_fingerprint(loaded, work.fingerprint)
    if work.work_dir is not None:
        Path(work.work_dir).mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="pystreams-backfill-", dir=work.work_dir))
    try:
        run = _TaskRun(work, loaded, task, folder)
        try:
            yield from run.rows(batches)
        finally:
            run.close()
    finally:
        shutil.rmtree(folder)


class _TaskRun:
    """One task at work."""

    def __init__(self, work: StageWork, loaded: Loaded, task: int, folder: Path) -> None:
        self._work = work
        self._loaded = loaded
        self._id = TaskId(work.slice.subtopology, task)
        self._metrics = Metrics()
        self._carried = Outcome()
        self._consumed = 0
        self._cell = ContextCell()
        self._order = GivenOrder()
        self._sub = loaded.built.subtopologies[self._id.subtopology]
        self._stream: StreamTask | None = None
        self._times = ChangeTimes(folder, self._sub.stores)
        try:
            self._state = self._open_state(folder)
        except BaseException:
            self._times.close()
            raise

    def rows(self, batches: Iterable[Arrow]) -> Iterator[Arrow]:
        """Everything that the task gives."""
        records = self._restored(batches)
        recorder, stream = self._start()
        feed = Feed(self._id.partition, self._order, dict(self._carried.taken))
        for batch in records:
            for chunk, commit_due in chunks(batch, self._consumed, self._work.commit_records):
                self._process(stream, feed, chunk)
                self._consumed += chunk.num_rows
                if commit_due:
                    self._commit(stream)
                if recorder.rows >= OUTPUT_ROWS and (taken := recorder.take()) is not None:
                    yield taken
        self._commit(stream)
        if (taken := recorder.take()) is not None:
            yield taken
        digests: dict[str, Digest] = {}
        for name in self._state.stores:
            digests[name] = Digest()
            yield from self._content(name, digests[name])
        yield self._outcome(stream, recorder, feed, digests)
        stream.suspend()
        stream.close()

    def close(self) -> None:
        """Let go of everything; processors that still run are closed, too."""
        try:
            if self._stream is not None and self._stream.status is not TaskStatus.CLOSED:
                self._stream.close()
        finally:
            self._state.close()
            self._times.close()

    # Before the first record

    def _restored(self, batches: Iterable[Arrow]) -> Iterator[Arrow]:
        """Take over what comes before the records, and give the records."""
        iterator = iter(batches)
        for batch in iterator:
            records = self._restore(batch)
            if records.num_rows:
                return _again(records, iterator)
        return iter(())

    def _restore(self, batch: Arrow) -> Arrow:
        for outcome in of_kind(batch, Kind.OUTCOME).column("value").to_pylist():
            self._carried = Outcome.from_json(outcome)
        for name in self._state.stores:
            rows = of_kind(batch, Kind.STATE)
            rows = rows.filter(pc.equal(rows.column("topic"), name))
            if rows.num_rows:
                changes = record_batch(rows, TopicPartition(name, 0), rows.column("sequence").to_pylist())
                self._state.restore(name, changes)
                keys = [key for key in changes.keys if key is not None]
                self._times.restore(name, zip(keys, changes.timestamps, strict=True))
        return of_kind(batch, Kind.RECORD)

    def _open_state(self, folder: Path) -> TaskState:
        application_id = self._loaded.config.application_id
        return TaskState.open(
            folder,
            self._sub.stores,
            task_id=self._id,
            cell=self._cell,
            cache=ThreadCache(self._work.cache_max_bytes),
            log_change=self._times.log_change,
            topic_of=lambda store: f"{application_id}-{store}-changelog",
            expired=self._metrics.counter(DROPPED_RECORDS, thread_id=_THREAD, task_id=self._id).add,
        )

    def _start(self) -> tuple[Recorder, StreamTask]:
        work, carried = self._work, self._carried
        recorder = Recorder(
            upstream_id(*self._id),
            self._id.partition,
            self._partition_count,
            work.inputs,
            carried.sequences,
        )
        services = TaskServices(
            config=self._loaded.config.override({"max_task_idle_ms": NEVER_IDLE}),
            metrics=self._metrics,
            clock=ManualClock(work.cut_time_ms),
            producer=recorder,
            partition_count=self._partition_count,
            lag=lambda _: 0,
            thread_id=_THREAD,
        )
        partitions = [
            TopicPartition(input.topic, self._id.partition)
            for input in work.slice.topics_of(self._id.partition)
        ]
        stream = StreamTask(
            self._id,
            self._sub.nodes,
            partitions,
            cell=self._cell,
            state=self._state,
            services=services,
            order=self._order,
        )
        self._stream = stream
        stream.restoring()
        times = carried.partition_times
        stream.start({p: Position(0, times.get(p.topic, -1)) for p in partitions}, carried.operator_state)
        stream.timing.stream_time = max(stream.timing.stream_time, *times.values(), -1)
        return recorder, stream

    def _partition_count(self, topic: str) -> int:
        """A topic that the plan does not know (chosen by record, dead letters) is as wide as the slice."""
        return self._work.partitions.get(topic, self._work.slice.tasks)

    # Records

    def _process(self, stream: StreamTask, feed: Feed, chunk: Arrow) -> None:
        for batch in feed.batches(chunk):
            stream.add_batch(batch)
        waiting = [partition for partition in stream.partitions if stream.buffered(partition)]
        while any(stream.buffered(partition) for partition in waiting):
            stream.process(chunk.num_rows, self._work.cut_time_ms)
            if stream.commit_requested:
                self._commit(stream)

    def _commit(self, stream: StreamTask) -> None:
        stream.flush()
        self._state.commit({})
        self._times.commit()
        stream.committed()

    # At the end

    def _content(self, store: str, digest: Digest) -> Iterator[Arrow]:
        batch: list[Entry] = []
        for entry in entries(self._state.stores[store], self._times):
            digest.add(*entry)
            batch.append(entry)
            if len(batch) == OUTPUT_ROWS:
                yield self._state_rows(store, batch, digest.entries)
                batch = []
        if batch:
            yield self._state_rows(store, batch, digest.entries)

    def _state_rows(self, store: str, batch: list[Entry], end: int) -> Arrow:
        keys, values, timestamps = zip(*batch, strict=True)
        columns = (
            pa.array(timestamps, pa.int64()),
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
        )
        return self._rows(Kind.STATE, store, end - len(batch), columns)

    def _outcome(
        self, stream: StreamTask, recorder: Recorder, feed: Feed, digests: Mapping[str, Digest]
    ) -> Arrow:
        carried = self._carried
        times = {p.topic: stream.partition_time(p) for p in stream.partitions}
        outcome = Outcome(
            carried.records + self._consumed,
            carried.dropped + int(self._metrics.total(DROPPED_RECORDS)),
            {**carried.partition_times, **times},
            feed.taken,
            {**carried.operator_state, **stream.operator_state()},
            recorder.sequences,
            digests,
        )
        columns = (
            pa.array([0], pa.int64()),
            pa.array([b""], pa.binary()),
            pa.array([outcome.to_json()], pa.binary()),
        )
        return self._rows(Kind.OUTCOME, "", 0, columns)

    def _rows(self, kind: Kind, topic: str, start: int, columns: tuple[Arrow, Arrow, Arrow]) -> Arrow:
        size = len(columns[0])
        return exchange_rows(
            kind,
            repeated(topic, pa.string(), size),
            repeated(self._id.partition, pa.int32(), size),
            repeated(QUEUE_TIME[kind], pa.int64(), size),
            upstream_id(*self._id),
            pa.array(range(start, start + size), pa.int64()),
            (*columns, headers_column(None, size)),
        )


def _again(first: Arrow, rest: Iterator[Arrow]) -> Iterator[Arrow]:
    yield first
    yield from rest
