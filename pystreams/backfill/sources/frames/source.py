"""The description of a DataFrame or table as the history of a topic."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Final, TypeAlias

from pystreams.backfill.locations import shown
from pystreams.backfill.sources.source import Source
from pystreams.errors import ConfigError

#: ``pyspark.sql.DataFrame``, which only the executor on Spark imports; or whatever gives its rows as Arrow columns
#: (``__arrow_c_stream__``): a DataFrame of pandas or Polars, a ``pyarrow.Table``.
DataFrame: TypeAlias = Any

#: Spark takes patterns for places.
_GLOB: Final = re.compile(r"[*?\[{]")

#: One column, or several as the fields of an object.
ColumnNames = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class SparkTable:
    """A table that Spark opens once it runs: ``spark.read.format(format).options(**options).load(place)``; the format
    ``table`` is one of a catalog, by its name. A folder or file of the format ``parquet`` is read without Spark, too,
    unless there are options. As the target of ``emit`` it is one of ``iceberg`` or ``delta``, and the options are those
    of Spark's writer."""

    format: str
    place: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def description(self) -> str:
        """For people."""
        return f"{self.format} {shown(self.place)}"

    @property
    def is_plain(self) -> bool:
        """Whether it can be read without Spark."""
        return self.format == "parquet" and not self.options and not _GLOB.search(self.place)


@dataclass(frozen=True, eq=False, slots=True)
class DataFrameSource:
    """A DataFrame or table whose rows are the records of a topic.

    - ``frame``: a DataFrame of Spark, which ``SparkExecutor`` reads; a DataFrame of pandas or Polars, or a
      ``pyarrow.Table``, which every executor reads; or a table that the executor opens.
    - ``timestamp``: the column of the records' timestamps: a timestamp, a date, or an integer in ms since 1970. Spark's
      timestamps without a time zone are taken as UTC.
    - ``key``, ``value``: the columns from which the serdes of the topic write keys and values. A name: that column is
      the key or value. Several names: they are fields of an object. Without ``key`` records have no key; without
      ``value`` all columns but ``partition`` and ``offset`` are fields of an object. A binary column holds the bytes
      of the topic themselves.
    - ``partition``, ``offset``: the columns with the places that the records had in the topic. With both of them the
      records are in the order of their offsets, and a live application can go on behind them. Without ``partition``
      the partition is that of the key, as producers choose it. Without one of them records are numbered in the order
      of timestamp, ``offset`` if there is one, key and value.
    - ``partitions``: the number of the topic's partitions, unless ``backfill(partitions=...)`` gives it.
    """

    frame: DataFrame | SparkTable
    timestamp: str
    key: ColumnNames | None = None
    value: ColumnNames | None = None
    partition: str | None = None
    offset: str | None = None
    partitions: int | None = None

    def __post_init__(self) -> None:
        """Raises ``ConfigError`` for what is neither a DataFrame nor a table, and for a number of partitions that a
        topic cannot have."""
        _check_frame(self.frame)
        if self.partitions is not None and self.partitions < 1:
            raise ConfigError(
                f"a topic cannot have {self.partitions} partitions",
                hint="give the number of the topic's partitions where the application runs live",
            )

    @property
    def exact(self) -> bool:
        """Whether the records have the offsets of the topic."""
        return self.partition is not None and self.offset is not None

    @property
    def needs_spark(self) -> bool:
        """Whether only Spark can read it."""
        if isinstance(self.frame, SparkTable):
            return not self.frame.is_plain
        return is_of_spark(self.frame)


def is_of_spark(frame: object) -> bool:
    """Whether it is a DataFrame of Spark."""
    return hasattr(frame, "sparkSession")


def _check_frame(frame: object) -> None:
    """Raises ``ConfigError`` for what is neither a DataFrame nor a table."""
    if isinstance(frame, SparkTable) or is_of_spark(frame) or hasattr(frame, "__arrow_c_stream__"):
        return
    kind = type(frame)
    if isinstance(frame, str | PathLike):
        hint = f"name the table's format, too: SparkTable('parquet', {str(frame)!r}), or give a DataFrame"
    else:
        hint = "make one of it: pandas.DataFrame(rows), pyarrow.table(columns) or spark.createDataFrame(rows)"
    raise ConfigError(
        "a DataFrameSource needs a DataFrame, or a table",
        why=f"it was given a {kind.__module__.partition('.')[0]}.{kind.__qualname__}".replace(
            "builtins.", ""
        ),
        hint=hint,
    )


@dataclass(frozen=True, slots=True)
class LogAfter:
    """The log that goes on behind a table. Records whose timestamps are before the boundary (ms) come from the table,
    all others from the log. In partitions of ``whole_from``, the log counts whole from that offset on: a live
    application has read it from there, and has not looked at the boundary."""

    boundary_ms: int
    log: Source
    whole_from: Mapping[int, int] = field(default_factory=dict)
