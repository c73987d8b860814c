"""History over the same topology: plan, cut, compute, publish, and hand over to the live application."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pystreams.backfill.api import backfill, plan_backfill
    from pystreams.backfill.emitting import emit
    from pystreams.backfill.handover import hand_over
    from pystreams.backfill.inline import InlineExecutor
    from pystreams.backfill.run import Progress
    from pystreams.backfill.snapshot import open_snapshot, restore_snapshot, write_snapshot
    from pystreams.backfill.sources import (
        CsvSource,
        EmbeddedSource,
        JsonSource,
        KafkaSource,
        MemorySource,
        ParquetSource,
        TopicSources,
    )
    from pystreams.backfill.spark.archive import SparkArchiver
    from pystreams.backfill.spark.datasource import PystreamsDataSource
    from pystreams.backfill.spark.executor import SparkExecutor
    from pystreams.backfill.spark.session import spark_session

# fmt: off
__all__ = [
    "CsvSource", "EmbeddedSource", "InlineExecutor", "JsonSource", "KafkaSource", "MemorySource", "ParquetSource",
    "Progress", "PystreamsDataSource", "SparkArchiver", "SparkExecutor", "TopicSources", "backfill", "emit",
    "hand_over", "open_snapshot", "plan_backfill", "restore_snapshot", "spark_session", "write_snapshot",
]
# fmt: on

#: Imported at first use: Arrow and Spark are heavy, and not installed where nothing is backfilled.
_LAZY = {
    "CsvSource": "pystreams.backfill.sources",
    "EmbeddedSource": "pystreams.backfill.sources",
    "InlineExecutor": "pystreams.backfill.inline",
    "JsonSource": "pystreams.backfill.sources",
    "KafkaSource": "pystreams.backfill.sources",
    "MemorySource": "pystreams.backfill.sources",
    "ParquetSource": "pystreams.backfill.sources",
    "Progress": "pystreams.backfill.run",
    "PystreamsDataSource": "pystreams.backfill.spark.datasource",
    "SparkArchiver": "pystreams.backfill.spark.archive",
    "SparkExecutor": "pystreams.backfill.spark.executor",
    "TopicSources": "pystreams.backfill.sources",
    "backfill": "pystreams.backfill.api",
    "emit": "pystreams.backfill.emitting",
    "hand_over": "pystreams.backfill.handover",
    "open_snapshot": "pystreams.backfill.snapshot",
    "plan_backfill": "pystreams.backfill.api",
    "restore_snapshot": "pystreams.backfill.snapshot",
    "spark_session": "pystreams.backfill.spark.session",
    "write_snapshot": "pystreams.backfill.snapshot",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
