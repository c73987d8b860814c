"""A join of two streams pairs records of one key that are close in time; left and outer ones wait for the rest."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams import App, JoinWindows, StreamsBuilder
from pystreams.record import Record
from pystreams.testing import TopologyTestDriver

Piped = tuple[str, str | None, str | None, int]


def results(
    method: str, windows: JoinWindows, piped: list[Piped], **settings: Any
) -> tuple[list[Record[str, str]], int]:
    """What a join of ``l`` and ``r`` gives for (topic, key, value, timestamp), and how many records it dropped."""
    builder = StreamsBuilder()
    left, right = (builder.stream(topic, key=str, value=str) for topic in ("l", "r"))
    getattr(left, method)(right, lambda one, two: f"{one}+{two}", windows=windows, **settings).to("out")
    with TopologyTestDriver(builder) as driver:
        topics = {name: driver.create_input_topic(name, key=str, value=str) for name in ("l", "r")}
        for topic, key, value, timestamp in piped:
            topics[topic].pipe_input(key, value, timestamp=timestamp)
        out = driver.create_output_topic("out", key=str, value=str)
        return out.read_records(), driver.dropped_records


@pytest.fixture(params=[True, False], ids=["on disk", "in memory"])
def persistent(request: pytest.FixtureRequest) -> bool:
    kind: bool = request.param
    return kind


def test_both_ends_of_the_window_are_in_it_and_the_later_time_is_the_results(persistent: bool) -> None:
    piped: list[Piped] = [
        ("l", "a", "L", 100),
        ("r", "a", "R1", 90),
        ("r", "a", "R2", 110),
        ("r", "a", "R3", 111),
    ]
    found, _ = results("join", JoinWindows.of(10, grace=100), piped, persistent=persistent)
    assert found == [Record("a", "L+R1", 100), Record("a", "L+R2", 110)]


def test_before_and_after_are_seen_from_the_left_record() -> None:
    windows = JoinWindows.of(0, grace=100).before(5).after(20)
    piped: list[Piped] = [("l", "a", "L", 100), *(("r", "a", f"R{t}", t) for t in (94, 95, 120, 121))]
    found, _ = results("join", windows, piped)
    assert [record.value for record in found] == ["L+R95", "L+R120"]


def test_records_of_one_time_all_meet_in_the_order_in_which_they_came(persistent: bool) -> None:
    piped: list[Piped] = [("l", "a", "1", 10), ("l", "a", "2", 10), ("r", "a", "x", 10), ("l", "a", "3", 10)]
    found, _ = results("join", JoinWindows.of(5), piped, persistent=persistent)
    assert [record.value for record in found] == ["1+x", "2+x", "3+x"]


def test_a_record_waits_until_its_window_has_closed_and_leaves_with_its_own_time(persistent: bool) -> None:
    windows = JoinWindows.of(10, grace=5)
    waiting: list[Piped] = [("l", "a", "L", 20), ("r", "b", "R", 35)]
    assert results("left_join", windows, waiting, persistent=persistent)[0] == []
    found, _ = results("left_join", windows, [*waiting, ("r", "b", "R", 36)], persistent=persistent)
    assert found == [Record("a", "L+None", 20)]


def test_a_match_that_comes_late_but_in_time_is_the_only_result() -> None:
    piped: list[Piped] = [("l", "a", "L", 20), ("l", "b", "x", 34), ("r", "a", "R", 29), ("r", "b", "y", 80)]
    found, _ = results("left_join", JoinWindows.of(10, grace=5), piped)
    assert found == [Record("a", "L+R", 29), Record("b", "x+None", 34)]


def test_only_an_outer_join_gives_right_records_without_a_match(persistent: bool) -> None:
    piped: list[Piped] = [("r", "a", "R", 20), ("l", "b", "L", 22), ("l", "c", "late", 100)]
    windows = JoinWindows.of(10)
    assert results("left_join", windows, piped, persistent=persistent)[0] == [Record("b", "L+None", 22)]
    found, _ = results("outer_join", windows, piped, persistent=persistent)
    assert found == [Record("a", "None+R", 20), Record("b", "L+None", 22)]


def test_what_cannot_be_met_any_more_leaves_at_once() -> None:
    piped: list[Piped] = [("r", "z", "time", 100), ("l", "a", "L", 50)]
    assert results("left_join", JoinWindows.of(10), piped)[0] == [Record("a", "L+None", 50)]


def test_several_waiting_records_of_one_key_and_time_leave_together(persistent: bool) -> None:
    piped: list[Piped] = [("l", "a", "1", 10), ("l", "a", "2", 10), ("l", "b", "3", 11), ("r", "z", "x", 100)]
    found, _ = results("left_join", JoinWindows.of(5), piped, persistent=persistent)
    assert [record.value for record in found] == ["1+None", "2+None", "3+None"]


@pytest.mark.parametrize(
    ("method", "given", "drops"),
    [
        ("join", [], 4),
        ("left_join", [Record(None, "L+None", 1)], 3),
        ("outer_join", [Record(None, "L+None", 1), Record(None, "None+R", 2)], 2),
    ],
)
def test_null_keys_are_results_of_the_outer_side_and_null_values_are_dropped(
    method: str, given: list[Record[str, str]], drops: int
) -> None:
    piped: list[Piped] = [("l", None, "L", 1), ("r", None, "R", 2), ("l", "a", None, 3), ("r", "a", None, 4)]
    assert results(method, JoinWindows.of(5), piped) == (given, drops)


def test_a_record_without_a_match_leaves_with_the_headers_of_the_one_that_shows_it() -> None:
    builder = StreamsBuilder()
    left, right = (builder.stream(topic, key=str, value=str) for topic in ("l", "r"))
    left.left_join(right, lambda one, two: f"{one}+{two}", windows=JoinWindows.of(5)).to("out")
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("l", key=str, value=str)
        topic.pipe_input("a", "1", timestamp=1, headers=(("h", b"first"),))
        topic.pipe_input("b", "2", timestamp=50, headers=(("h", b"second"),))
        out = driver.create_output_topic("out", key=str, value=str)
        assert out.read_records() == [Record("a", "1+None", 1, (("h", b"second"),))]


def test_in_a_join_with_itself_each_record_meets_itself_once() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    stream.join(stream, lambda one, two: one + two, windows=JoinWindows.of(5)).to("out")
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        topic.pipe_input("a", "1", timestamp=1)
        topic.pipe_input("a", "2", timestamp=3)
        out = driver.create_output_topic("out", key=str, value=str)
        assert out.read_values() == ["11", "21", "12", "22"]


def test_a_joiner_may_take_the_key() -> None:
    builder = StreamsBuilder()
    left, right = (builder.stream(topic, key=str, value=str) for topic in ("l", "r"))
    left.outer_join(right, lambda key, one, two: f"{key}{one}{two}", windows=JoinWindows.of(5)).to("out")
    with TopologyTestDriver(builder) as driver:
        for topic in ("r", "l"):
            driver.create_input_topic(topic, key=str, value=str).pipe_input("k", topic.upper(), timestamp=1)
        assert driver.create_output_topic("out", key=str, value=str).read_values() == ["kLR"]


def with_itself(method: str, optimization: str) -> tuple[list[Record[str, str]], int]:
    """The results of a stream joined with itself, and in how many stores its records are kept."""
    app = App("self", topology_optimization=optimization)
    stream = app.stream("in", key=str, value=str)
    joined = getattr(stream, method)(
        stream, lambda one, two: f"{one}{two}", windows=JoinWindows.of(5).after(8)
    )
    joined.to("out")
    with TopologyTestDriver(app) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for value, timestamp in (("1", 10), ("2", 14), ("3", 12), ("4", 14), ("5", 40), ("6", 2)):
            topic.pipe_input("a", value, timestamp=timestamp)
        topic.pipe_input(None, "7", timestamp=40)
        kept = [name for name in driver.store_names if "SHARED" not in name]
        return driver.create_output_topic("out", key=str, value=str).read_records(), len(kept)


def test_a_join_with_itself_can_do_with_one_store_and_gives_the_same_in_the_same_order() -> None:
    both, stores = with_itself("join", "none")
    assert (with_itself("join", "single.store.self.join"), stores) == ((both, 1), 2)
    assert len(both) > 10


def test_with_one_store_a_left_join_with_itself_has_no_results_without_a_match() -> None:
    found, _ = with_itself("left_join", "all")
    assert found == with_itself("join", "none")[0]
    assert Record(None, "7None", 40) in with_itself("left_join", "none")[0]
