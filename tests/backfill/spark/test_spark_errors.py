"""What goes wrong in a worker reaches the driver as what it is, with what the user's function raised as its cause."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pystreams import App
from pystreams.backfill.application import NamedApplication, PickledApplication
from pystreams.backfill.spark.arrow import mapped
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.backfill.spark.failures import reason_of, receiving_errors
from pystreams.backfill.workers.errors import WorkerError
from pystreams.errors import AppLoadError, ProcessingError, StreamsError
from tests.backfill.kit import Backfill, lines, memory

PAST = {"numbers": [lines([("a", 1, 1), ("b", 0, 2)])]}


def dividing() -> App:
    app = App("divides")
    app.stream("numbers", key=str, value=int).map_values(lambda number: 6 // number).to("out", value=int)
    return app


def test_a_function_that_raises_is_named(tmp_path: Path, executor: SparkExecutor) -> None:
    with pytest.raises(ProcessingError) as inline:
        Backfill(dividing(), memory(PAST), tmp_path / "inline").run()
    with pytest.raises(ProcessingError) as on_spark:
        Backfill(dividing(), memory(PAST), tmp_path / "spark", executor=executor).run()
    assert str(on_spark.value) == str(inline.value)
    assert isinstance(on_spark.value.__cause__, WorkerError)
    assert "ZeroDivisionError" in str(on_spark.value.__cause__)


def test_a_worker_that_cannot_import_the_application_says_so(tmp_path: Path, executor: SparkExecutor) -> None:
    backfill = Backfill(dividing(), memory(PAST), tmp_path / "spark", executor=executor)
    backfill.application = NamedApplication("no.such.module:app")
    with pytest.raises(AppLoadError, match="ship its module"):
        backfill.run()


def test_a_pickled_application_whose_module_a_worker_lacks_says_so(
    tmp_path: Path, executor: SparkExecutor
) -> None:
    backfill = Backfill(dividing(), memory(PAST), tmp_path / "spark", executor=executor)
    # GLOBAL of a module that is nowhere: what a function of such a module is pickled as.
    backfill.application = PickledApplication(b"cno_such_module\nfunction\n.")
    with pytest.raises(AppLoadError, match="no_such_module"):
        backfill.run()


def test_a_package_that_workers_lack_is_named(spark: SparkSession) -> None:
    with pytest.raises(AppLoadError, match="workers cannot import no_such_package"), receiving_errors():
        mapped(spark.range(0, 1, 1, 1), _lacking, "id bigint").collect()


def _lacking(batches: Iterator[Any]) -> Iterator[Any]:
    importlib.import_module("no_such_package")
    yield from batches


@pytest.mark.parametrize("url", ["s3a://key:secret@bucket/staging", "nowhere://key:secret@bucket/staging"])
def test_a_file_system_that_spark_does_not_have_is_reported_without_secrets(
    url: str, executor: SparkExecutor
) -> None:
    with pytest.raises(StreamsError) as refused:
        executor.staging(url).read_manifest()
    assert "key:***@bucket" in str(refused.value)
    assert "secret" not in str(refused.value)
    assert "\tat " not in str(refused.value)


@pytest.mark.parametrize(
    "said,reason",
    [
        (
            ("An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
            '  File "x.py", line 3, in f\n    import a\nModuleNotFoundError: No module named \'a\'\n'),
            "ModuleNotFoundError: No module named 'a'",
        ),
        (
            ("An error occurred while calling o32.getFileSystem.\n: java.lang.RuntimeException: "
            "java.lang.ClassNotFoundException: Class S3A not found\n\tat a.b(C.java:1)\n"
            "Caused by: java.lang.ClassNotFoundException: Class S3A not found\n\t... 18 more"),
            "ClassNotFoundException: Class S3A not found",
        ),
        ("[PATH_NOT_FOUND] Path does not exist: s3a://k:secret@b/x. SQLSTATE: 42K03",
         "[PATH_NOT_FOUND] Path does not exist: s3a://k:***@b/x. SQLSTATE: 42K03"),
        ("", "RuntimeError"),
    ],
    ids=["worker", "JVM", "Spark", "nothing"],
)  # fmt: skip
def test_of_all_that_spark_says_the_reason_is_reported(said: str, reason: str) -> None:
    assert reason_of(RuntimeError(said)) == reason
