"""The task function: one task of a slice, from Arrow batches to Arrow batches.

It has the form of a function for ``mapInArrow``. Its input are the rows of one task in the order of ``order.ORDER``:
first the outcome and the stores of an earlier visit, then records. Its output are records for internal topics and sinks
as they are produced, then the stores, then the outcome. The task itself is the live one: same code, same stores.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TypeVar

from pystreams.backfill.application import Application, LoadedApplication, check_fingerprint
from pystreams.backfill.compute.column_input import COLUMN_ROWS, ColumnInput, column_input
from pystreams.backfill.compute.feeding import CHUNK_ROWS, Feed, GivenOrder, chunks
from pystreams.backfill.compute.global_tables import GlobalTables
from pystreams.backfill.compute.partial_rows import PartialRows
from pystreams.backfill.compute.producer import CollectingProducer
from pystreams.backfill.compute.shares import NotCutError, Share
from pystreams.backfill.compute.slice_nodes import is_combining, slice_nodes
from pystreams.backfill.compute.stored_entries import ChangeTimes, entries
from pystreams.backfill.exchange.rows import Arrow, Kind, of_kind, pc, place_of, record_batch, upstream_id
from pystreams.backfill.exchange.store_entries import StoreEntry, store_rows
from pystreams.backfill.exchange.task_outcome import Digest, TaskOutcome, outcome_row
from pystreams.backfill.plan.slices import Slice
from pystreams.backfill.sources import Reader
from pystreams.backfill.sources.ranges import InputRange
from pystreams.clock import ManualClock
from pystreams.dsl.operators.partial_columns import Combining
from pystreams.dsl.operators.partial_results import QueueOf
from pystreams.engine.commit import commit
from pystreams.engine.failures.left_out import LeftOut
from pystreams.engine.hosted_task import HostedTask
from pystreams.engine.input.partition_group import NEVER_IDLE
from pystreams.engine.new_task import new_task
from pystreams.engine.stream_task import Phase, Position, TaskServices
from pystreams.folders import make_folder
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import Metrics
from pystreams.metrics.names import DROPPED_RECORDS
from pystreams.state.cache.thread_cache import ThreadCache
from pystreams.state.value_forms import with_headers_apart

K = TypeVar("K")
V = TypeVar("V")

#: The entries of a store that are handed on together: this number, or this size.
_ENTRIES = 10_000
_ENTRIES_BYTES = 1024 * 1024

#: After this number of records their results, which are in memory until then, are checked and handed on.
_STEP_RECORDS = 256

_THREAD = "backfill"

#: How the name of a folder begins in which a task has its stores while it runs.
_STORES = "pystreams-backfill-"


@dataclass(frozen=True, slots=True)
class TaskWork:
    """The data that a worker process needs to run tasks of a slice; picklable.

    ``partitions`` counts those of all topics that the plan knows, others have ``widest``; ``ranges`` are what is read
    from outside, by all slices.
    """

    application: Application
    fingerprint: str
    slice: Slice
    partitions: Mapping[str, int]
    widest: int
    ranges: tuple[InputRange, ...]
    commit_records: int
    cache_max_bytes: int
    cut_time_ms: int
    folded: tuple[str, ...]
    combined: tuple[str, ...]


def run_task(
    work: TaskWork,
    task: int,
    batches: Iterable[Arrow],
    *,
    work_dir: str | None = None,
    report: Callable[[int], None] | None = None,
    source: Reader | None = None,
    keys: Share | None = None,
) -> Iterator[Arrow]:
    """Run the task with number ``task``, or a share of its ``keys``. Yields batches of ``EXCHANGE_SCHEMA``, each of one
    kind, topic and partition; the outcome last.

    ``work_dir`` is where the task keeps its stores while it runs (None: the machine's temporary folder); ``report`` is
    called repeatedly with the number of processed records. ``source`` has the topics of global stores, if there are
    any; what is made of them stays in ``work_dir`` for the tasks that come after (global_tables.py).

    Raises the errors of the task: ``ProcessingError``, ``SerializationError``, ``ProductionError``; ``TopologyError``
    if this process has another topology; ``NotCutError`` if the task cannot be computed in shares of its keys.
    """
    with _running(work, task, work_dir, report or _nothing, source, keys) as run:
        yield from run.rows(batches)


def run_joined(
    work: TaskWork, task: int, entries: Iterable[Arrow], outcome: TaskOutcome, *, work_dir: str
) -> Iterator[Arrow]:
    """Stores and outcome of a task that was computed in shares, as ``run_task`` gives them: ``entries`` are those of
    the stores of all shares, ``outcome`` is joined but for the stores."""
    with _running(work, task, work_dir, _nothing, None, None) as run:
        yield from run.joined(entries, outcome)


@contextmanager
def _running(
    work: TaskWork,
    task: int,
    work_dir: str | None,
    report: Callable[[int], None],
    source: Reader | None,
    keys: Share | None,
) -> Iterator[_TaskRun]:
    """A task with a folder of its own."""
    loaded = work.application.load()
    check_fingerprint(loaded, work.fingerprint)
    if work_dir is not None:
        make_folder(Path(work_dir))
    folder = Path(tempfile.mkdtemp(prefix=_STORES, dir=work_dir))
    try:
        shared = Path(work_dir or tempfile.gettempdir())
        with closing(
            GlobalTables(loaded, work.ranges, source, work.cut_time_ms, shared=shared, own=folder)
        ) as global_tables:
            run = _TaskRun(work, loaded, task, folder, report, global_tables, keys)
            try:
                yield run
            finally:
                run.close()
    finally:
        shutil.rmtree(folder)


def clear_left_stores(work_dir: Path) -> None:
    """Delete the stores of tasks whose processes died. No task may be running there."""
    for folder in work_dir.glob(f"{_STORES}*"):
        shutil.rmtree(folder)


class _TaskRun:
    """One task at work."""

    def __init__(
        self,
        work: TaskWork,
        loaded: LoadedApplication,
        task: int,
        folder: Path,
        report: Callable[[int], None],
        global_tables: GlobalTables,
        keys: Share | None,
    ) -> None:
        self._work = work
        self._keys = keys
        self._folder = folder
        self._report = report
        self._global_tables = global_tables
        self._loaded = loaded
        self._id = TaskId(work.slice.subtopology, task)
        self._metrics = Metrics()
        self._left_out = LeftOut(loaded.config.errors_dead_letter_queue_topic_name)
        self._carried = TaskOutcome()
        self._consumed = 0
        self._order = GivenOrder()
        self._sub = loaded.built.subtopologies[self._id.subtopology]
        ranges = {range.partition.topic for range in work.ranges}
        self._producer = CollectingProducer(
            upstream_id(*self._id), self._id.partition, self._partition_count, ranges, folder
        )
        #: By topic, the rows of partial aggregates that go to it.
        self._partials: dict[str, PartialRows] = {}
        self._nodes = slice_nodes(loaded.built, self._sub, work.combined, self._queues)
        self._uncommitted_bytes_max = loaded.config.statestore_uncommitted_max_bytes
        self._times = ChangeTimes(folder, self._sub.stores)
        try:
            self._task = self._new_task(folder)
            self._stream, self._state = self._task.stream, self._task.state
        except BaseException:
            self._times.close()
            raise

    def rows(self, batches: Iterable[Arrow]) -> Iterator[Arrow]:
        """The whole output of the task."""
        records = self._restored(batches)
        self._global_tables.open_for(self._sub.nodes)
        self._start()
        feed = Feed(self._id.partition, self._order, dict(self._carried.taken))
        columns = self._columns()
        rows_max = CHUNK_ROWS if columns is None else COLUMN_ROWS
        for batch in records:
            for chunk, commit_due in chunks(batch, self._consumed, self._work.commit_records, rows_max):
                if columns is not None and columns.process(chunk):
                    yield from self._after_step()
                elif self._keys is None:
                    yield from self._process(feed, chunk)
                else:
                    raise NotCutError(
                        f"some of its records cannot be processed in columns: {place_of(chunk)}"
                    )
                self._consumed += chunk.num_rows
                if commit_due:
                    self._commit()
                    yield from self._take()
                self._report(self._consumed)
        # First flush the caches of earlier steps, which hold back records for the steps that keep their results.
        self._commit()
        self._stream.flush_folded()
        self._commit()
        yield from self._take(everything=True)
        digests: dict[str, Digest] = {}
        yield from self._contents(digests)
        yield self._row_of(self._outcome(feed, digests))
        self._stream.close()

    def joined(self, entries: Iterable[Arrow], outcome: TaskOutcome) -> Iterator[Arrow]:
        """Stores and outcome of a task that was computed in shares."""
        self._state.go_on(outcome.store_times)
        for batch in entries:
            self._restore(batch)
        self._write_stores()
        digests: dict[str, Digest] = {}
        yield from self._contents(digests)
        yield self._row_of(replace(outcome, stores=digests))

    def close(self) -> None:
        """Release all resources, and close processors that still run."""
        try:
            if self._stream.phase is not Phase.CLOSED:
                self._stream.close()
        finally:
            self._state.close()
            self._times.close()
            self._producer.close()

    # Before the first record

    def _restored(self, batches: Iterable[Arrow]) -> Iterator[Arrow]:
        """Restore the state that comes before the records, and return the records."""
        iterator = iter(batches)
        for batch in iterator:
            records = self._restore(batch)
            if records.num_rows:
                return _again(records, iterator)
        return iter(())

    def _restore(self, batch: Arrow) -> Arrow:
        for outcome in of_kind(batch, Kind.OUTCOME).column("value").to_pylist():
            self._carried = TaskOutcome.from_json(outcome)
            self._state.hold(self._carried.operator_state)
            self._state.go_on(self._carried.store_times)
        for name in self._state.stores:
            rows = of_kind(batch, Kind.STATE)
            rows = rows.filter(pc.equal(rows.column("topic"), name))
            if rows.num_rows:
                changes = record_batch(rows, TopicPartition(name, 0), rows.column("sequence").to_pylist())
                if self._state.stores[name].spec.headers:
                    changes = with_headers_apart(changes)
                self._state.restore(name, changes)
                keys = [key for key in changes.keys if key is not None]
                self._times.restore(name, zip(keys, changes.timestamps, strict=True))
        return of_kind(batch, Kind.RECORD)

    def _new_task(self, folder: Path) -> HostedTask:
        work, task = self._work, self._id
        services = TaskServices(
            config=self._loaded.config.override({"max_task_idle_ms": NEVER_IDLE}),
            metrics=self._metrics,
            clock=ManualClock(work.cut_time_ms),
            producer=self._producer,
            partition_count=self._partition_count,
            lag=lambda _: 0,
            thread_id=_THREAD,
            global_stores=self._global_tables,
            left_out=self._left_out,
            folded=self._folded(),
        )
        return new_task(
            task,
            self._nodes,
            self._sub.stores,
            [TopicPartition(input.topic, task.partition) for input in work.slice.topics_of(task.partition)],
            services=services,
            directory=folder,
            log_of=self._times.log_of,
            order=self._order,
        )

    def _folded(self) -> dict[str, int]:
        """The steps of the task that fold, each with its share of the bytes that may wait to be written."""
        folded = self._work.folded
        steps = [node.name for node in self._nodes if node.name in folded or is_combining(node)]
        return {step: self._uncommitted_bytes_max // len(steps) for step in steps}

    def _queues(self, topic: str) -> QueueOf:
        rows = PartialRows(topic, self._partition_count(topic), upstream_id(*self._id))
        self._partials[topic] = rows
        return rows.queue_of

    def _combining(self) -> Iterator[Combining]:
        """The steps that write partial aggregates."""
        for node in filter(is_combining, self._nodes):
            step = self._stream.folded(node.name)
            assert isinstance(step, Combining)
            yield step

    def _start(self) -> None:
        carried = self._carried
        self._producer.go_on(carried.sequences)
        times = carried.partition_times
        positions = {p: Position(0, times.get(p.topic, -1)) for p in self._stream.partitions}
        cache = ThreadCache(self._work.cache_max_bytes)
        self._task.start(cache, positions, carried.operator_state, max(times.values(), default=-1))

    def _partition_count(self, topic: str) -> int:
        """As ``BackfillPlan.partitions_of``."""
        return self._work.partitions.get(topic, self._work.widest)

    def _columns(self) -> ColumnInput | None:
        work = self._work
        columns = column_input(self._loaded, work.slice, self._nodes, work.folded, self._stream, self._keys)
        if columns is None and self._keys is not None:
            raise NotCutError("its records do not come in columns")
        return columns

    # Records

    def _process(self, feed: Feed, chunk: Arrow) -> Iterator[Arrow]:
        """Process records; yields results when there are enough to be passed on."""
        stream = self._stream
        for batch in feed.batches(chunk):
            stream.add_batch(batch)
        waiting = [partition for partition in stream.partitions if stream.buffered(partition)]
        while any(stream.buffered(partition) for partition in waiting):
            stream.process(_STEP_RECORDS, self._work.cut_time_ms)
            yield from self._after_step()
        for step in self._combining():
            step.add_waiting()

    def _after_step(self) -> Iterator[Arrow]:
        if self._stream.commit_requested:
            self._commit()
        elif self._state.uncommitted_bytes >= self._uncommitted_bytes_max:
            self._write_stores()
        yield from self._take()

    def _take(self, *, everything: bool = False) -> Iterator[Arrow]:
        """Take the results if there are enough to be passed on, or ``everything``."""
        yield from self._producer.take(everything=everything)
        for partials in self._partials.values():
            yield from partials.take()

    def _commit(self) -> None:
        commit([self._task], self._producer)
        self._times.commit()

    def _write_stores(self) -> None:
        """Write the changes of the stores to the disk. This is not a commit: the caches are not flushed, so the output
        does not depend on when this is done."""
        self._state.commit({})
        self._times.commit()

    # At the end

    def _contents(self, digests: dict[str, Digest]) -> Iterator[Arrow]:
        """The contents of all stores; ``digests`` gets theirs."""
        for name in self._state.stores:
            digests[name] = Digest()
            yield from self._content(name, digests[name])

    def _content(self, store: str, digest: Digest) -> Iterator[Arrow]:
        batch: list[StoreEntry] = []
        size = 0
        for entry in entries(self._state.stores[store], self._times, self._folder):
            digest.add(*entry)
            batch.append(entry)
            size += len(entry[0]) + len(entry[1] or b"")
            if len(batch) == _ENTRIES or size >= _ENTRIES_BYTES:
                yield self._state_rows(store, batch, digest)
                batch, size = [], 0
        if batch:
            yield self._state_rows(store, batch, digest)

    def _state_rows(self, store: str, batch: list[StoreEntry], so_far: Digest) -> Arrow:
        return store_rows(
            store,
            self._id.partition,
            batch,
            upstream=upstream_id(*self._id),
            start=so_far.entries - len(batch),
        )

    def _outcome(self, feed: Feed, digests: Mapping[str, Digest]) -> TaskOutcome:
        stream, carried = self._stream, self._carried
        times = {p.topic: stream.partition_time(p) for p in stream.partitions}
        return TaskOutcome(
            self._consumed,
            int(self._metrics.total(DROPPED_RECORDS)),
            {**carried.partition_times, **times},
            feed.taken,
            {**carried.operator_state, **stream.operator_state()},
            _merged(self._producer.sequences, *(rows.sequences for rows in self._partials.values())),
            _merged(self._producer.written, *(rows.written for rows in self._partials.values())),
            digests,
            self._state.times(),
            self._left_out.totals(),
            tuple(self._left_out.late()),
            tuple(self._left_out.unmatched()),
            self._left_out.causes(),
        )

    def _row_of(self, outcome: TaskOutcome) -> Arrow:
        return outcome_row(outcome, self._id.partition, upstream_id(*self._id))


def _merged(*mappings: Mapping[K, V]) -> dict[K, V]:
    """One of several, which have different keys."""
    return dict(chain.from_iterable(mapping.items() for mapping in mappings))


def _nothing(_: int) -> None:
    """The default ``report``, which does nothing."""


def _again(first: Arrow, rest: Iterator[Arrow]) -> Iterator[Arrow]:
    yield first
    yield from rest
