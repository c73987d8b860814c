"""Records of several partitions are merged by the timestamps of the heads; ties go by topic, then partition."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.dsl.operators.stateless import Foreach
from pystreams.engine.input.record_queue import first_above
from pystreams.ids import TopicPartition
from tests.unit.engine.task_kit import Harness, fn, source, step


def merging(**settings: Any) -> tuple[Harness, list[str]]:
    seen: list[str] = []
    nodes = [source("a", "b"), step("see", "source", Foreach(fn(seen.append)))]
    return Harness(nodes, partitions={"a": 2}, **settings), seen


Queues = st.lists(st.lists(st.integers(0, 12), max_size=30), min_size=3, max_size=3)


@given(Queues, st.lists(st.integers(1, 7), min_size=1, max_size=4), st.integers(1, 9))
def test_runs_give_the_order_of_one_record_at_a_time(
    queues: list[list[int]], cuts: list[int], limit: int
) -> None:
    harness, seen = merging()
    for partition, times in zip(harness.partitions, queues, strict=True):
        start = 0
        while start < len(times):
            size = cuts[start % len(cuts)]
            stretch = [
                (None, f"{partition}:{start + i}", t) for i, t in enumerate(times[start : start + size])
            ]
            harness.feed(*stretch, topic=partition.topic, partition=partition.partition)
            start += size
    while harness.process(limit):
        pass
    expected = []
    heads = dict.fromkeys(harness.partitions, 0)
    by_partition = dict(zip(harness.partitions, queues, strict=True))
    while any(heads[p] < len(by_partition[p]) for p in heads):
        waiting = [p for p in heads if heads[p] < len(by_partition[p])]
        first = min(waiting, key=lambda p: (by_partition[p][heads[p]], p))
        expected.append(f"{first}:{heads[first]}")
        heads[first] += 1
    assert seen == expected
    assert harness.task.stream_time == max((t for times in queues for t in times), default=-1)


@given(Queues, st.lists(st.integers(0, 12), max_size=5), st.integers(1, 9))
def test_a_limit_of_time_stops_before_the_first_later_record_and_changes_no_order(
    queues: list[list[int]], limits: list[int], max_records: int
) -> None:
    limited, seen = merging()
    free, expected = merging()
    for harness in (limited, free):
        for partition, times in zip(harness.partitions, queues, strict=True):
            stretch = [(None, str(t), t) for t in times]
            harness.feed(*stretch, topic=partition.topic, partition=partition.partition)
    while free.process():
        pass
    now_ms = limited.clock.now_ms()
    for until in limits:
        before = len(seen)
        while limited.task.process(max_records, now_ms, until):
            pass
        assert all(int(time) <= until for time in seen[before:])
        head = limited.task.head_time
        assert head is None if len(seen) == len(expected) else head == int(expected[len(seen)]) > until
    while limited.process():
        pass
    assert seen == expected


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(-1, 10), st.data())
def test_the_end_of_a_run_is_the_first_timestamp_above_the_bound(
    times: list[int], bound: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(times)))
    end = data.draw(st.integers(start, len(times)))
    expected = next((i for i in range(start, end) if times[i] > bound), end)
    assert first_above(times, start, end, bound) == expected


@pytest.mark.parametrize("lag", [None, 3])
def test_an_empty_partition_holds_the_task_up_while_its_records_may_still_come(lag: int | None) -> None:
    harness, seen = merging()
    harness.lags = dict.fromkeys(harness.partitions, 0)
    harness.lags[TopicPartition("b", 0)] = lag
    harness.feed((None, "x", 1), topic="a")
    assert harness.process() == 0
    harness.lags[TopicPartition("b", 0)] = 0
    assert harness.process() == 1
    assert seen == ["x"]


def test_a_task_waits_for_more_records_no_longer_than_it_may_idle() -> None:
    harness, seen = merging(max_task_idle_ms=100)
    harness.feed((None, "x", 5), topic="a")
    assert harness.process() == 0
    harness.clock.advance_ms(99)
    assert harness.process() == 0
    harness.feed((None, "earlier", 1), topic="b")
    harness.feed((None, "y", 2), topic="a", partition=1)
    assert harness.process() == 1
    assert seen == ["earlier"]
    assert harness.process() == 0
    harness.clock.advance_ms(100)
    assert harness.process() == 1
    harness.clock.advance_ms(100)
    assert harness.process() == 1
    assert seen == ["earlier", "y", "x"]


def test_idling_can_be_switched_off() -> None:
    harness, seen = merging(max_task_idle_ms=-1)
    harness.lags = dict.fromkeys(harness.partitions, None)
    harness.feed((None, "x", 1), topic="a")
    assert harness.process() == 1
    assert seen == ["x"]
