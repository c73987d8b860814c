from __future__ import annotations

import os

import pytest

from tests.telemetry.collector_kit import Collector


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in os.environ:
        if variable.startswith(("PYSTREAMS_", "OTEL_")):
            monkeypatch.delenv(variable)


@pytest.fixture
def collector():
    with Collector() as collector:
        yield collector


@pytest.fixture
def to_collector(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process sends goes to the collector."""
    for name, value in collector.environment.items():
        monkeypatch.setenv(name, value)
