from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.environment import without
from tests.live.support import Log, chosen_log
from tests.telemetry.collector_kit import Collector


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "PYSTREAMS_", "OTEL_")


@pytest.fixture
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    """A log with the topics ``in`` and ``out``."""
    with chosen_log(request, tmp_path) as log:
        log.create("in", "out")
        yield log


@pytest.fixture
def collector():
    with Collector() as collector:
        yield collector


@pytest.fixture
def to_collector(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process sends goes to the collector."""
    for name, value in collector.environment.items():
        monkeypatch.setenv(name, value)
