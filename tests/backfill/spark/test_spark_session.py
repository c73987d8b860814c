"""A session of our own tries tasks again and runs workers on this Python; one that cannot do is refused."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.backfill.spark.masters import with_retries
from pystreams.errors import ConfigError


@pytest.mark.parametrize(
    "master,tried_again",
    [
        ("local", "local[1,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2]", "local[2,4]"),
        ("local[2,1]", "local[2,1]"),
        ("local-cluster[2,1,1200]", "local-cluster[2,1,1200]"),
        ("spark://host:7077", "spark://host:7077"),
        ("yarn", "yarn"),
    ],
)
def test_local_masters_try_a_task_four_times(master: str, tried_again: str) -> None:
    assert with_retries(master) == tried_again


def test_workers_run_this_python(spark: Any) -> None:
    assert spark.sparkContext.master == "local[2,4]"
    assert spark.sparkContext.pythonExec == os.environ.get("PYSPARK_PYTHON", sys.executable)


def test_the_users_session_keeps_its_settings(spark: Any) -> None:
    before = spark.conf.get("spark.sql.adaptive.enabled")
    SparkExecutor(spark)
    assert spark.conf.get("spark.sql.adaptive.enabled") == before == "true"


def test_a_session_of_an_older_spark_connect_is_refused() -> None:
    class Connect:
        """Has no JVM beside it, and makes no other sessions."""

    with pytest.raises(ConfigError, match=r"needs Spark 4\.3"):
        SparkExecutor(Connect())  # type: ignore[arg-type]
