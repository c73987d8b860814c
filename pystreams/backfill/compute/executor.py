"""Executors run the tasks of a backfill: in this process (inline.py), in worker processes (workers/processes.py), or on
Spark (spark/executor.py).

Their common part is the driver (driver.py): it begins or resumes, computes slice after slice, and makes the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pystreams.backfill.application import Application, LoadedApplication
from pystreams.backfill.compute.task import TaskWork
from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.exchange.task_outcome import TaskOutcome
from pystreams.backfill.sources import DataFrameSource, LogAfter, Reader, Source, SparkTable
from pystreams.backfill.staging.port import Selection, Staged, Staging

#: Called in the driver: task, records that it has processed so far, whether it has finished.
Report = Callable[[int, int, bool], None]

#: Called for a partition with its rows; returns its result as bytes. May run more than once for a
#: partition, in any process, so it is pickled (cloudpickle) and must bear repetition.
PartitionFunction = Callable[[int, Iterator[Arrow]], bytes]


class TableFunction(Protocol):
    """Makes rows of a table of the staged rows of one partition, which come in order. May run more than once for a
    partition, in any process, so it is pickled (cloudpickle)."""

    @property
    def schema(self) -> Arrow: ...

    def __call__(self, batches: Iterator[Arrow]) -> Iterator[Arrow]: ...


@dataclass(frozen=True, slots=True)
class TableBatch:
    """Rows that a backfill adds to a table in one commit. By its ``name`` the commit is found again. The backfill began
    at ``since_ms`` (ms since 1970), so older commits need not be searched."""

    name: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class CarriedState:
    """The state with which the tasks of a slice begin: that of an earlier slice, of this backfill or of an earlier one.

    ``outcomes`` are by task.
    """

    staging: Staged
    slice: int
    outcomes: tuple[TaskOutcome, ...]


@dataclass(frozen=True, slots=True)
class SliceJob:
    """A slice to compute. ``title`` names it for people. ``work`` is the data that each worker needs, ``source`` the
    source of external inputs. ``staging`` has the slices before, and where this one is to be staged."""

    title: str
    work: TaskWork
    source: Reader
    staging: Staged
    carried: CarriedState | None = None


class Executor(Protocol):
    """Computes slices, and runs a function over their results."""

    def application(self, program: object, settings: Mapping[str, Any]) -> Application:
        """An application as this executor's processes get it: ``program`` is an ``App``, ``StreamsBuilder``,
        ``Topology`` or ``module:attribute``."""
        ...

    def open_frame(
        self,
        source: DataFrameSource,
        application: Application,
        loaded: LoadedApplication,
        topic: str,
        partitions: int,
        after: LogAfter | None,
    ) -> Source:
        """A DataFrame or table, and the log ``after`` it, as the source of a topic with ``partitions`` partitions.
        Raises ``ConfigError`` for columns that do not fit, before anything is read, and for a DataFrame or table that
        this executor cannot read."""
        ...

    def staging(self, location: str) -> Staging:
        """The staging folder at a location; made when it is first written to."""
        ...

    def compute(self, job: SliceJob, report: Report) -> list[TaskOutcome]:
        """Run all tasks of a slice, and stage their results in a new folder. Returns the outcomes by task.

        Raises the errors of tasks (see ``task.run_task``) and of ``Staging.outcomes``.
        """
        ...

    def for_each_partition(
        self, staging: Staged, selection: Selection, function: PartitionFunction
    ) -> list[bytes]:
        """Call ``function`` for every partition of staged rows, also for those without any; the results by partition.

        It is given the rows in the order of ``order.ORDER`` (a store's: by changelog key), batch by batch.
        """
        ...

    def table(self, staging: Staged, selection: Selection, function: TableFunction) -> Any:
        """The rows of ``function`` over every partition as a table of this executor: a DataFrame of Spark, which is
        computed when it is used; a ``pyarrow.Table`` in this process."""
        ...

    def prepare_table(self, table: SparkTable, schema: Arrow) -> None:
        """Create a table for rows of a schema, unless it is there. Raises ``ConfigError`` for a table that has other
        columns or cannot be created, and if this executor cannot write tables."""
        ...

    def append_to_table(
        self,
        staging: Staged,
        selection: Selection,
        function: TableFunction,
        table: SparkTable,
        batch: TableBatch,
    ) -> None:
        """Append the rows of ``function`` over every partition to a table, in one commit, unless the table has the
        batch already. Raises ``StateError`` if they cannot be written, or if it is not known any more whether the table
        has them."""
        ...
