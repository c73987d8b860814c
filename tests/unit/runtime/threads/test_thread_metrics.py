"""A thread's rebalances count once each, and their pause lasts from the assignment until all of its tasks run."""

from __future__ import annotations

import pytest

from pystreams.clock import ManualClock
from pystreams.metrics import Metrics, names
from pystreams.runtime.threads.thread_metrics import ThreadMetrics

#: Stands still: the tests name the times.
CLOCK = ManualClock(5_000_000)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CLOCK)


def value(metrics: Metrics, name: str) -> float | None:
    return next((sample.value for sample in metrics.snapshot() if sample.name == name), None)


def test_the_pause_lasts_from_the_first_attempt_of_an_assignment_until_all_tasks_run(
    metrics: Metrics,
) -> None:
    thread = ThreadMetrics(metrics, "t")
    now_ms = CLOCK.monotonic_ms()
    thread.assigned(now_ms)
    assert value(metrics, names.REBALANCES) == 0
    thread.assigned(now_ms + 40)  # after an error, the same once more
    thread.carried_out()
    assert value(metrics, f"{names.REBALANCE_PAUSE}-avg") is None
    thread.settled(now_ms + 100)
    assert value(metrics, names.REBALANCES) == 1
    assert value(metrics, f"{names.REBALANCE_PAUSE}-avg") == pytest.approx(100)


def test_without_a_rebalance_there_is_no_time_of_one(metrics: Metrics) -> None:
    thread = ThreadMetrics(metrics, "t")
    thread.settled(CLOCK.monotonic_ms())
    assert value(metrics, f"{names.REBALANCE_PAUSE}-max") is None
