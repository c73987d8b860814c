"""The code that runs in Spark's Python workers: a task of a slice, or a function over a partition of staged rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
from pyspark import TaskContext

from pystreams.backfill.compute.executor import PartitionFunction, TableFunction
from pystreams.backfill.compute.external_input import external_queues
from pystreams.backfill.compute.task import TaskWork, run_task
from pystreams.backfill.exchange.order import QueueId, in_order, merged
from pystreams.backfill.exchange.rows import Arrow, Kind
from pystreams.backfill.exchange.task_outcome import TaskOutcome, outcome_row
from pystreams.backfill.local_disks import local_folder
from pystreams.backfill.sources import Reader
from pystreams.backfill.spark.packing import Packed, packed, unpacked
from pystreams.backfill.workers.errors import sending_errors
from pystreams.backfill.workers.progress import Reporter

#: The columns that ``PartitionCall`` gives.
RESULT_DDL = "partition int, result binary"


@dataclass(frozen=True, slots=True)
class SliceCall:
    """For ``mapInArrow``: the task whose number is that of Spark's partition.

    It is given packed rows, sorted: the stores that an earlier visit left, then records of internal topics, and of the
    external topics ``frames``. If ``exchanged`` is false it has no such input, and what it is given only makes it run.
    ``carried`` is by task what the earlier visit left beside its stores.
    """

    work: TaskWork
    source: Reader
    carried: Mapping[int, bytes]
    frames: frozenset[str]
    exchanged: bool
    reporter: Reporter

    def __call__(self, batches: Iterator[Arrow]) -> Iterator[Arrow]:
        with sending_errors():
            yield from self._run(batches)

    def _run(self, batches: Iterator[Arrow]) -> Iterator[Arrow]:
        task = partition_id()
        report = self.reporter.of(task)
        exchanged = unpacked(batches) if self.exchanged else _drained(batches)
        rows = run_task(
            self.work,
            task,
            self._input(task, exchanged),
            work_dir=local_folder(task),
            report=report.processed,
            source=self.source,
        )
        yield from packed(rows)
        report.finished()

    def _input(self, task: int, exchanged: Iterator[Packed]) -> Iterator[Arrow]:
        carried = TaskOutcome()
        if task in self.carried:
            carried = TaskOutcome.from_json(self.carried[task])
            yield outcome_row(carried, task)
        first: list[Packed] = []
        for one in exchanged:
            if one.kind != Kind.STATE:
                first.append(one)
                break
            yield one.rows()
        streams: list[tuple[QueueId | None, Iterator[Arrow]]] = []
        streams += external_queues(self.work, task, self.source, carried, exchanged=self.frames)
        streams.append((None, in_order((one.place, one.rows()) for one in chain(first, exchanged))))
        yield from merged(streams)


@dataclass(frozen=True, slots=True)
class PartitionCall:
    """For ``mapInArrow``: ``function`` over the packed rows of a partition, which come sorted."""

    function: PartitionFunction

    def __call__(self, batches: Iterator[Arrow]) -> Iterator[Arrow]:
        with sending_errors():
            partition = partition_id()
            given = unpacked(batches)
            result = self.function(partition, in_order((one.place, one.rows()) for one in given))
            # A function need not look at its rows, but a worker that leaves some unread cannot be used again.
            for _ in given:
                pass
            columns = [pa.array([partition], pa.int32()), pa.array([result], pa.binary())]
            yield pa.record_batch(columns, names=["partition", "result"])


@dataclass(frozen=True, slots=True)
class TableCall:
    """For ``mapInArrow``: the rows of a table of the packed rows of a partition, which come sorted."""

    function: TableFunction

    def __call__(self, batches: Iterator[Arrow]) -> Iterator[Arrow]:
        with sending_errors():
            yield from self.function(in_order((one.place, one.rows()) for one in unpacked(batches)))


def plain_rows(batches: Iterator[Arrow]) -> Iterator[Arrow]:
    """For ``mapInArrow``: packed rows as rows of ``EXCHANGE_SCHEMA``."""
    for one in unpacked(batches):
        yield one.rows()


def partition_id() -> int:
    """The number of the Spark partition that this worker computes."""
    context = TaskContext.get()
    assert context is not None, "runs in a task of Spark"
    return context.partitionId()


def _drained(batches: Iterator[Arrow]) -> Iterator[Packed]:
    for _ in batches:
        pass
    return iter(())
