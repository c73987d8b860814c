"""Runs a backfill in this process, without Spark: the same tasks, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pystreams.backfill.application import Application, LoadedApplication, application_here
from pystreams.backfill.compute.executor import (
    PartitionFunction,
    Report,
    SliceJob,
    TableBatch,
    TableFunction,
)
from pystreams.backfill.compute.external_input import external_queues
from pystreams.backfill.compute.global_tables import clear_global_tables
from pystreams.backfill.compute.joining import joined
from pystreams.backfill.compute.shares import By, Cut, Share, range_of
from pystreams.backfill.compute.staged_tables import clear_staged_tables, with_staged_tables
from pystreams.backfill.compute.task import clear_left_stores, run_task
from pystreams.backfill.exchange.order import QueueId, merged
from pystreams.backfill.exchange.rows import Arrow, Kind
from pystreams.backfill.exchange.task_outcome import TaskOutcome, outcome_row
from pystreams.backfill.locations import is_url, shown
from pystreams.backfill.sources import BATCH_ROWS, DataFrameSource, LogAfter, Source, SparkTable
from pystreams.backfill.sources.frames.arrow_topic import ArrowTopic, TableEncoding
from pystreams.backfill.sources.frames.sorted_runs import Run
from pystreams.backfill.sources.frames.table_then_log import TableThenLog
from pystreams.backfill.staging.local import LocalStaging
from pystreams.backfill.staging.port import Selection, Staged
from pystreams.errors import ConfigError


@dataclass(slots=True)
class InlineExecutor:
    """Implements ``executor.Executor``. ``batch_rows`` is the size of batches, which changes nothing about the
    result."""

    batch_rows: int = field(default=BATCH_ROWS, kw_only=True)

    def application(self, program: object, settings: Mapping[str, Any]) -> Application:
        return application_here(program, settings)

    def open_frame(
        self,
        source: DataFrameSource,
        application: Application,
        loaded: LoadedApplication,
        topic: str,
        partitions: int,
        after: LogAfter | None,
    ) -> Source:
        if source.needs_spark:
            raise ConfigError(
                f"topic {topic} comes from a table that Spark reads, and this backfill runs without Spark",
                hint="run it on Spark (executor=SparkExecutor(session); on the command line --master 'local[*]'), or "
                "read the topic from plain Parquet, a log or an archive",
            )
        table = ArrowTopic(source, loaded, topic, partitions)
        return table if after is None else TableThenLog(table, after)

    def staging(self, location: str) -> LocalStaging:
        if is_url(location):
            raise ConfigError(
                f"without Spark nothing can be staged in {shown(location)}",
                why="without Spark, slices are staged in folders of this machine only",
                hint="name a folder by its path, or run on Spark",
            )
        return LocalStaging(location, self.batch_rows)

    def compute(self, job: SliceJob, report: Report) -> list[TaskOutcome]:
        with self._computing(job) as given:
            return [self.compute_task(given, task, report) for task in range(job.work.slice.tasks)]

    def for_each_partition(
        self, staging: Staged, selection: Selection, function: PartitionFunction
    ) -> list[bytes]:
        return [
            function(partition, staging.rows(selection, partition))
            for partition in range(selection.partitions)
        ]

    def table(self, staging: Staged, selection: Selection, function: TableFunction) -> Arrow:
        batches = [
            batch
            for partition in range(selection.partitions)
            for batch in function(staging.rows(selection, partition))
        ]
        return pa.Table.from_batches(batches, function.schema)

    def prepare_table(self, table: SparkTable, schema: Arrow) -> None:
        raise ConfigError(
            f"{table.description} is a table that Spark writes, and this backfill runs without Spark",
            hint="run it on Spark (executor=SparkExecutor(session); on the command line --master 'local[*]'), or name "
            "a folder for Parquet files",
        )

    def append_to_table(
        self,
        staging: Staged,
        selection: Selection,
        function: TableFunction,
        table: SparkTable,
        batch: TableBatch,
    ) -> None:
        self.prepare_table(table, function.schema)

    @contextmanager
    def _computing(self, job: SliceJob) -> Iterator[SliceJob]:
        """A slice as its tasks get it. Afterwards no temporary file is left of them."""
        staging, slice = self._own(job.staging), job.work.slice.index
        folder = staging.folder_of(slice)
        try:
            yield with_staged_tables(job, folder, self._encoded)
        finally:
            staging.drop_shares(slice)
            clear_global_tables(folder)
            clear_left_stores(folder)
            clear_staged_tables(folder)

    def _encoded(self, encoding: TableEncoding, topic: str) -> Sequence[Sequence[Run]]:
        """The runs of each piece of a table."""
        return [encoding(number) for number in range(len(encoding.pieces))]

    def _own(self, staged: Staged) -> LocalStaging:
        return self.staging(staged.location).with_slices(staged.folders)

    def compute_task(
        self, job: SliceJob, task: int, report: Report, share: Share | None = None
    ) -> TaskOutcome:
        """Compute one task of a slice, or one share of it, and stage its rows, in place of those of an attempt that was
        not finished. Raises ``NotCutError`` if the task cannot be computed in shares."""
        processed = 0

        def count(records: int) -> None:
            nonlocal processed
            processed = records
            report(task, records, False)

        staging, slice = self._own(job.staging), job.work.slice.index
        work_dir = str(staging.folder_of(slice))
        given = self._input(job, task, staging)
        keys = share
        if share is not None and share.cut.by is By.RECORD:
            keys = None
            given = share.stretch(given, range_of(job.work.slice, task, job.work.ranges))
        rows = run_task(job.work, task, given, work_dir=work_dir, report=count, source=job.source, keys=keys)
        if share is not None:
            return staging.write_share(slice, task, share.number, rows)
        outcome = staging.write_task(slice, task, rows)
        report(task, processed, True)
        return outcome

    def join_shares(self, job: SliceJob, task: int, cut: Cut) -> TaskOutcome:
        """Stage a task by joining its shares, which are staged."""
        staging, slice = self._own(job.staging), job.work.slice.index
        work_dir = str(staging.folder_of(slice))
        shares = staging.shares(slice, task, cut.shares)
        return staging.write_task(slice, task, joined(job.work, task, shares, cut.by, work_dir))

    def _input(self, job: SliceJob, task: int, staging: LocalStaging) -> Iterator[Arrow]:
        one, carried = job.work.slice, TaskOutcome()
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
