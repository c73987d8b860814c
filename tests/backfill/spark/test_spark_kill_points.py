"""Killed where it hurts, a backfill on Spark still gives what an inline run gives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pystreams import App
from pystreams.backfill.manifest import Manifest, Stage
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.errors import StateError
from tests.backfill.kit import Backfill, everything, memory
from tests.backfill.programs import history, word_count


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


DRIVER = """
import os, signal, sys
from pathlib import Path
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.backfill.spark.session import spark_session
from tests.backfill.kit import Backfill, memory
from tests.backfill.programs import history, word_count
from tests.backfill.spark.conftest import SETTINGS

dies_at, staging = sys.argv[1], Path(sys.argv[2])


class Dying(SparkExecutor):
    def compute(self, job, report):
        outcomes = super().compute(job, report)
        if dies_at == f"slice {job.work.slice.index}":
            os.kill(os.getpid(), signal.SIGKILL)
        return outcomes


with spark_session("local[2]", app_name="dies", conf=SETTINGS) as session:
    source = memory(history("word count", 5, partitions=2))
    Backfill(word_count(), source, staging, executor=Dying(session), commit_records=16).run()
"""


def test_a_killed_driver_is_resumed(tmp_path: Path, executor: SparkExecutor) -> None:
    """It dies when the last slice is staged, and the manifest does not say so yet."""
    staging = tmp_path / "spark"
    command = [sys.executable, "-W", "ignore", "-c", DRIVER, "slice 1", str(staging)]
    died = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    left = Manifest.read(staging)
    assert left is not None
    assert (left.stage, set(left.slices)) == (Stage.CUT, {0})
    source = memory(history("word count", 5, partitions=2))
    backfill = Backfill(word_count(), source, staging, executor=executor, commit_records=16)
    with pytest.raises(StateError, match="holds a backfill already"):
        backfill.run()
    first = sorted((staging / "slice-00").iterdir())
    resumed = backfill.run(resume=True)
    assert sorted((staging / "slice-00").iterdir()) == first
    inline = Backfill(word_count(), source, tmp_path / "inline", commit_records=16).run()
    assert everything(resumed) == everything(inline)
    again = Backfill(word_count(), source, tmp_path / "again", executor=executor, commit_records=16).run()
    assert everything(again) == everything(inline)
