from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.environment import without
from tests.live.support import Log
from tests.telemetry.collector_kit import Collector


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "PYSTREAMS_", "OTEL_")


@pytest.fixture
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    """A log with the topics ``in`` and ``out``: the embedded one, and Kafka as well where a test is marked
    ``both_logs``."""
    with ExitStack() as stack:
        if getattr(request, "param", "embedded") == "kafka":
            log = request.getfixturevalue("cluster")
        else:
            log = stack.enter_context(closing(Log(tmp_path)))
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
