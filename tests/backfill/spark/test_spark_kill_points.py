"""Killed where it hurts, a backfill on Spark still gives what an inline run gives.

The kinds of ends with a hand-over and live behind them are in ``test_spark_random_topologies.py``.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from pystreams import App
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.errors import StateError
from tests.backfill.kit import Backfill, everything, memory
from tests.backfill.programs import history
from tests.backfill.spark.driver_killed_in_write import backfill_on
from tests.backfill.spark.killing import killed_driver


def counting(marker: Path | None) -> App:
    """Word count whose worker is killed once in each of its two slices: it leaves a file beside ``marker`` first."""

    def dies(where: str) -> Any:
        def once(value: Any) -> Any:
            if marker is not None:
                mark = Path(f"{marker}-{where}")
                if not mark.exists():
                    mark.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
            return value

        return once

    app = App("wc")
    words = app.stream("lines", value=str).map_values(dies("first")).flat_map_values(str.split)
    counts = words.group_by(lambda word: word).count(name="counts")
    counts.to_stream().map_values(dies("second")).to("word-counts", value=int)
    return app


def test_a_killed_worker_is_replaced(tmp_path: Path, executor: SparkExecutor) -> None:
    source = memory(history("word count", 5, partitions=2, records=400))
    inline = Backfill(counting(None), source, tmp_path / "inline", commit_records=16).run()
    app = counting(tmp_path / "killed")
    on_spark = Backfill(app, source, tmp_path / "spark", executor=executor, commit_records=16).run()
    assert {path.name for path in tmp_path.glob("killed-*")} == {"killed-first", "killed-second"}
    assert everything(on_spark) == everything(inline)


@pytest.mark.slow
def test_a_driver_that_died_while_spark_wrote_a_slice_is_resumed(
    tmp_path: Path, executor: SparkExecutor
) -> None:
    staging = tmp_path / "spark"
    killed_driver("tests.backfill.spark.driver_killed_in_write", str(staging))
    left = executor.staging(str(staging)).read_manifest()
    assert left is not None
    assert not left.slices
    assert list(staging.rglob("*.parquet")), "Spark had begun to write"
    backfill = backfill_on(executor, staging)
    with pytest.raises(StateError, match="holds a backfill already"):
        backfill.run()
    resumed = everything(backfill.run(resume=True))
    assert resumed["changelogs"]["counts"]
    assert resumed == everything(backfill_on(None, tmp_path / "inline").run())
