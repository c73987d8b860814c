"""Runs a backfill in this process, without Spark: the same plan, the same tasks, the same staging of slices."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pystreams.backfill.application import Application, check_fingerprint
from pystreams.backfill.manifest import InputRange, Manifest, SliceResult, Stage, StoreResult
from pystreams.backfill.order import QueueId, merged
from pystreams.backfill.outcome import Digest, Outcome
from pystreams.backfill.plan import Plan, Slice, SliceInput
from pystreams.backfill.reading import InputReader
from pystreams.backfill.records import EXTERNAL, Arrow, upstream_id
from pystreams.backfill.result import BackfillResult, outcome_row
from pystreams.backfill.sources import BATCH_ROWS, Source
from pystreams.backfill.stage import StageWork, run_stage
from pystreams.backfill.staging import Staging
from pystreams.errors import StateError
from pystreams.ids import TaskId, TopicPartition

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InlineBackfill:
    """A backfill to run here. ``sources`` are by topic; ``batch_rows`` is the size of batches, which changes nothing
    about the result."""

    application: Application
    plan: Plan
    manifest: Manifest
    sources: Mapping[str, Source]
    staging: Path
    batch_rows: int = BATCH_ROWS

    def run(self, *, resume: bool = False) -> BackfillResult:
        """Compute all slices, in order. With ``resume`` those that are staged already are not computed again.

        Raises ``StateError`` if the staging folder holds a backfill that is not to be resumed, or another one.
        """
        manifest = self._begin(resume=resume)
        staging = Staging(self.staging)
        for one in self.plan.slices:
            if one.index in manifest.slices:
                log.info("slice %d is staged already", one.index)
                continue
            outcomes = [
                staging.write_task(one.index, task, self._run_task(one, task, staging))
                for task in range(one.tasks)
            ]
            manifest = manifest.with_slice(one.index, _result(outcomes))
            manifest.write(self.staging)
            log.info("slice %d: %d records", one.index, manifest.slices[one.index].records)
        if manifest.stage is Stage.CUT:
            manifest = manifest.advanced(Stage.COMPUTED)
            manifest.write(self.staging)
        return BackfillResult(self.application.load(), self.plan, manifest, staging)

    def _begin(self, *, resume: bool) -> Manifest:
        found = Manifest.read(self.staging)
        if found is None:
            self.manifest.check_plan(self.plan)
            self.manifest.write(self.staging)
            return self.manifest
        if not resume:
            raise StateError(
                "the staging folder holds a backfill already",
                where=str(self.staging),
                hint="go on with it (resume), or choose another folder",
            )
        found.check_plan(self.plan)
        return found

    def _run_task(self, one: Slice, task: int, staging: Staging) -> Iterator[Arrow]:
        work = StageWork(
            application=self.application,
            fingerprint=self.plan.fingerprint,
            slice=one,
            partitions=self.plan.partitions,
            inputs=frozenset(p.topic for p in self.plan.external_inputs),
            commit_records=self.manifest.commit_records,
            cache_max_bytes=self.manifest.cache_max_bytes,
            cut_time_ms=self.manifest.cut_time_ms,
            work_dir=str(self.staging),
        )
        return run_stage(work, task, self._input(one, task, staging))

    # What a task reads

    def _input(self, one: Slice, task: int, staging: Staging) -> Iterator[Arrow]:
        carried = Outcome()
        if one.carried_from is not None:
            carried = staging.outcome(one.carried_from, task) or carried
            yield outcome_row(carried, task)
            for store in one.stores:
                yield from staging.state(one.carried_from, task, store, self.batch_rows)
        inputs = one.topics_of(task)
        queues: list[tuple[QueueId, Iterator[Arrow]]] = []
        for input in inputs:
            if input.internal:
                queues += self._internal(input, task, staging)
            else:
                alone = len(inputs) == 1
                rows = self._external(TaskId(one.subtopology, task), input, carried, alone=alone)
                queues.append(((input.topic, EXTERNAL), rows))
        yield from merged(queues)

    def _external(self, task: TaskId, input: SliceInput, carried: Outcome, *, alone: bool) -> Iterator[Arrow]:
        loaded = self.application.load()
        check_fingerprint(loaded, self.plan.fingerprint)
        partition = TopicPartition(input.topic, task.partition)
        reader = InputReader(
            loaded,
            task,
            input.topic,
            self.manifest.cut_time_ms,
            alone=alone,
            partition_time=carried.partition_times.get(input.topic, -1),
        )
        range = next(one for one in self.manifest.inputs if one.partition == partition)
        return reader.rows(_read(self.sources[input.topic], range, self.batch_rows))

    def _internal(
        self, input: SliceInput, task: int, staging: Staging
    ) -> Iterator[tuple[QueueId, Iterator[Arrow]]]:
        """One queue for each task that writes the topic, over all its visits."""
        partition = TopicPartition(input.topic, task)
        writers: dict[TaskId, list[int]] = {}
        for index in input.upstream:
            upstream = self.plan.slices[index]
            for number in range(upstream.tasks):
                writers.setdefault(TaskId(upstream.subtopology, number), []).append(index)
        for writer, visits in sorted(writers.items()):
            yield (input.topic, upstream_id(*writer)), self._written(staging, writer, visits, partition)

    def _written(
        self, staging: Staging, writer: TaskId, visits: list[int], partition: TopicPartition
    ) -> Iterator[Arrow]:
        for index in visits:
            yield from staging.records(index, writer.partition, partition, self.batch_rows)


def _read(source: Source, range: InputRange, batch_rows: int) -> Iterator[Arrow]:
    """A source's batches in pieces of at most ``batch_rows``."""
    for batch in source.read(range):
        for start in _starts(batch.num_rows, batch_rows):
            yield batch.slice(start, batch_rows)


def _starts(size: int, step: int) -> range:
    return range(0, size, step)


def _result(outcomes: list[Outcome]) -> SliceResult:
    stores: dict[str, Digest] = {}
    for outcome in outcomes:
        for name, digest in outcome.stores.items():
            stores[name] = stores.get(name, Digest()) + digest
    return SliceResult(
        sum(outcome.records for outcome in outcomes),
        sum(outcome.dropped for outcome in outcomes),
        {name: StoreResult(digest.entries, digest.hex) for name, digest in stores.items()},
    )
