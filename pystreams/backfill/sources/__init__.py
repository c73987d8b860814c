"""Where history is read from. Sources are picklable: each worker reads its own partitions."""

from __future__ import annotations

from pystreams.backfill.sources.by_topic import TopicSources
from pystreams.backfill.sources.csv_files import CsvSource
from pystreams.backfill.sources.json_files import JsonSource
from pystreams.backfill.sources.logs import EmbeddedSource, KafkaSource, read_log
from pystreams.backfill.sources.memory import MemorySource
from pystreams.backfill.sources.parquet_files import ParquetSource
from pystreams.backfill.sources.source import BATCH_ROWS, Source, within

__all__ = [
    "BATCH_ROWS",
    "CsvSource",
    "EmbeddedSource",
    "JsonSource",
    "KafkaSource",
    "MemorySource",
    "ParquetSource",
    "Source",
    "TopicSources",
    "read_log",
    "within",
]
