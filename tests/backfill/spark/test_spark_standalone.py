"""A backfill runs on a standalone cluster, by the command and by ``spark-submit``, with code that is shipped to
executors, and goes on if a worker or an executor dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.backfill.spark.conftest import SETTINGS
from tests.backfill.spark.daemons import QUICK_JVM, SPARK_HOME, Cluster, standalone_cluster
from tests.backfill.spark.killing import kill_session
from tests.backfill.spark.shop import Shop, computed, emitted, make_shop
from tests.live.support import eventually

_TIMEOUT_S: Final = 300.0

#: A script as docs/backfill/reference.md has it.
JOB = """
import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from pystreams.backfill import EmbeddedSource, SparkExecutor, backfill

log, staging, found = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
result = backfill("shop.app", sources=EmbeddedSource(log), staging=staging, executor=SparkExecutor(spark))
stores = {
    name: {"entries": store.entries, "digest": store.digest}
    for one in result.manifest.slices.values()
    for name, store in one.stores.items()
}
Path(found).write_text(json.dumps(stores))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return make_shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def inline(shop: Shop) -> dict[str, Any]:
    """The report of a backfill without Spark."""
    return shop.report("--master", "none", "--staging", "inline", "--emit", "parquet:inline-files")


def _options(**more: str) -> list[str]:
    """Spark's settings as the options of a command: small executors of one core, so that each worker has one."""
    small = {"spark.executor.memory": "600m", "spark.executor.cores": "1"}
    settings = {**SETTINGS, **small, "spark.executor.extraJavaOptions": QUICK_JVM, **more}
    return [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]


@pytest.mark.slow
def test_a_backfill_whose_worker_is_killed_equals_an_inline_one(
    cluster: Cluster, shop: Shop, inline: dict[str, Any], tmp_path: Path
) -> None:
    command = shop.command(
        *("--master", cluster.url, "--staging", str(tmp_path / "staging"), "--py-files", str(shop.zip)),
        *("--emit", f"parquet:{tmp_path / 'files'}"),
        *_options(**{"spark.executorEnv.SHOP_MARKS": str(tmp_path)}),
    )
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    said = tmp_path / "said"
    with (
        said.open("w", encoding="utf-8") as stderr,
        subprocess.Popen(
            command, cwd=shop.folder, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True
        ) as process,
    ):
        try:

            def at_work() -> list[int]:
                assert process.poll() is None, said.read_text(encoding="utf-8")[-5000:]
                return [int(mark.name.removeprefix("at-work-")) for mark in tmp_path.glob("at-work-*")]

            (killed, *_) = eventually(at_work, "a task of the second slice is at work", _TIMEOUT_S)
            assert killed in cluster.workers
            kill_session(killed)
            (tmp_path / "go-on").touch()
            out, _ = process.communicate(timeout=_TIMEOUT_S)
        finally:
            process.kill()
    assert process.returncode == 0, said.read_text(encoding="utf-8")[-5000:]
    assert computed(json.loads(out)) == computed(inline)
    assert emitted(tmp_path / "files") == emitted(shop.folder / "inline-files")
    at_work_then = {int(mark.name.removeprefix("at-work-")) for mark in tmp_path.glob("at-work-*")}
    assert at_work_then == set(cluster.workers), "what the killed worker had begun was done by the other one"


@pytest.mark.slow
def test_a_script_that_is_submitted_computes_the_same_if_an_executor_is_killed(
    cluster: Cluster, shop: Shop, inline: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "job.py").write_text(JOB, encoding="utf-8")
    submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", cluster.url, "--py-files", str(shop.zip)]
    options = _options(**{"spark.executorEnv.SHOP_KILLS": str(tmp_path)})
    arguments = [shop.source.path, str(tmp_path / "staging"), str(tmp_path / "stores.json")]
    done = subprocess.run(
        [*submit, *options, str(tmp_path / "job.py"), *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert (tmp_path / "killed").read_text(encoding="utf-8"), "no executor was killed"
    assert json.loads((tmp_path / "stores.json").read_text(encoding="utf-8")) == inline["stores"]
