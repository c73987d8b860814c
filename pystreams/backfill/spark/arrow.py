"""Rows of Spark as Arrow, in a worker and in the driver, without warnings about pandas."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pystreams.backfill.exchange.rows import Arrow


def mapped(
    rows: DataFrame, function: Callable[[Iterator[Arrow]], Iterator[Arrow]], columns: str | StructType
) -> DataFrame:
    """``function`` over the Arrow batches of each partition; ``columns`` are those that it gives."""
    with no_word_about_pandas():
        return rows.mapInArrow(function, columns)


def in_session(rows: DataFrame, session: SparkSession) -> DataFrame:
    """The same rows in another session of the same Spark: its settings count, its views may refer to them."""
    given: Any = rows
    other: Any = session
    plan = given._jdf.queryExecution().logical()
    dataset = other._jvm.org.apache.spark.sql.classic.Dataset.ofRows(other._jsparkSession, plan)
    return DataFrame(dataset, session)


def table_of(rows: DataFrame) -> Arrow:
    """All rows, in this process."""
    with no_word_about_pandas():
        return rows.toArrow()


@contextmanager
def no_word_about_pandas() -> Iterator[None]:
    """Spark asks for pandas wherever it hands out Arrow, and warns of versions that nothing here depends on."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield
