"""Counters and gauges by name and tags, readable at any time."""

from __future__ import annotations

import threading
from decimal import Decimal
from fractions import Fraction

import pytest

from pystreams.ids import TaskId
from pystreams.metrics import Metrics, Sample, names


def test_a_counter_adds_up():
    counter = Metrics().counter("process-total")
    assert counter.value == 0
    counter.add()
    counter.add(41)
    assert counter.value == 42


def test_a_gauge_is_what_it_was_set_to():
    gauge = Metrics().gauge("alive-stream-threads")
    gauge.set(3)
    gauge.set(2)
    assert gauge.value == 2


def test_the_same_name_and_tags_are_the_same_metric():
    metrics = Metrics()
    one = metrics.counter("process-total", task_id=TaskId(0, 1), thread_id="1")
    assert metrics.counter("process-total", thread_id=1, task_id="0_1") is one
    assert metrics.counter("process-total", thread_id=2, task_id="0_1") is not one


def test_a_name_is_a_counter_or_a_gauge():
    metrics = Metrics()
    metrics.counter("x", a=1)
    with pytest.raises(TypeError, match=r"x \{'a': '1'\} is a Counter, not a Gauge"):
        metrics.gauge("x", a=1)


def test_a_total_sums_over_the_tags_that_are_not_asked_for():
    metrics = Metrics()
    for task, topic, n in [("0_0", "a", 1), ("0_1", "a", 2), ("0_1", "b", 4)]:
        metrics.counter("dropped-records-total", task_id=task, topic=topic).add(n)
    metrics.counter("process-total", task_id="0_1").add(8)
    assert metrics.total("dropped-records-total") == 7
    assert metrics.total("dropped-records-total", task_id="0_1") == 6
    assert metrics.total("dropped-records-total", task_id="0_1", topic="a") == 2
    assert metrics.total("commit-total") == 0


def test_a_snapshot_has_everything_in_order_and_stays():
    metrics = Metrics()
    metrics.gauge("b").set(2.5)
    counter = metrics.counter("a", task_id="0_0")
    counter.add(1)
    snapshot = metrics.snapshot()
    counter.add(1)
    assert snapshot == [Sample("a", (("task_id", "0_0"),), 1, counts=True), Sample("b", (), 2.5)]


def test_what_a_program_sets_is_a_number_that_every_format_can_hold_or_left_out():
    metrics = Metrics()
    odd = (float("nan"), float("inf"), "7", None, object(), Decimal("sNaN"), 10**400, [1])
    for number, value in enumerate(("x", *odd)):
        metrics.gauge(f"left-out-{number}").set(value)
    for name, value in (("a", 3), ("b", True), ("c", Decimal("2.5")), ("d", Fraction(1, 4)), ("e", 10**20)):
        metrics.gauge(name).set(value)
    # A text that is a number is taken for it.
    shown = {sample.name: sample.value for sample in metrics.snapshot()}
    assert shown == {"a": 3, "b": 1, "c": 2.5, "d": 0.25, "e": 1e20, "left-out-3": 7}
    assert {type(value) for value in shown.values()} == {int, float}


def test_tags_are_texts_that_can_be_encoded():
    metrics = Metrics()
    metrics.gauge("a", path="\udcff.csv").set(1)
    assert metrics.snapshot() == [Sample("a", (("path", "?.csv"),), 1)]


def test_sources_are_asked_in_turn_and_no_more_than_needed():
    metrics, asked = Metrics(), []

    def source(name: str):
        def samples() -> list[Sample]:
            asked.append(name)
            return [Sample(name, (), 5)]

        return samples

    metrics.counter("counted").add(2)
    metrics.attach(source("first"))
    metrics.attach(source("second"))
    assert metrics.total("counted") == 2
    assert asked == []
    assert metrics.total("first") == 5
    assert asked == ["first"]
    assert [sample.name for sample in metrics.snapshot()] == ["counted", "first", "second"]


def test_threads_that_ask_at_once_get_one_metric():
    metrics = Metrics()
    found = []
    barrier = threading.Barrier(8)

    def ask():
        barrier.wait()
        found.append(metrics.counter("process-total"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(counter) for counter in found}) == 1


def test_names_are_kafka_streams_own():
    assert names.DROPPED_RECORDS == "dropped-records-total"
    constants = [value for name, value in vars(names).items() if name.isupper()]
    assert len(set(constants)) == len(constants)


def test_a_total_asks_only_who_may_know_it():
    metrics, asked = Metrics(), []
    metrics.attach(lambda: asked.append("slow") or [Sample("size", (), 7)], {"size"})
    metrics.attach(lambda: [Sample("other", (), 2)])
    assert metrics.total("other") == 2
    assert metrics.total("unknown") == 0
    assert asked == []
    assert metrics.total("size") == 7
    assert [sample.name for sample in metrics.snapshot()] == ["other", "size"]


def test_samples_of_counters_say_that_they_count():
    metrics = Metrics()
    metrics.counter(names.PROCESSED, thread_id="t").add(2)
    metrics.gauge("queue-total").set(3)
    found = {sample.name: sample.counts for sample in metrics.snapshot()}
    assert found == {"process-total": True, "process-rate": False, "queue-total": False}
