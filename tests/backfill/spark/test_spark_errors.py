"""What goes wrong in a worker reaches the driver as what it is, with what the user's function raised as its cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from pystreams import App
from pystreams.backfill.application import NamedApplication
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.backfill.spark.failures import WorkerError
from pystreams.errors import AppLoadError, ProcessingError
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
