"""Rows of a DataFrame or table as records of a topic. Nothing here imports Spark: rows come as Arrow batches.

- ``source``: which column is what. Begin here.
- ``columns``: matches columns with the types of keys and values; one error names all mismatches.
- ``seam``: the boundary between a table and the log behind it, and what looks like a loss there.
- ``adapting``: Arrow's values as the values that a type wants. ``encoding``: rows as records, in bytes.
- ``table_topic``: what a plan asks of such a topic. ``table_then_log``: the same with a log behind the table.
  ``numbering``: the offsets of its records.
- Without Spark: ``arrow_tables`` opens files and frames, with Spark's types (``column_types``); ``arrow_topic`` is a
  topic of such a table, whose records a slice puts into ``sorted_runs``.
"""

from __future__ import annotations

from pystreams.backfill.sources.frames.seam import Bounded, Remark
from pystreams.backfill.sources.frames.source import DataFrameSource, LogAfter, SparkTable

__all__ = ["Bounded", "DataFrameSource", "LogAfter", "Remark", "SparkTable"]
