"""Sources: where history is read from. They are picklable, because each worker reads its own partitions.

- ``source``: the interface of a source, and the part of it that tasks need. Begin here. ``ranges``: the offsets that
  are read of a partition.
- ``logs``: Kafka and the embedded log. ``memory``: records of this process. ``by_topic``: several sources as one.
- Archives in files: ``parquet_files``, ``csv_files`` and ``json_files``, with what they have in common
  (``file_source``, ``text_files``, ``file_columns``). ``folder``: files on this machine or in object stores.
  ``file_index``: the files that hold a range of a partition. ``archive_log``: the log of an archive that pystreams
  wrote.
- ``lake/``: archives in tables of Delta Lake and Iceberg.
- ``frames/``: DataFrames, whose rows become the records of a topic.
- ``last_records``: the record before the cut, by which a log is recognised later.
"""

from __future__ import annotations

from pystreams.backfill.sources.by_topic import TopicSources
from pystreams.backfill.sources.csv_files import CsvSource
from pystreams.backfill.sources.frames import Bounded, DataFrameSource, LogAfter, Remark, SparkTable
from pystreams.backfill.sources.json_files import JsonSource
from pystreams.backfill.sources.lake import DeltaArchive, IcebergArchive
from pystreams.backfill.sources.logs import EmbeddedSource, KafkaSource, read_log
from pystreams.backfill.sources.memory import MemorySource
from pystreams.backfill.sources.parquet_files import ParquetSource
from pystreams.backfill.sources.source import BATCH_ROWS, Reader, Source, within

__all__ = [
    "BATCH_ROWS",
    "Bounded",
    "CsvSource",
    "DataFrameSource",
    "DeltaArchive",
    "EmbeddedSource",
    "IcebergArchive",
    "JsonSource",
    "KafkaSource",
    "LogAfter",
    "MemorySource",
    "ParquetSource",
    "Reader",
    "Remark",
    "Source",
    "SparkTable",
    "TopicSources",
    "read_log",
    "within",
]
