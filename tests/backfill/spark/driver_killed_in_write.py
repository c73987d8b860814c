"""A driver whose worker ends it while Spark writes a slice:

python -m tests.backfill.spark.driver_killed_in_write STAGING
"""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

from pystreams import App
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.backfill.spark.session import spark_session
from tests.backfill.kit import Backfill, History, lines, memory
from tests.backfill.spark.kinds import SESSION
from tests.live.support import eventually

RECORDS = 700
_BYTES = 100_000


def history() -> History:
    records = [(f"k{number % 50}", number, number) for number in range(RECORDS)]
    return {"seeds": [lines(records), lines(records[: RECORDS // 2])]}


def counted(watched: tuple[str, int] | None = None) -> App:
    """Large values, made of small ones, counted under other keys. ``watched`` are the staging folder and the process
    that a worker ends when the first slice is half written."""

    def large(seed: int) -> str:
        # More than a task keeps before it hands anything on: by then it has given some to Spark.
        if watched is not None and seed == RECORDS - 20:
            staging, driver = watched
            eventually(lambda: list(Path(staging).rglob("*.parquet")), "Spark writes")
            # The JVM first: left alone, it would clear away what is half written.
            for process in (_parent_of(os.getppid()), driver):
                os.kill(process, signal.SIGKILL)
        return random.Random(seed).randbytes(_BYTES // 2).hex()

    app = App("large", statestore_cache_max_bytes=0)
    values = app.stream("seeds", key=str, value=int).map_values(large)
    values.group_by(lambda value: value[:1], key=str, value=str).count(name="counts")
    return app


def _parent_of(process: int) -> int:
    """The parent of a worker's parent, Spark's daemon, is the JVM."""
    return int(Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])


def backfill_on(executor: Any, staging: Path, watched: tuple[str, int] | None = None) -> Backfill:
    return Backfill(counted(watched), memory(history()), staging, executor=executor)


def main() -> None:
    staging = Path(sys.argv[1])
    with spark_session("local[2]", app_name="dies", conf=SESSION) as session:
        backfill_on(SparkExecutor(session), staging, (str(staging), os.getpid())).run()


if __name__ == "__main__":
    main()
