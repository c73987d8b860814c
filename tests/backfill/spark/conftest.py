"""One Spark session for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.backfill.spark.session import spark_session

#: Small: the machine is shared with other tests.
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A ``SparkSession`` on ``local[2]``, which tries tasks again."""
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        **SETTINGS,
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "tables"),
    }
    with spark_session("local[2]", app_name="pystreams tests", conf=settings) as session:
        yield session


@pytest.fixture
def executor(spark: Any) -> SparkExecutor:
    return SparkExecutor(spark)
