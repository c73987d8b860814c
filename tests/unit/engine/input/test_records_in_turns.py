"""Partitions whose records take turns are worked on as if by one record at a time, whatever happens on the way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.dsl.operators.stateless import Filter, Forward
from pystreams.engine.input.partition_group import HeadOrder, TimestampOrder
from pystreams.engine.input.record_queue import RecordQueue
from pystreams.errors import ProcessingError
from pystreams.ids import TopicPartition
from pystreams.processor import Processor, PunctuationType
from pystreams.record import Record
from pystreams.topology.nodes import Process
from tests.unit.engine.task_kit import Harness, fn, sink, source, step

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


class OneByOne:
    """The order of a task, without turns: each run is one record."""

    def __init__(self) -> None:
        self._order = TimestampOrder()

    def __len__(self) -> int:
        return len(self._order)

    def offer(self, queue: RecordQueue) -> None:
        self._order.offer(queue)

    def poll(self) -> RecordQueue:
        return self._order.poll()

    def run_end(self, queue: RecordQueue, end: int) -> int:
        return self._order.run_end(queue, min(end, queue.position + 1))


class Watcher(Processor[Any, Any, Any, Any]):
    """Writes down what it sees; values tell it to ask for a commit, or to schedule a punctuator."""

    def __init__(self, started: list[Watcher], seen: list[Any], interval_ms: int) -> None:
        self._started = started
        self._seen = seen
        self._interval_ms = interval_ms

    def init(self, context: Any) -> None:
        super().init(context)
        self._started.append(self)
        self.schedule(self._interval_ms)

    def process(self, record: Record[Any, Any]) -> None:
        metadata = self.context.record_metadata()
        assert metadata is not None
        stream_time = self.context.current_stream_time_ms()
        self._seen.append((record.value, record.timestamp, metadata, stream_time))
        if record.value.startswith("commit"):
            self.context.commit()
        if record.value.startswith("schedule"):
            self.schedule(3)

    def schedule(self, interval_ms: int) -> None:
        self.context.schedule(
            interval_ms, PunctuationType.STREAM_TIME, lambda now: self._seen.append(("punctuated", now))
        )


def watched(interval_ms: int, order: HeadOrder | None) -> tuple[Harness, list[Any], Watcher]:
    """One source reaches the processor, the other does not: stream time goes on with both."""
    started: list[Watcher] = []
    seen: list[Any] = []
    nodes = [
        source("a"),
        source("b", name="other"),
        step("watch", "source", Process(lambda: Watcher(started, seen, interval_ms))),
        step("pass", "other", Filter(fn(lambda value: not value.startswith("commit")))),
        sink("pass"),
    ]
    settings = {"deserialization_exception_handler": "continue", "errors_dead_letter_queue_topic_name": "dlq"}
    return Harness(nodes, partitions={"a": 2}, order=order, **settings), seen, *started


Kinds = st.sampled_from(["plain"] * 12 + ["commit", "schedule", "bad"])
Queues = st.tuples(*[st.lists(st.tuples(st.integers(0, 40), Kinds), max_size=40) for _ in range(3)])


@given(Queues, st.booleans(), st.lists(st.integers(1, 15), min_size=1, max_size=3), st.integers(1, 60))
def test_turns_are_the_same_as_one_record_at_a_time(
    queues: tuple[list[tuple[int, str]], ...], ascending: bool, sizes: list[int], limit: int
) -> None:
    both = [watched(sizes[0], None), watched(sizes[0], OneByOne())]
    partitions = both[0][0].partitions
    for partition, records in zip(partitions, queues, strict=True):
        times = sorted(time for time, _ in records) if ascending else [time for time, _ in records]
        rows = [
            (None, b"\xff" if kind == "bad" else f"{kind}-{i}", time)
            for i, (time, (_, kind)) in enumerate(zip(times, records, strict=True))
        ]
        start = 0
        while start < len(rows):
            size = sizes[start % len(sizes)]
            for harness, *_ in both:
                harness.feed(
                    *rows[start : start + size], topic=partition.topic, partition=partition.partition
                )
            start += size
    while True:
        turns, single = (harness.process(limit) for harness, *_ in both)
        assert turns == single
        assert both[0][1] == both[1][1]
        assert both[0][0].producer.records == both[1][0].producer.records
        assert both[0][0].task.positions() == both[1][0].task.positions()
        assert both[0][0].task.stream_time == both[1][0].task.stream_time
        for harness, _, watcher in both:
            harness.task.after_commit()
            # As does what a flush of the caches forwards: it is due already when the next records come.
            watcher.schedule(limit)
        if not turns:
            break
    assert all(both[0][0].task.buffered(partition) == 0 for partition in partitions)


def test_a_failure_leaves_the_positions_at_the_record_that_failed_and_names_it() -> None:
    def fail_at_5(value: str) -> bool:
        return 1 / (int(value) - 5) != 0

    harness = Harness(
        [source("a", "b"), step("divide", "source", Filter(fn(fail_at_5))), sink("divide")],
        partitions={"a": 2},
    )
    for partition, first in ((A0, 0), (A1, 1), (B0, 2)):
        records = [("k", str(number), number) for number in range(first, 12, 3)]
        harness.feed(*records, topic=partition.topic, partition=partition.partition)
    with pytest.raises(ProcessingError, match="b-0 offset 1"):
        harness.process()
    assert harness.values() == ["0", "1", "2", "3", "4"]
    positions = {partition: position.offset for partition, position in harness.task.positions().items()}
    assert positions == {A0: 2, A1: 2, B0: 1}


def test_a_dead_letter_has_the_bytes_of_the_record_that_failed() -> None:
    harness = Harness(
        [source("a", "b"), step("s", "source", Filter(fn(int))), sink("s")],
        processing_exception_handler="dead_letter",
        errors_dead_letter_queue_topic_name="dlq",
    )
    harness.feed(*[("k", word, 2 * i) for i, word in enumerate(["1", "x", "2", "3"])], topic="a")
    harness.feed(*[("k", word, 2 * i + 1) for i, word in enumerate(["4", "5", "y", "6"])], topic="b")
    harness.process()
    assert harness.values("dlq") == ["x", "y"]
    assert harness.values() == ["1", "4", "5", "2", "3", "6"]


def test_interrupted_from_another_thread_it_ends_after_the_record_at_work() -> None:
    harness: Harness

    def stop_at_3(value: str) -> bool:
        if value == "3":
            harness.task.interrupt()
        return True

    harness = Harness(
        [
            source("a", "b"),
            step("stop", "source", Filter(fn(stop_at_3))),
            step("s", "stop", Forward()),
            sink("s"),
        ]
    )
    harness.feed(*[("k", str(i), i) for i in range(0, 20, 2)], topic="a")
    harness.feed(*[("k", str(i), i) for i in range(1, 20, 2)], topic="b")
    assert harness.process() == 4
    assert harness.values() == ["0", "1", "2", "3"]
    assert [position.offset for position in harness.task.positions().values()] == [2, 2]
