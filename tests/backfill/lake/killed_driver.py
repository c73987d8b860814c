"""A driver that ends while it appends to a table, or right after the table's commit:

python -m tests.backfill.lake.killed_driver LAKE FORMAT NAME STAGING amid|after
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pystreams.backfill import emit
from pystreams.backfill.compute.executor import TableBatch, TableFunction
from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.sources import SparkTable
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.backfill.spark.session import spark_session
from pystreams.backfill.staging.port import Selection, Staged
from tests.backfill.kit import Backfill, memory
from tests.backfill.lake.formats import settings, table_of
from tests.backfill.typed_program import typed, typed_history

TOPIC = "sessions"


class Dying(SparkExecutor):
    """Ends this process when a task hands out the rows of the last partition, or when the commit is done."""

    amid = False

    def append_to_table(
        self,
        staging: Staged,
        selection: Selection,
        function: TableFunction,
        table: SparkTable,
        batch: TableBatch,
    ) -> None:
        if self.amid:
            function = _EndsAll(function, selection.partitions - 1, os.getpid())
        super().append_to_table(staging, selection, function, table, batch)
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class _EndsAll:
    function: TableFunction
    last: int
    driver: int

    @property
    def schema(self) -> Arrow:
        return self.function.schema

    def __call__(self, batches: Iterator[Arrow]) -> Iterator[Arrow]:
        for rows in self.function(batches):
            yield rows
            if rows.column("partition")[0].as_py() == self.last:
                # The JVM first: left alone, it would clear away what is half written.
                for process in (_parent_of(os.getppid()), self.driver):
                    os.kill(process, signal.SIGKILL)


def _parent_of(process: int) -> int:
    """The parent of a worker's parent, Spark's daemon, is the JVM."""
    return int(Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])


def backfill_on(executor: Any, staging: Path) -> Backfill:
    return Backfill(typed(), memory(typed_history(), {TOPIC: 2}), staging, executor=executor)


def main() -> None:
    lake, format, name, staging, moment = sys.argv[1:]
    conf = {**settings(Path(lake)), "spark.local.dir": f"{staging}-local"}
    with spark_session("local[2]", app_name="dies", conf=conf) as session:
        executor = Dying(session)
        executor.amid = moment == "amid"
        result = backfill_on(executor, Path(staging)).run()
        emit(result, {TOPIC: table_of(format, Path(lake), name)})


if __name__ == "__main__":
    main()
