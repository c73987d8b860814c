"""Where Spark starts slow tasks a second time, nothing is there twice. A standalone cluster of three JVMs beside two
executors and the driver is much for a small machine: ``make prove-backfill`` runs this, ``make test`` does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pystreams.backfill import EmbeddedSource
from pystreams.backfill.spark.executor import SparkExecutor
from tests.backfill.kit import Backfill, everything
from tests.backfill.live import append, create, left_on
from tests.backfill.programs import history
from tests.backfill.spark.cluster_with_speculation import word_count
from tests.backfill.spark.daemons import standalone_cluster
from tests.live.support import Log


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The URL of a cluster with two workers."""
    with standalone_cluster(tmp_path) as cluster:
        yield cluster.url


@pytest.mark.live
def test_what_two_attempts_write_is_there_once(master: str, tmp_path: Path, executor: SparkExecutor) -> None:
    past = history("word count", 5, partitions=2)
    (tmp_path / "marks").mkdir()
    with closing(Log(tmp_path / "log")) as log:
        create(log, past, ["word-counts"])
        append(log, past)
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "tests.backfill.spark.cluster_with_speculation"]
            + [master, str(tmp_path)],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-5000:]
        assert {mark.name for mark in (tmp_path / "marks").iterdir()} == {"compute-copy", "publish-copy"}
        left = left_on(log, word_count(None), [])
        source = EmbeddedSource(str(tmp_path / "log" / "log.db"))
        inline = Backfill(word_count(None), source, tmp_path / "inline", commit_records=16).run()
        staged = Backfill(
            word_count(None), source, tmp_path / "staging", executor=executor, commit_records=16
        ).run(resume=True)
        assert everything(staged) == everything(inline)
    changelog = {partition.partition: entries for partition, entries in left.changelogs.items()}
    assert changelog == inline.changelog("counts")
    ends = {partition: offset.offset for partition, offset in inline.offsets().items()}
    assert {partition: offset for partition, (offset, _) in left.offsets.items()} == {
        partition: end for partition, end in ends.items() if partition.topic == "lines"
    }
