"""A stream joined with a table that keeps versions may wait for rows that come late."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams import JoinWindows, StreamsBuilder
from pystreams.config import StreamsConfig
from pystreams.errors import ProcessingError, TopologyError
from pystreams.processor import FixedKeyProcessor, PunctuationType
from pystreams.record import Record
from pystreams.testing import TopologyTestDriver

Piped = tuple[str, str | None, str | None, int]


def results(method: str, grace: int, piped: list[Piped], history: int = 100) -> list[tuple[Any, Any, int]]:
    """(key, value, timestamp) of a join of stream ``s`` with table ``t``."""
    builder = StreamsBuilder()
    table = builder.table("t", key=str, value=str, name="v", history=history)
    stream = builder.stream("s", key=str, value=str)
    getattr(stream, method)(table, lambda one, row: f"{one}+{row}", value=str, grace=grace).to("out")
    with TopologyTestDriver(builder) as driver:
        topics = {name: driver.create_input_topic(name, key=str, value=str) for name in ("s", "t")}
        for topic, key, value, timestamp in piped:
            topics[topic].pipe_input(key, value, timestamp=timestamp)
        records = driver.create_output_topic("out", key=str, value=str).read_records()
        return [(record.key, record.value, record.timestamp) for record in records]


def test_a_record_meets_the_row_that_came_after_it_but_is_of_its_time() -> None:
    waiting: list[Piped] = [("s", "a", "x", 20), ("t", "a", "late", 15), ("s", "b", "y", 29)]
    assert results("join", 10, waiting) == []
    assert results("join", 10, [*waiting, ("s", "b", "z", 30)]) == [("a", "x+late", 20)]


def test_only_the_streams_records_move_its_time() -> None:
    assert results("join", 10, [("t", "a", "1", 15), ("s", "a", "x", 20), ("t", "a", "2", 90)]) == []


def test_what_waits_leaves_in_the_order_of_time_and_key() -> None:
    piped: list[Piped] = [("s", "b", "1", 12), ("s", "a", "2", 12), ("s", "c", "3", 11), ("s", "z", "4", 50)]
    found = results("left_join", 10, piped)
    assert [value for _, value, _ in found] == ["3+None", "2+None", "1+None"]


def test_equal_records_all_wait_in_the_order_in_which_they_came() -> None:
    piped: list[Piped] = [*(("s", "a", text, 12) for text in "321"), ("s", "z", "4", 50)]
    assert [value for _, value, _ in results("left_join", 10, piped)] == ["3+None", "2+None", "1+None"]


def test_a_record_later_than_the_grace_does_not_wait() -> None:
    piped: list[Piped] = [("t", "a", "1", 15), ("s", "b", "y", 50), ("s", "a", "x", 39)]
    assert results("join", 10, piped) == [("a", "x+1", 39)]


def test_without_grace_nothing_waits() -> None:
    assert results("join", 0, [("t", "a", "1", 15), ("s", "a", "x", 20)]) == [("a", "x+1", 20)]


def test_a_record_without_a_key_cannot_wait() -> None:
    assert results("join", 10, [("s", None, "x", 1)]) == []
    with pytest.raises(ProcessingError, match="without a key cannot wait"):
        results("left_join", 10, [("s", None, "x", 1)])


class Tick(FixedKeyProcessor[str, str, str]):
    """Hands a record on from a punctuator, where it comes from no topic."""

    def process(self, record: Record[str, str]) -> None:
        held = self.context.schedule(5, PunctuationType.WALL_CLOCK_TIME, lambda _: forward())

        def forward() -> None:
            held.cancel()
            self.context.forward(record)


def test_a_punctuators_record_waits_like_all_others() -> None:
    builder = StreamsBuilder()
    table = builder.table("t", key=str, value=str, name="v", history=100)
    ticks = builder.stream("s", key=str, value=str).process_values(Tick, value=str)
    ticks.join(table, lambda one, row: f"{one}+{row}", value=str, grace=10).to("out")
    with TopologyTestDriver(builder) as driver:
        topics = {name: driver.create_input_topic(name, key=str, value=str) for name in ("s", "t")}
        topics["s"].pipe_input("a", "x", timestamp=20)
        driver.advance_wall_clock_time(5)
        topics["t"].pipe_input("a", "late", timestamp=15)
        topics["s"].pipe_input("a", "y", timestamp=30)
        driver.advance_wall_clock_time(5)
        records = driver.create_output_topic("out", key=str, value=str).read_records()
    assert [(record.value, record.timestamp) for record in records] == [("x+late", 20)]


def test_a_table_that_forgets_before_is_refused() -> None:
    with pytest.raises(TopologyError) as caught:
        results("join", 11, [], history=10)
    assert "keeps versions for 10 ms, and records wait for 11 ms" in str(caught.value)


def test_a_table_without_versions_is_refused() -> None:
    builder = StreamsBuilder()
    table = builder.table("t", key=str, value=str).filter(lambda value: True)
    with pytest.raises(TopologyError, match="needs a versioned table"):
        builder.stream("s", key=str, value=str).join(table, lambda one, row: one + row, grace=5)


def test_streams_have_their_grace_elsewhere() -> None:
    builder = StreamsBuilder()
    one, other = (builder.stream(name, key=str, value=str) for name in "ab")
    arguments: Any = {"windows": JoinWindows.of(5), "grace": 5}
    with pytest.raises(TopologyError, match="takes grace= with a table, not with KStream"):
        one.join(other, lambda left, right: left + right, **arguments)


def test_the_buffer_has_the_name_of_the_step_and_counts_as_unnamed_without_one() -> None:
    for step in ("meet", None):
        builder = StreamsBuilder(ensure_explicit_internal_resource_naming=True)
        table = builder.table("t", key=str, value=str, name="v", history=10)
        stream = builder.stream("s", key=str, value=str)
        stream.join(table, lambda one, row: one + row, grace=5, step=step).to("out")
        if step is None:
            with pytest.raises(TopologyError, match="-Buffer-changelog"):
                builder.build()
        else:
            topology = builder.build(StreamsConfig.of(application_id="t"))
            assert "meet-Buffer" in topology.describe()
