"""The state of a client, as the page shows it. The client has all of this anyway: nothing is counted only for the
page."""

from __future__ import annotations

import platform
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from pystreams.clock import Clock, SystemClock
from pystreams.distribution import __version__
from pystreams.dsl.operators.base import FoldingOperation
from pystreams.dsl.operators.session_aggregate import SessionAggregate
from pystreams.dsl.operators.table_aggregate import TableAggregate, TableReduce
from pystreams.engine.failures.left_out import Fate
from pystreams.engine.failures.unmatched import Unmatched
from pystreams.metrics import Sample, names
from pystreams.runtime.health import Health
from pystreams.runtime.streams import Streams
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.runtime.threads.progress import RestoreProgress, TaskProgress, ThreadProgress
from pystreams.serving.group_status import GroupStatus
from pystreams.serving.live.group_look import group_look
from pystreams.serving.live.look import (
    ROWS_MAX,
    TASKS_MAX,
    ClientLook,
    Described,
    FailureLook,
    InputLook,
    LeftOutLook,
    RestoreLook,
    StandbyLook,
    StepLook,
    StoreLook,
    TaskLook,
    ThreadLook,
)
from pystreams.topology.built import BuiltTopology
from pystreams.topology.fingerprint import shape
from pystreams.topology.nodes import ProcessorNode
from pystreams.topology.picture import picture

_STEP: Final = "processor_node_id"
_CACHE: Final = "record_cache_id"
#: The records of a step. Not all steps have one of these.
_OF_STEPS: Final = (names.PROCESSED, "records-consumed-total", "records-produced-total")

#: Operations that read each entry once before they write it, and read nothing else.
_AGGREGATIONS: Final = (FoldingOperation, SessionAggregate, TableAggregate, TableReduce)

_STORES: Final = frozenset({"rocksdb_state_id", "rocksdb_window_state_id", "rocksdb_session_state_id"})


class ClientLooks:
    """Looks at one client, from any thread. ``worker`` is its number among the workers of a supervisor."""

    def __init__(self, streams: Streams, worker: int | None = None, clock: Clock | None = None) -> None:
        self._streams = streams
        self._worker = worker
        self._clock = SystemClock() if clock is None else clock
        self._started_ms = self._clock.now_ms()
        self._read_before_write = _read_before_write(streams.built)
        self._described: Described | None = None
        #: The state of all processes, as the log knows it.
        self.group = GroupStatus(streams.application_status, self._clock)

    def described(self) -> Described | None:
        """The part that does not change; None before the client has opened its log."""
        if self._described is None and self._streams.log_description:
            self._described = self._describe()
        return self._described

    def _describe(self) -> Described:
        streams, built = self._streams, self._streams.built
        filling = [(store.source, store.processor) for store in built.global_stores]
        subtopologies = [sub.nodes for sub in built.subtopologies]
        return Described(
            application_id=built.application_id,
            log=streams.log_description,
            guarantee="exactly once" if streams.config.exactly_once else "at least once",
            fingerprint=built.fingerprint,
            pystreams=__version__,
            python=platform.python_version(),
            picture=picture(f"Topology of {built.application_id}", subtopologies, filling, styled=False),
            topology=shape(built),
        )

    def look(self, *, with_group: bool) -> ClientLook:
        """The client now. ``with_group``: also ask the log, whose answer will be in one of the next looks."""
        streams, now_ms = self._streams, self._clock.now_ms()
        progress, health = streams.progress(), streams.health()
        figures = _Figures(streams.metrics.snapshot())
        threads = [_thread(thread, figures, health) for thread in progress.threads]
        shown, more = _limited(threads)
        return ClientLook(
            client_id=streams.client_id,
            worker=self._worker,
            at_ms=now_ms,
            started_ms=self._started_ms,
            state="restoring" if progress.restoring else streams.state.value.replace("_", " "),
            health=health,
            records=progress.source_records,
            internal_records=progress.internal_records,
            threads=shown,
            more_tasks=more,
            steps=_steps(streams, figures)[:ROWS_MAX],
            stores=_stores(figures, self._read_before_write)[:ROWS_MAX],
            left_out=streams.left_out,
            left_out_by=_left_out(streams)[:ROWS_MAX],
            failures=_failures(streams),
            group=group_look(self.group.latest()) if with_group else None,
        )


class _Figures:
    """The values of metrics. The value of a metric that a client does not have is None, not 0."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._by_name: dict[str, list[tuple[dict[str, str], float]]] = defaultdict(list)
        for sample in samples:
            self._by_name[sample.name].append((dict(sample.tags), sample.value))

    def total(self, name: str, **tags: str) -> float | None:
        """The sum of the samples that have exactly these tags."""
        found = [
            value
            for has, value in self._by_name[name]
            if tags.items() <= has.items() and (_STEP in tags or _STEP not in has)
        ]
        return sum(found) if found else None

    def by(self, tag: str, name: str) -> dict[str, float]:
        """The sums by a tag."""
        found: Counter[str] = Counter()
        for tags, value in self._by_name[name]:
            if tag in tags:
                found[tags[tag]] += value  # type: ignore[assignment]
        return dict(found)


def _thread(thread: ThreadProgress, figures: _Figures, health: Health) -> ThreadLook:
    restoring: dict[str, list[RestoreProgress]] = defaultdict(list)
    for restore in thread.restoring:
        restoring[str(restore.task_id)].append(restore)
    begin = f"{thread.name} "
    return ThreadLook(
        name=thread.name,
        state=thread.state.name.lower().replace("_", " "),
        records=thread.records,
        processing=figures.total("process-ratio", thread_id=thread.name),
        committing=figures.total("commit-ratio", thread_id=thread.name),
        polling=figures.total("poll-ratio", thread_id=thread.name),
        trouble=[reason.removeprefix(begin) for reason in health.reasons if reason.startswith(begin)],
        tasks=[_task(task, restoring[str(task.task_id)], figures) for task in thread.tasks],
        standbys=[StandbyLook(str(standby.task_id), standby.lag) for standby in thread.standbys][:TASKS_MAX],
    )


def _task(task: TaskProgress, restoring: Sequence[RestoreProgress], figures: _Figures) -> TaskLook:
    processed = figures.total(names.PROCESSED, task_id=str(task.task_id))
    return TaskLook(
        task=str(task.task_id),
        status=task.status.value,
        processed=int(processed or 0),
        buffered=task.buffered,
        lag=task.lag,
        stream_time_ms=task.stream_time_ms if task.stream_time_ms >= 0 else None,
        inputs=[InputLook(*partition, task.lags.get(partition)) for partition in task.inputs],
        restoring=[
            RestoreLook(
                one.store,
                max(0, one.position - one.start_offset),
                max(0, one.end_offset - one.start_offset),
            )
            for one in restoring
        ],
    )


def _limited(threads: Sequence[ThreadLook]) -> tuple[list[ThreadLook], int]:
    """The threads with the tasks that are shown, and the number of the other tasks."""
    running = TaskStatus.RUNNING.value
    tasks = [task for thread in threads for task in thread.tasks]
    tasks.sort(key=lambda task: (task.status == running, -(task.lag or 0)))
    shown = {id(task) for task in tasks[:TASKS_MAX]}
    kept = [
        msgspec.structs.replace(thread, tasks=[task for task in thread.tasks if id(task) in shown])
        for thread in threads
    ]
    return kept, len(tasks) - len(shown)


def _steps(streams: Streams, figures: _Figures) -> list[StepLook]:
    """The steps with any figures; the steps that leave out the most records come first."""
    fates: dict[str, Counter[Fate]] = defaultdict(Counter)
    late_dropped: Counter[str] = Counter()
    for kind, records in streams.left_out_kinds.items():
        fates[kind.step.name][kind.fate] += records
        if kind.late and kind.fate is Fate.DROPPED:
            late_dropped[kind.step.name] += records
    late = {one.step: one for one in streams.late_records}
    processed = {step: n for name in _OF_STEPS for step, n in figures.by(_STEP, name).items()}
    joins = {one.step: one for one in streams.joins}
    steps = [
        StepLook(
            step,
            int(processed[step]) if step in processed else None,
            late[step].records if step in late else 0,
            late[step].late_ms if step in late else 0,
            late[step].grace_ms if step in late else 0,
            fates[step][Fate.DROPPED],
            fates[step][Fate.SKIPPED],
            fates[step][Fate.DEAD_LETTER],
            late_dropped=late_dropped[step],
            **(_of_join(joins[step]) if step in joins else {}),
        )
        for step in sorted({*fates, *late, *processed, *joins})
    ]
    return sorted(steps, key=lambda one: -(one.dropped + one.skipped + one.dead_letters))


def _of_join(join: Unmatched) -> dict[str, Any]:
    return {
        "missed": join.records,
        "found": int(join.found),
        "sought": join.partner.found,
        "hint": join.partner.hint,
    }


def _read_before_write(built: BuiltTopology) -> frozenset[str]:
    """The stores that only an aggregation uses, which reads them as often as it writes them."""
    users: dict[str, list[object]] = defaultdict(list)
    for sub in built.subtopologies:
        for node in sub.nodes:
            if isinstance(node, ProcessorNode):
                for store in node.stores:
                    users[store].append(node.operation)
    return frozenset(
        store for store, (first, *others) in users.items() if not others and isinstance(first, _AGGREGATIONS)
    )


def _stores(figures: _Figures, read_before_write: frozenset[str]) -> list[StoreLook]:
    writes = figures.by(_CACHE, names.CACHE_WRITES)
    misses = figures.by(_CACHE, names.CACHE_MISSES)
    # Reads are counted only at the recording level DEBUG. Otherwise they are known only for stores that are read as
    # often as they are written.
    reads = figures.by(_CACHE, names.CACHE_READS)
    entries = _by_store(figures, "estimate-num-keys")
    size = _by_store(figures, "total-sst-files-size")
    return [
        StoreLook(
            store,
            *_hits(
                reads.get(store, writes.get(store) if store in read_before_write else None), misses.get(store)
            ),
            _whole(entries.get(store)),
            _whole(size.get(store)),
        )
        for store in sorted({*writes, *entries})
    ]


def _hits(reads: float | None, misses: float | None) -> tuple[int | None, int | None]:
    """The reads of a cache and its hits, which are computed, because hits are not counted."""
    if not reads or misses is None:
        return None, None
    return int(reads), max(0, int(reads - misses))


def _by_store(figures: _Figures, name: str) -> Mapping[str, float]:
    return {store: value for tag in _STORES for store, value in figures.by(tag, name).items()}


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _left_out(streams: Streams) -> list[LeftOutLook]:
    """The reasons for which records are left out, the most frequent one first."""
    kinds = sorted(streams.left_out_kinds.items(), key=lambda item: -item[1])
    return [
        LeftOutLook(kind.fate.value, kind.step.name, kind.topic, kind.why, records) for kind, records in kinds
    ]


def _failures(streams: Streams) -> list[FailureLook]:
    return [
        FailureLook(
            one.at_ms,
            one.kind.fate.value,
            str(one.task),
            one.kind.step.name,
            one.position,
            one.kind.why,
            one.error,
        )
        for one in streams.last_failures
    ]
