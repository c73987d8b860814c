"""Averages, maxima, shares and rates are those of the last 30 to 60 seconds."""

from __future__ import annotations

import sys
import threading

import pytest

from pystreams.clock import ManualClock
from pystreams.metrics import Measure, Metrics, names
from tests.live.support import eventually

SECOND = 1_000


def values(metrics: Metrics) -> dict[str, float]:
    return {sample.name: sample.value for sample in metrics.snapshot()}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(5_000_000)


@pytest.fixture
def metrics(clock: ManualClock) -> Metrics:
    return Metrics(clock)


def test_things_that_are_recorded_together_count_each(metrics, clock):
    latency = metrics.measure("process-latency", thread_id="t")
    latency.record(10.0, 1, clock.monotonic_ms())
    latency.record(20.0, 4, clock.monotonic_ms())
    assert values(metrics) == {"process-latency-avg": 6.0, "process-latency-max": 10.0}


def test_what_was_measured_long_ago_is_forgotten(metrics, clock):
    latency = metrics.measure("poll-latency", thread_id="t")
    latency.record(90.0, 1, clock.monotonic_ms())
    clock.advance_ms(40 * SECOND)
    latency.record(10.0, 1, clock.monotonic_ms())
    assert values(metrics) == {"poll-latency-avg": 50.0, "poll-latency-max": 90.0}
    clock.advance_ms(40 * SECOND)
    latency.record(20.0, 1, clock.monotonic_ms())
    assert values(metrics) == {"poll-latency-avg": 15.0, "poll-latency-max": 20.0}


def test_a_measure_without_anything_lately_is_left_out(metrics, clock):
    latency = metrics.measure("poll-latency", thread_id="t")
    assert values(metrics) == {}
    latency.record(90.0, 1, clock.monotonic_ms())
    clock.advance_ms(61 * SECOND)
    assert values(metrics) == {}


def test_a_reader_never_sees_half_of_what_another_thread_records():
    measures, done, seen = [Measure(0.0)], threading.Event(), set()

    def read() -> None:
        while not done.is_set():
            measure = measures[-1]
            seen.add((measure.average(1.0), measure.maximum(1.0)))

    reader = threading.Thread(target=read)
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        reader.start()
        for _ in range(2_000):
            measures.append(Measure(0.0))
            measures[-1].record(15.0, 3, 1.0)
        eventually(lambda: (5.0, 5.0) in seen, "the reader has seen the last of them")
    finally:
        done.set()
        reader.join()
        sys.setswitchinterval(interval_s)
    assert seen <= {(None, None), (None, 5.0), (5.0, 5.0)}


def test_a_share_is_that_of_the_time(metrics, clock):
    latency = metrics.measure("poll-latency", "poll-ratio", thread_id="t")
    assert values(metrics)["poll-ratio"] == 0
    clock.advance_ms(10 * SECOND)
    latency.record(2_500.0, 1, clock.monotonic_ms())
    assert values(metrics)["poll-ratio"] == pytest.approx(0.25)
    clock.advance_ms(40 * SECOND)
    assert values(metrics)["poll-ratio"] == pytest.approx(0.05)


def test_the_share_of_rare_work_is_that_of_all_the_time_and_not_only_of_the_work(metrics, clock):
    latency = metrics.measure("commit-latency", "commit-ratio", thread_id="t")
    clock.advance_ms(60 * SECOND)
    for _ in range(5):
        latency.record(1_000.0, 1, clock.monotonic_ms())
        for _ in range(4):
            assert 1 / 60 <= values(metrics)["commit-ratio"] <= 1 / 30
            clock.advance_ms(15 * SECOND)


def test_the_share_of_work_that_lasts_for_longer_than_its_window_is_all_of_the_time(metrics, clock):
    latency = metrics.measure("commit-latency", "commit-ratio", thread_id="t")
    clock.advance_ms(200 * SECOND)
    latency.record(150_000.0, 1, clock.monotonic_ms())
    assert values(metrics)["commit-ratio"] == 1


def test_a_rate_is_that_of_the_last_minute_however_often_somebody_looks(metrics, clock):
    counter = metrics.counter(names.PROCESSED, thread_id="t")
    for _ in range(50):
        counter.add(200)
        clock.advance_ms(10 * SECOND)
        metrics.roll()
        assert values(metrics)["process-rate"] == pytest.approx(20)
    for _ in range(6):
        clock.advance_ms(10 * SECOND)
        metrics.roll()
    assert values(metrics)["process-rate"] == 0
    assert values(metrics)["process-total"] == 10_000


def test_metrics_of_programs_have_no_rates_that_nobody_asked_for(metrics):
    metrics.counter("my-total").add(3)
    assert values(metrics) == {"my-total": 3}


def test_a_total_counts_tasks_and_not_their_threads_once_more(metrics):
    metrics.counter(names.PROCESSED, thread_id="t").add(30)
    for task_id, records in (("0_0", 10), ("0_1", 20)):
        metrics.counter(names.PROCESSED, thread_id="t", task_id=task_id).add(records)
    assert metrics.total("process-total") == 30
    assert metrics.total("process-total", thread_id="t") == 30
    assert metrics.total("process-total", task_id="0_1") == 20


def test_a_name_with_the_same_tags_is_of_one_kind(metrics):
    metrics.measure("x", a=1)
    with pytest.raises(TypeError, match=r"x \{'a': '1'\} is a Measure, not a Gauge"):
        metrics.gauge("x", a=1)


def test_the_least_and_the_greatest_may_be_given_with_what_is_recorded_together(metrics, clock):
    age = metrics.measure(names.RECORD_AGE, processor_node_id="out")
    age.record(60, 3, clock.monotonic_ms(), least=5, greatest=40)
    age.record(7, 1, clock.monotonic_ms())
    assert values(metrics) == {
        "record-e2e-latency-avg": 67 / 4,
        "record-e2e-latency-min": 5,
        "record-e2e-latency-max": 40,
    }


def test_a_measure_may_say_how_often_there_was_something_to_measure(metrics, clock):
    latency = metrics.measure("put-latency", "", "put-rate", rocksdb_state_id="counts")
    for _ in range(10):
        clock.advance_ms(SECOND)
        latency.record(1.0, 1, clock.monotonic_ms())
    assert values(metrics)["put-rate"] == pytest.approx(1)
    clock.advance_ms(61 * SECOND)
    assert values(metrics) == {}
