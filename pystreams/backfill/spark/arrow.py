"""Rows of Spark as Arrow, in a worker and in the driver, without a word about pandas."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame

from pystreams.backfill.exchange.rows import Arrow


def mapped(rows: DataFrame, function: Callable[[Iterator[Arrow]], Iterator[Arrow]], ddl: str) -> DataFrame:
    """``function`` over the Arrow batches of each partition; ``ddl`` are the columns that it gives."""
    with no_word_about_pandas():
        return rows.mapInArrow(function, ddl)


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
