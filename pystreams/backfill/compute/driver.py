"""Runs a backfill: begins or resumes it, computes slice after slice, and returns the result.

The same for every executor. Only the driver writes the manifest: a slice counts once the manifest names it, so a
resumed run never uses an incomplete slice of a driver that died. If there are two drivers on one staging folder, the
later one continues, and the other one fails at its next slice (staging/manifest_files.py).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from pystreams.backfill.application import Application, LoadedApplication
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.compute.executor import CarriedState, Executor, Report, SliceJob
from pystreams.backfill.compute.shares import records_of
from pystreams.backfill.compute.summary import ResultSummary, Summarised, remarks_on_boundaries
from pystreams.backfill.compute.task import TaskWork
from pystreams.backfill.exchange.task_outcome import Digest, TaskOutcome
from pystreams.backfill.locations import shown
from pystreams.backfill.plan.combining import behind_topics
from pystreams.backfill.plan.manifest import Manifest, SliceResult, Status, StoreResult
from pystreams.backfill.plan.rules import check_rules, rules_of
from pystreams.backfill.plan.slices import BackfillPlan, Slice
from pystreams.backfill.plan.ways import without_holding
from pystreams.backfill.sources import Source
from pystreams.backfill.staging.port import Staging
from pystreams.backfill.staging.staging_folder import new_folder
from pystreams.clock import Deadline, SystemClock
from pystreams.engine.failures.lateness import LateRecords, add_up
from pystreams.engine.failures.unmatched import add_up_unmatched
from pystreams.errors import FoldingError, StateError
from pystreams.ids import TopicPartition
from pystreams.times import show_time

log = logging.getLogger(__name__)

#: The least time between two progress reports of a task.
_PROGRESS_MS = 250


@dataclass(frozen=True, slots=True, repr=False)
class Progress(Summarised):
    """The progress of a task of a slice: records processed, and the estimated total (exact once it is ``finished``). A
    task that is retried starts counting again."""

    slice: int
    task: int
    records: int
    expected: int
    finished: bool

    def _summary(self) -> ResultSummary:
        about = "" if self.finished else "about "
        ending = ", finished" if self.finished else ""
        return ResultSummary(
            f"Slice {self.slice + 1}, task {self.task}: {self.records:,} of {about}{self.expected:,} records{ending}",
            [],
        )


#: Called in the driver, from any of its threads.
OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, repr=False)
class Planned(Summarised):
    """A backfill to run: planned and cut. ``carried`` is the state from an earlier backfill, by sub-topology.
    ``begun``: the cut is that of a backfill that was begun before. A notebook shows it as a table of its slices."""

    loaded: LoadedApplication
    application: Application
    plan: BackfillPlan
    manifest: Manifest
    source: Source
    carried: Mapping[int, CarriedState] = field(default_factory=dict)
    begun: bool = False

    def _summary(self) -> ResultSummary:
        expected = self.expected_records()
        rows = [
            ("slice", self.plan.title_of(one), _reads(one, expected[one.index])) for one in self.plan.slices
        ]
        until = show_time(self.manifest.cut_time_ms)
        title = f"Plan of a backfill of {self.manifest.application_id}, up to {until}"
        return ResultSummary(title, rows, remarks_on_boundaries(self.manifest))

    def expected_records(self) -> dict[int, int | None]:
        """By slice, the estimated number of records that it will read, from its ranges of offsets; None if it also
        reads an earlier slice, whose output is not known before it ran."""
        return {
            one.index: None
            if any(input.internal for input in one.inputs)
            else sum(records_of(one, task, self.manifest.inputs) for task in range(one.tasks))
            for one in self.plan.slices
        }

    def expected_of(self, one: Slice, task: int, written: Mapping[TopicPartition, int]) -> int:
        """The estimated number of records that a task reads; ``written`` counts those of internal topics."""
        internal = (input.topic for input in one.topics_of(task) if input.internal)
        return records_of(one, task, self.manifest.inputs) + sum(
            written.get(TopicPartition(topic, task), 0) for topic in internal
        )


def _reads(one: Slice, records: int | None) -> str:
    topics = ", ".join(input.topic for input in one.inputs)
    return f"reads {topics}" if records is None else f"reads {records:,} records of {topics}"


def run(
    planned: Planned,
    executor: Executor,
    location: str,
    *,
    resume: bool = False,
    overwrite: bool = False,
    progress: OnProgress | None = None,
) -> BackfillResult:
    """Compute all slices, in order. ``resume`` skips the slices that are already staged, ``overwrite`` replaces the
    staged backfill.

    Raises ``StateError`` if the staging folder holds a backfill that is not to be resumed, ``TopologyError`` if it is
    another one's, ``ConfigError`` if it was begun with other settings or from another source and is not finished;
    and what tasks raise (``task.run_task``).
    """
    staging = executor.staging(location)
    return _Run(
        _begun(planned, staging, resume=resume, overwrite=overwrite), executor, staging, progress
    ).run()


def _begun(planned: Planned, staging: Staging, *, resume: bool, overwrite: bool) -> Planned:
    """The plan with its manifest: with ``resume`` the one in the staging folder, if there is one, else a new one."""
    found, rules = staging.read_manifest(), rules_of(planned.loaded, planned.source)
    if found is not None and found.backfill_id == planned.manifest.previous_id:
        raise StateError(
            "a backfill cannot replace the one that it continues",
            where=shown(staging.location),
            hint="choose another folder",
        )
    if found is None or overwrite:
        manifest = replace(planned.manifest, rules=rules)
    elif resume:
        manifest = found
    else:
        raise StateError(
            "the staging folder holds a backfill already",
            where=shown(staging.location),
            hint="continue it (resume), replace it (overwrite), or choose another folder",
        )
    manifest.check_plan(planned.plan)
    finished = manifest.status is not Status.CUT
    check_rules(manifest.rules, rules, planned.source, staging.location, finished=finished)
    if not finished:
        # Write the manifest even if it is not new: another driver that is still alive then notices this one.
        staging.write_manifest(manifest)
        staging.with_slices(manifest.folders).clear()
    return replace(planned, manifest=manifest)


class _Run:
    def __init__(
        self, planned: Planned, executor: Executor, staging: Staging, progress: OnProgress | None
    ) -> None:
        self._planned = planned
        self._executor = executor
        self._staging = staging
        self._progress = progress
        #: The outcomes of the tasks of each staged slice.
        self._outcomes: dict[int, list[TaskOutcome]] = {}

    def run(self) -> BackfillResult:
        manifest = self._planned.manifest
        for one in self._planned.plan.slices:
            if one.index in manifest.folders:
                staged = self._staging.with_slices(manifest.folders)
                self._outcomes[one.index] = staged.outcomes(one.index, one.tasks)
                log.info("slice %d is staged already", one.index)
        while (next_one := self._next(manifest)) is not None:
            manifest = self._advanced(manifest, next_one)
            self._staging.write_manifest(manifest)
        if manifest.status is Status.CUT:
            manifest = manifest.advanced(Status.COMPUTED)
            self._staging.write_manifest(manifest)
        planned, staged = self._planned, self._staging.with_slices(manifest.folders)
        return BackfillResult(
            planned.application,
            planned.loaded,
            planned.plan,
            manifest,
            staged,
            self._executor,
            self._outcomes,
        )

    def _next(self, manifest: Manifest) -> Slice | None:
        """The first slice that is not staged."""
        return next((one for one in self._planned.plan.slices if one.index not in manifest.folders), None)

    def _advanced(self, manifest: Manifest, one: Slice) -> Manifest:
        """Compute a slice; returns the manifest with it. If its steps cannot keep their results, returns the manifest
        with other ways of computing instead."""
        folder = new_folder(one.index)
        staged = self._staging.with_slices({**manifest.folders, one.index: folder})
        planned = self._planned
        try:
            outcomes = self._compute(manifest, one, staged)
        except FoldingError as error:
            changed = without_holding(manifest, planned.loaded, planned.plan, one, error.why or error.what)
            if changed == manifest:
                raise
            first = self._next(changed)
            assert first is not None
            log.warning("slice %d is computed again, with each update: %s", first.index, error)
            # The manifest is written first, because slices that it does not name are deleted.
            self._staging.write_manifest(changed)
            self._staging.with_slices(changed.folders).clear()
            return changed
        self._outcomes[one.index] = outcomes
        log.info("slice %d: %d records", one.index, sum(outcome.records for outcome in outcomes))
        return manifest.with_slice(one.index, folder, self._result(manifest, one, outcomes))

    def _result(self, manifest: Manifest, one: Slice, outcomes: Sequence[TaskOutcome]) -> SliceResult:
        topics = {
            behind.node.name: behind.topic
            for behind in behind_topics(self._planned.loaded.built)
            if behind.node.name in manifest.combined
        }
        counts = self._sent(one)
        # A step that gets partials has read the records for which they stand.
        counted = [
            [
                late._replace(read=counts[TopicPartition(topics[late.step], task)])
                if late.step in topics
                else late
                for late in outcome.late
            ]
            for task, outcome in enumerate(outcomes)
        ]
        return _result(outcomes, add_up(chain.from_iterable(counted)))

    def _sent(self, one: Slice) -> Counter[TopicPartition]:
        """How many records the slices before it have sent to the topics between them."""
        counts: Counter[TopicPartition] = Counter()
        for outcome in self._before(one):
            counts.update({partition: count for partition, (count, _) in outcome.sequences.items()})
        return counts

    def _before(self, one: Slice) -> Iterator[TaskOutcome]:
        """The outcomes of the tasks that have written the internal topics of a slice."""
        for upstream in {index for input in one.inputs for index in input.upstream}:
            yield from self._outcomes[upstream]

    def _compute(self, manifest: Manifest, one: Slice, staged: Staging) -> list[TaskOutcome]:
        """Report every task at its beginning and at its end, even if reports in between are lost."""
        job, report = self._job(manifest, one, staged), self._report(one)
        for task in range(one.tasks):
            report(task, 0, False)
        try:
            outcomes = self._executor.compute(job, report)
        except Exception:
            # Another driver that has taken over deletes unfinished slices of this run: report that as the error.
            self._staging.require_own()
            raise
        for task, outcome in enumerate(outcomes):
            report(task, outcome.records, True)
        return outcomes

    def _job(self, manifest: Manifest, one: Slice, staged: Staging) -> SliceJob:
        planned = self._planned
        work = TaskWork(
            application=planned.application,
            fingerprint=planned.plan.fingerprint,
            slice=one,
            partitions=planned.plan.partitions,
            widest=planned.plan.widest,
            ranges=manifest.inputs,
            commit_records=manifest.commit_records,
            cache_max_bytes=manifest.cache_max_bytes,
            cut_time_ms=manifest.cut_time_ms,
            folded=manifest.folded,
            combined=manifest.combined,
        )
        return SliceJob(planned.plan.title_of(one), work, planned.source, staged, self._carried(one, staged))

    def _carried(self, one: Slice, staged: Staging) -> CarriedState | None:
        if one.carried_from is None:
            return self._planned.carried.get(one.subtopology)
        return CarriedState(staged, one.carried_from, tuple(self._outcomes[one.carried_from]))

    def _report(self, one: Slice) -> Report:
        progress, expected = self._progress, self._expected(one)
        clock = SystemClock()
        next_times = [Deadline(clock, 0)] * one.tasks

        def report(task: int, records: int, finished: bool) -> None:
            if progress is not None and (finished or next_times[task].expired()):
                next_times[task] = Deadline(clock, _PROGRESS_MS)
                # Compaction and markers leave fewer records than there are offsets, which is known at the end.
                known = records if finished else expected[task]
                progress(Progress(one.index, task, records, known, finished))

        return report

    def _expected(self, one: Slice) -> Sequence[int]:
        """By task, the estimated number of records that it reads."""
        written: Counter[TopicPartition] = Counter()
        for outcome in self._before(one):
            written.update(outcome.written)
        return [self._planned.expected_of(one, task, written) for task in range(one.tasks)]


def _result(outcomes: Sequence[TaskOutcome], late: Iterable[LateRecords]) -> SliceResult:
    stores: dict[str, Digest] = {}
    for outcome in outcomes:
        for name, digest in outcome.stores.items():
            stores[name] = stores.get(name, Digest()) + digest
    return SliceResult(
        sum(outcome.records for outcome in outcomes),
        sum(outcome.dropped for outcome in outcomes),
        {
            name: StoreResult(digest.entries, digest.hex, digest.oldest_ms, digest.reached_ms)
            for name, digest in stores.items()
        },
        sum((Counter(outcome.left_out) for outcome in outcomes), Counter()),
        tuple(late),
        tuple(add_up_unmatched(chain.from_iterable(outcome.joins for outcome in outcomes))),
        sum((Counter(outcome.causes) for outcome in outcomes), Counter()),
    )
