"""Runs a backfill's tasks on Spark: one Spark partition per task, whatever the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema

from pystreams.backfill.application import (
    Application,
    LoadedApplication,
    PickledApplication,
    application_here,
)
from pystreams.backfill.compute.executor import (
    PartitionFunction,
    Report,
    SliceJob,
    TableBatch,
    TableFunction,
)
from pystreams.backfill.exchange.order import ORDER
from pystreams.backfill.exchange.rows import Arrow, Kind
from pystreams.backfill.exchange.task_outcome import TaskOutcome
from pystreams.backfill.sources import DataFrameSource, LogAfter, Source, SparkTable
from pystreams.backfill.sources.frames.table_then_log import TableThenLog, table_topics, without
from pystreams.backfill.spark import appending
from pystreams.backfill.spark.access import access_to
from pystreams.backfill.spark.arrow import mapped
from pystreams.backfill.spark.calls import RESULT_DDL, PartitionCall, SliceCall, TableCall
from pystreams.backfill.spark.failures import receiving_errors
from pystreams.backfill.spark.frames import FrameTopic
from pystreams.backfill.spark.packing import PACKED_DDL
from pystreams.backfill.spark.staging import SparkStaging
from pystreams.backfill.staging.port import Selection, Staged
from pystreams.backfill.staging.staging_folder import new_folder
from pystreams.backfill.workers.progress import Reporter
from pystreams.backfill.workers.shipping import shipped

#: Settings of the session that the executor works with; the user's own session keeps its own.
_SETTINGS: Mapping[str, str] = {
    # Partitions are tasks: none may be put together with another, left out because it is empty, or split.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
    # Packed rows are large: a few at a time.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
    "spark.sql.execution.arrow.maxBytesPerBatch": "4m",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.parquet.columnarReaderBatchSize": "16",
}


class SparkExecutor:
    """Implements ``executor.Executor``. The session stays its owner's: it is not stopped.

    ``py_files`` are modules, packages as zip or wheels that workers need to import the application.
    """

    def __init__(self, session: SparkSession, *, py_files: Sequence[str] = ()) -> None:
        """Raises ``ConfigError`` for a session of Spark Connect that is older than Spark 4.3."""
        self._users_session = session
        self._access = access_to(session, py_files)
        self._session = self._access.session
        for name, value in _SETTINGS.items():
            self._session.conf.set(name, value)

    def application(self, program: object, settings: Mapping[str, Any]) -> Application:
        here = application_here(program, settings)
        if isinstance(program, str):
            return here
        return PickledApplication(shipped(program), dict(settings))

    def open_frame(
        self,
        source: DataFrameSource,
        application: Application,
        loaded: LoadedApplication,
        topic: str,
        partitions: int,
        after: LogAfter | None,
    ) -> Source:
        frame = FrameTopic(self._session, source, application, loaded, topic, partitions)
        return frame if after is None else TableThenLog(frame, after)

    def staging(self, location: str) -> SparkStaging:
        return SparkStaging(self._session, location, self._access.folder(location))

    def compute(self, job: SliceJob, report: Report) -> list[TaskOutcome]:
        one = job.work.slice
        staging = self._own(job.staging)
        with self._access.named(job.title):
            with (
                self._access.listening(report) as reporter,
                receiving_errors(),
                self._staged_frames(job, staging) as frames,
            ):
                staging.write(one.index, self._rows(job, staging, frames, reporter))
            return staging.outcomes(one.index, one.tasks)

    def for_each_partition(
        self, staging: Staged, selection: Selection, function: PartitionFunction
    ) -> list[bytes]:
        rows = self._own(staging).selected(selection)
        exchanged = _exchanged(rows, selection.partitions)
        with receiving_errors(), self._access.named(selection.topic):
            results = mapped(exchanged, PartitionCall(function), RESULT_DDL).collect()
        return [bytes(result) for _, result in sorted((row.partition, row.result) for row in results)]

    def table(self, staging: Staged, selection: Selection, function: TableFunction) -> DataFrame:
        rows = _exchanged(self._own(staging).selected(selection), selection.partitions)
        table = mapped(rows, TableCall(function), from_arrow_schema(function.schema))
        return self._access.in_users_session(table)

    def prepare_table(self, table: SparkTable, schema: Arrow) -> None:
        appending.prepare(self._users_session, table, from_arrow_schema(schema))

    def append_to_table(
        self,
        staging: Staged,
        selection: Selection,
        function: TableFunction,
        table: SparkTable,
        batch: TableBatch,
    ) -> None:
        with self._access.named(selection.topic):
            appending.append(self.table(staging, selection, function), table, batch)

    def _own(self, staged: Staged) -> SparkStaging:
        return self.staging(staged.location).with_slices(staged.folders)

    @contextmanager
    def _staged_frames(self, job: SliceJob, staging: SparkStaging) -> Iterator[dict[str, DataFrame]]:
        """The packed rows of the topics of a slice that come from DataFrames. They are computed in jobs of their own,
        because a DataFrame is read with the settings of its session, and packed rows with those of this one."""
        one = job.work.slice
        staged: dict[str, SparkStaging] = {}
        carried = () if job.carried is None else job.carried.outcomes
        try:
            for topic, (frame, after) in table_topics(job.source, FrameTopic).items():
                if topic not in {input.topic for input in one.inputs}:
                    continue
                times = {task: outcome.partition_times.get(topic, -1) for task, outcome in enumerate(carried)}
                staged[topic] = staging.with_slices({one.index: new_folder(one.index)})
                staged[topic].write(one.index, frame.packed_rows(job.work, times, after))
            yield {topic: own.packed((one.index,), sql.lit(True)) for topic, own in staged.items()}
        finally:
            for own in staged.values():
                own.discard(one.index)

    def _rows(
        self, job: SliceJob, staging: SparkStaging, frames: Mapping[str, DataFrame], reporter: Reporter
    ) -> DataFrame:
        """The output of the tasks of a slice, as packed rows."""
        one, carried = job.work.slice, job.carried
        given = [
            staging.selected(Selection(Kind.RECORD, input.topic, input.upstream, input.partitions))
            for input in one.inputs
            if input.internal
        ]
        given += frames.values()
        if carried is not None:
            stores = sql.col("kind") == int(Kind.STATE)
            given.append(self._own(carried.staging).packed((carried.slice,), stores))
        outcomes = () if carried is None else carried.outcomes
        call = SliceCall(
            job.work,
            without(table_topics(job.source, FrameTopic), job.source),
            {task: outcome.to_json() for task, outcome in enumerate(outcomes)},
            frozenset(frames),
            bool(given),
            reporter,
        )
        if not given:
            return mapped(self._session.range(0, one.tasks, 1, one.tasks), call, PACKED_DDL)
        return mapped(_exchanged(reduce(DataFrame.unionAll, given), one.tasks), call, PACKED_DDL)


def _exchanged(rows: DataFrame, partitions: int) -> DataFrame:
    """Packed rows of every partition in Spark's partition of the same number, in order."""
    return rows.repartitionById(partitions, "partition").sortWithinPartitions(*ORDER)
