"""Where Spark starts slow tasks a second time, nothing is there twice. A standalone cluster of three JVMs beside two
executors and the driver is much for a small machine: ``make prove-backfill`` runs this, ``make test`` does not.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pyspark
import pytest

from pystreams.backfill import EmbeddedSource
from pystreams.backfill.spark.executor import SparkExecutor
from tests.backfill.kit import Backfill, everything
from tests.backfill.live import append, create, left_on
from tests.backfill.programs import history
from tests.backfill.spark.cluster_with_speculation import word_count
from tests.backfill.spark.killing import kill_session
from tests.live.support import Log, eventually

_SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_DEPLOY = "org.apache.spark.deploy"


def _start(stack: ExitStack, folder: Path, name: str, *command: str) -> Path:
    """Start a daemon of Spark, and end it with the test. Where it logs."""
    told = folder / f"{name}.log"
    file = stack.enter_context(told.open("w", encoding="utf-8"))
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_DAEMON_MEMORY": "256m"}
    process = stack.enter_context(
        subprocess.Popen(
            [str(_SPARK_CLASS), *command],
            stdout=file,
            stderr=file,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
    )
    stack.callback(kill_session, process.pid)
    return told


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The URL of a cluster with two workers, each on an address of its own: Spark takes them for two hosts."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        at = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        told = _start(stack, tmp_path, "master", f"{_DEPLOY}.master.Master", *at)
        for number in (1, 2):
            at = ["--host", f"127.0.0.{number}", "--webui-port", "0", "-c", "1", "-m", "1200m"]
            at += ["-d", str(tmp_path / f"worker-{number}"), url]
            _start(stack, tmp_path, f"worker-{number}", f"{_DEPLOY}.worker.Worker", *at)
        eventually(
            lambda: told.read_text(encoding="utf-8").count("Registering worker") == 2, "two workers", 60.0
        )
        yield url


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
