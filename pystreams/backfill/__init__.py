"""Runs an application's topology on history, in parallel, and hands the result over to the live application.

A backfill reads the past from a log or from archives, runs each task of the topology over it (in this process, in
worker processes, or on Spark), and writes everything from which a live application continues: changelogs, committed
offsets, records for output topics.

The parts, in the order in which a backfill goes through them; each imports only those before it:

- ``sources/``: history, as records by topic partition and offset. ``archive/`` writes the files and tables that some
  of them read.
- ``exchange/``: rows as Arrow: records, entries of stores, outcomes of tasks, and their order within a task.
- ``plan/``: slices (a sub-topology at one visit) in an order that can be computed, the cut, and the manifest of both.
- ``staging/``: the folder to which slices write their rows, and the manifest's files.
- ``columns/``: the typed columns of stores and records, for tables.
- ``compute/``: the driver, which computes slice after slice, and the task function, which runs one task with the
  live engine. Begin with ``compute.driver``.
- ``display/``: the progress of slices, in notebooks and on terminals.
- ``handover/``: changelogs, offsets and records go to the live application, all of it or nothing.
- ``snapshot/``: the same as a folder that a live application restores from.
- ``tables/``: topics and stores as tables for SQL.
- ``verification/``: the stores of a live application, compared with what history gives.
- ``workers/``: an executor on worker processes of this machine, and what they share with those of Spark.
- ``spark/``: executor, staging, archiver and data source on Spark; nothing else here imports Spark.

``api`` has the functions for scripts and notebooks; the names below are public. ``application`` brings the program to
workers, ``locations`` knows paths and URLs, ``local_disks`` the folders for temporary files.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pystreams.backfill.api import backfill, plan_backfill
    from pystreams.backfill.compute.driver import Progress
    from pystreams.backfill.compute.inline import InlineExecutor
    from pystreams.backfill.handover.emit import emit
    from pystreams.backfill.handover.hand_over import hand_over
    from pystreams.backfill.snapshot import open_snapshot, restore_snapshot, write_snapshot
    from pystreams.backfill.sources import (
        CsvSource,
        DataFrameSource,
        DeltaArchive,
        EmbeddedSource,
        IcebergArchive,
        JsonSource,
        KafkaSource,
        MemorySource,
        ParquetSource,
        SparkTable,
        TopicSources,
    )
    from pystreams.backfill.spark.archive import SparkArchiver
    from pystreams.backfill.spark.datasource import PystreamsDataSource
    from pystreams.backfill.spark.executor import SparkExecutor
    from pystreams.backfill.spark.session import spark_session
    from pystreams.backfill.verification.outcome import Verified
    from pystreams.backfill.verification.verifying import verify
    from pystreams.backfill.workers.processes import ProcessExecutor

# fmt: off
__all__ = [
    "CsvSource", "DataFrameSource", "DeltaArchive", "EmbeddedSource", "IcebergArchive", "InlineExecutor", "JsonSource",
    "KafkaSource", "MemorySource", "ParquetSource", "ProcessExecutor", "Progress", "PystreamsDataSource",
    "SparkArchiver", "SparkExecutor", "SparkTable", "TopicSources", "Verified", "backfill", "emit", "hand_over",
    "open_snapshot", "plan_backfill", "restore_snapshot", "spark_session", "verify", "write_snapshot",
]
# fmt: on

#: Imported at first use: Arrow and Spark are heavy, and not installed where nothing is backfilled.
_LAZY = {
    "CsvSource": "pystreams.backfill.sources",
    "DataFrameSource": "pystreams.backfill.sources",
    "DeltaArchive": "pystreams.backfill.sources",
    "EmbeddedSource": "pystreams.backfill.sources",
    "IcebergArchive": "pystreams.backfill.sources",
    "InlineExecutor": "pystreams.backfill.compute.inline",
    "JsonSource": "pystreams.backfill.sources",
    "KafkaSource": "pystreams.backfill.sources",
    "MemorySource": "pystreams.backfill.sources",
    "ParquetSource": "pystreams.backfill.sources",
    "ProcessExecutor": "pystreams.backfill.workers.processes",
    "Progress": "pystreams.backfill.compute.driver",
    "PystreamsDataSource": "pystreams.backfill.spark.datasource",
    "SparkArchiver": "pystreams.backfill.spark.archive",
    "SparkExecutor": "pystreams.backfill.spark.executor",
    "SparkTable": "pystreams.backfill.sources",
    "TopicSources": "pystreams.backfill.sources",
    "Verified": "pystreams.backfill.verification.outcome",
    "backfill": "pystreams.backfill.api",
    "emit": "pystreams.backfill.handover.emit",
    "hand_over": "pystreams.backfill.handover.hand_over",
    "open_snapshot": "pystreams.backfill.snapshot",
    "plan_backfill": "pystreams.backfill.api",
    "restore_snapshot": "pystreams.backfill.snapshot",
    "spark_session": "pystreams.backfill.spark.session",
    "verify": "pystreams.backfill.verification.verifying",
    "write_snapshot": "pystreams.backfill.snapshot",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
