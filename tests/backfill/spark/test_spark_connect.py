"""Over Spark Connect a backfill computes what it computes elsewhere, if the server has its staging folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.backfill.spark.connect_client import CHECKS
from tests.backfill.spark.daemons import ConnectServer, connect_server
from tests.backfill.spark.shop import computed, emitted, make_shop
from tests.kafka.server import ROOT, free_port

_TIMEOUT_S: Final = 300.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """Its workers can import the programs of these tests."""
    with connect_server(tmp_path_factory.mktemp("server"), PYTHONPATH=str(ROOT)) as server:
        yield server


def _run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )


def _jobs(server: ConnectServer) -> list[dict[str, Any]]:
    """The jobs of Spark as its UI has them."""
    begin = f"http://127.0.0.1:{server.ui_port}/api/v1/applications"
    with urllib.request.urlopen(begin, timeout=30) as applications:
        (application,) = json.load(applications)
    with urllib.request.urlopen(f"{begin}/{application['id']}/jobs", timeout=30) as jobs:
        found: list[dict[str, Any]] = json.load(jobs)
        return found


@pytest.fixture(scope="module")
def outcomes(server: ConnectServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """What became of each check."""
    folder = tmp_path_factory.mktemp("checks")
    command = [sys.executable, "-m", "tests.backfill.spark.connect_client", server.url, str(folder)]
    done = _run(command, folder, PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr[-5000:]
    found: dict[str, str | None] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("check", list(CHECKS))
def test_a_program_runs_it_as_with_any_session(outcomes: dict[str, str | None], check: str) -> None:
    assert outcomes[check] is None, outcomes[check]


@pytest.mark.slow
def test_the_command_sends_the_application_and_gives_what_it_gives_without_spark(
    server: ConnectServer, tmp_path: Path
) -> None:
    shop = make_shop(tmp_path)
    inline = shop.report("--master", "none", "--staging", "inline", "--emit", "parquet:inline-files")
    there = ["--master", server.url, "--py-files", str(shop.zip), "--conf", "spark.sql.shuffle.partitions=3"]
    report = shop.report(*there, "--staging", "staging", "--emit", "parquet:files")
    assert computed(report) == computed(inline)
    assert emitted(tmp_path / "files") == emitted(tmp_path / "inline-files")
    tags = {tag for job in _jobs(server) for tag in job["jobTags"]}
    assert any(tag.endswith("pystreams: counts slice 2 of 2") for tag in tags), tags


@pytest.mark.slow
def test_a_server_that_is_not_there_is_named_without_its_token(tmp_path: Path) -> None:
    shop = make_shop(tmp_path)
    nobody = f"sc://127.0.0.1:{free_port()}"
    done = _run(shop.command("--master", f"{nobody}/;token=secret"), tmp_path)
    assert done.returncode == 2
    assert f"Spark cannot be used at {nobody}\n" in done.stderr
    assert "Connection refused" in done.stderr
    assert "secret" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_setting_that_only_the_server_can_have_is_refused(server: ConnectServer, tmp_path: Path) -> None:
    shop = make_shop(tmp_path)
    done = _run(shop.command("--master", server.url, "--conf", "spark.executor.memory=1g"), tmp_path)
    assert done.returncode == 2
    assert "spark.executor.memory" in done.stderr
    assert "Traceback" not in done.stderr
