"""A session on the tests' own broker."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.benchmarks.kafka.cluster import Cluster
from tests.benchmarks.kafka.session import Session
from tests.java import QUICK
from tests.kafka.server import KafkaServer


@pytest.fixture(autouse=True)
def java_starts_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads the figures of these short runs, so Java need not compile well."""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", " ".join(QUICK))


@pytest.fixture
def session(server: KafkaServer, tmp_path: Path) -> Session:
    console = Console(file=io.StringIO(), width=160)
    return Session("test", Cluster(server.bootstrap_servers, [server.pid]), tmp_path, console)
