"""Runs a backfill in this process, without Spark: the same tasks, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pystreams.backfill.application import Application, application_here
from pystreams.backfill.executor import PartitionFunction, Report, SliceJob
from pystreams.backfill.local_staging import LocalStaging
from pystreams.backfill.order import QueueId, merged
from pystreams.backfill.outcome import Outcome
from pystreams.backfill.reading import external_queues
from pystreams.backfill.records import Arrow, Kind
from pystreams.backfill.result import outcome_row
from pystreams.backfill.sources import BATCH_ROWS
from pystreams.backfill.stage import run_stage
from pystreams.backfill.staging import Selection, Staging


@dataclass(frozen=True, slots=True)
class InlineExecutor:
    """Implements ``executor.Executor``. ``batch_rows`` is the size of batches, which changes nothing about the
    result."""

    batch_rows: int = BATCH_ROWS

    def application(self, program: object, settings: Mapping[str, Any]) -> Application:
        return application_here(program, settings)

    def staging(self, location: str) -> LocalStaging:
        return LocalStaging(location, self.batch_rows)

    def compute(self, job: SliceJob, report: Report) -> list[Outcome]:
        one = job.work.slice
        self.staging(job.staging.location).clear(one.index)
        return [self._compute(job, task, report) for task in range(one.tasks)]

    def for_each_partition(
        self, staging: Staging, selection: Selection, function: PartitionFunction
    ) -> list[bytes]:
        return [
            function(partition, staging.rows(selection, partition))
            for partition in range(selection.partitions)
        ]

    def _compute(self, job: SliceJob, task: int, report: Report) -> Outcome:
        staging = self.staging(job.staging.location)
        processed = 0

        def count(records: int) -> None:
            nonlocal processed
            processed = records
            report(task, records, False)

        rows = run_stage(
            job.work, task, self._input(job, task, staging), work_dir=staging.location, report=count
        )
        outcome = staging.write_task(job.work.slice.index, task, rows)
        report(task, processed, True)
        return outcome

    def _input(self, job: SliceJob, task: int, staging: LocalStaging) -> Iterator[Arrow]:
        one, carried = job.work.slice, Outcome()
        if job.carried is not None:
            carried = job.carried.outcomes[task]
            yield outcome_row(carried, task)
            for store in one.stores:
                selection = Selection(Kind.STATE, store, (job.carried.slice,), one.tasks)
                yield from job.carried.staging.rows(selection, task)
        queues: list[tuple[QueueId | None, Iterator[Arrow]]] = []
        queues += external_queues(job.work, task, job.source, carried, self.batch_rows)
        for input in one.topics_of(task):
            if input.internal:
                queues += staging.queues(
                    Selection(Kind.RECORD, input.topic, input.upstream, input.partitions), task
                )
        yield from merged(queues)
