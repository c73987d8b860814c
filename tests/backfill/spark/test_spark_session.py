"""A session of our own tries tasks again and runs workers on this Python; one that cannot do is refused."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.backfill.spark.masters import with_retries
from pystreams.backfill.spark.worker_python import check_python
from pystreams.errors import AppLoadError, ConfigError


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


def test_workers_without_pystreams_are_refused_at_once(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    with pytest.raises(AppLoadError, match="Spark's workers cannot import pystreams") as refused:
        SparkExecutor(spark)
    assert 'os.environ["PYSPARK_PYTHON"] = sys.executable' in str(refused.value)
    assert str(python) in str(refused.value)


def test_workers_with_another_version_of_python_are_refused(tmp_path: Path) -> None:
    python = tmp_path / "python2"
    python.write_text("#!/bin/sh\necho 2.7\n")
    python.chmod(0o755)
    with pytest.raises(AppLoadError, match=r"they run Python 2\.7, and this program runs"):
        check_python(str(python))


def test_workers_with_a_python_that_has_pystreams_are_not_refused(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    check_python(str(python))


def test_the_users_session_keeps_its_settings(spark: Any) -> None:
    before = spark.conf.get("spark.sql.adaptive.enabled")
    SparkExecutor(spark)
    assert spark.conf.get("spark.sql.adaptive.enabled") == before == "true"


def test_a_session_of_an_older_spark_connect_is_refused() -> None:
    class Connect:
        """Has no JVM beside it, and makes no other sessions."""

    with pytest.raises(ConfigError, match=r"needs Spark 4\.3"):
        SparkExecutor(Connect())  # type: ignore[arg-type]
