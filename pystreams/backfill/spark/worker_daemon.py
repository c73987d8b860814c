"""The process from which Spark forks its Python workers on this machine (``spark.python.daemon.module``). It has
imported the modules that each of them needs, so a worker begins about a second earlier."""

from __future__ import annotations

import gc
import importlib
from typing import Final

from pyspark import daemon

#: Spark's own worker and what it imports for data in Arrow format, and all that a task of a backfill needs.
_MODULES: Final = (
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "pandas",
    "pyarrow",
    "pystreams.backfill.compute.task",
    "pystreams.backfill.spark.calls",
    "pystreams.backfill.spark.frame_worker",
)


def main() -> None:
    """Does not return before Spark ends."""
    for module in _MODULES:
        importlib.import_module(module)
    # Workers share the memory of what is imported, as long as nobody writes to it.
    gc.freeze()
    daemon.manager()


if __name__ == "__main__":
    main()
