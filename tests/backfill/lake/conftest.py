"""One Spark session with Iceberg and Delta for all tests of this folder, which skip where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill.sources import SparkTable
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.backfill.spark.session import spark_session
from tests.backfill.lake.formats import FORMATS, settings, table_of, why_not


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the session's tables."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def spark(lake: Path) -> Iterator[Any]:
    with spark_session("local[2]", app_name="pystreams tests", conf=settings(lake)) as session:
        yield session


@pytest.fixture
def executor(spark: Any) -> SparkExecutor:
    return SparkExecutor(spark)


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, lake: Path, tmp_path: Path) -> SparkTable:
    """A table that is not there yet."""
    name = tmp_path.name.replace("-", "_")
    return table_of(request.param, lake, name)
