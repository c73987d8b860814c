"""``consume`` and ``archive`` pass over records of transactions that were aborted."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.kafka.server import ROOT
from tests.kafka.support import Cluster


@pytest.fixture
def committed(cluster: Cluster) -> Cluster:
    """A topic with an aborted record before each of two committed ones."""
    cluster.create("lines")
    with closing(cluster.broker_with(exactly_once=True).producer("p", "p-1")) as producer:
        for value in (b"one", b"two"):
            producer.send("lines", 0, None, b"aborted", 1, ())
            producer._flush(None)
            producer.abort()
            producer.settle()
            producer.send("lines", 0, None, value, 1, ())
            producer.commit({}, None)
    return cluster


def run(cluster: Cluster, *arguments: str) -> str:
    """Run a command with ``arguments``: what it has printed."""
    command = [
        sys.executable,
        "-m",
        "pystreams",
        *arguments,
        "--bootstrap-servers",
        cluster.bootstrap_servers,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_consume_shows_what_is_committed(committed: Cluster):
    assert [line.split()[-1] for line in run(committed, "consume", "lines").splitlines()] == ["one", "two"]


def test_an_archive_has_what_is_committed(committed: Cluster, tmp_path: Path):
    run(committed, "archive", "lines", "--to", str(tmp_path / "archive"), "--master", "none")
    assert pq.read_table(tmp_path / "archive").column("value").to_pylist() == [b"one", b"two"]
