"""Spark's UI names the jobs of a backfill by the slice that they compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pystreams.backfill.spark.executor import SparkExecutor
from tests.backfill.kit import Backfill, memory
from tests.backfill.programs import history, word_count


def test_jobs_are_named_by_their_slice(tmp_path: Path, spark: Any, executor: SparkExecutor) -> None:
    source = memory(history("word count", 5, 2))
    Backfill(word_count(), source, tmp_path / "staging", executor=executor).run()
    status = spark.sparkContext._jsc.sc().statusStore()
    jobs = status.jobsList(None)
    names = [jobs.apply(place).description() for place in range(jobs.size())]
    found = {name.get() for name in names if name.isDefined()}
    assert {"pystreams: wc-counts-repartition, slice 1 of 2", "pystreams: counts, slice 2 of 2"} <= found
