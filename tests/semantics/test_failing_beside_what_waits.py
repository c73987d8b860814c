"""A function that raises for a record that waited costs that record, and no other: they go on as if it had not been."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from pystreams import EmitStrategy, JoinWindows, SessionWindows, StreamsBuilder, TimeWindows
from pystreams.dsl.suppressed import Suppressed
from pystreams.errors import ProcessingError
from pystreams.handlers import ErrorContext, Response
from pystreams.serde.base import Serde
from pystreams.testing import TopologyTestDriver

Built = Callable[[StreamsBuilder, Any], Any]


def join(left: str, right: str | None) -> str:
    if left == "bad":
        raise ValueError("I do not like it")
    return f"{left}+{right}"


def outer(builder: StreamsBuilder, stream: Any) -> Any:
    other = builder.stream("other", key=str, value=str)
    return stream.left_join(other, join, windows=JoinWindows.of(10), value=str)


def with_grace(builder: StreamsBuilder, stream: Any) -> Any:
    return stream.left_join(
        builder.table("other", key=str, value=str, name="t", history=100), join, grace=10, value=str
    )


def read_unless_bad(data: bytes) -> str:
    if data == b"bad":
        raise ValueError("I cannot read it")
    return data.decode()


def held_back(builder: StreamsBuilder, stream: Any) -> Any:
    """A serde that writes what it cannot read: of an earlier version of the program, say."""
    text = Serde.of(str.encode, read_unless_bad)
    table = stream.map_values(lambda text: text, value=text).to_table(value=text)
    return table.suppress(Suppressed.until_time_limit(10)).to_stream().map_values(join_nothing, value=str)


def join_nothing(text: str) -> str:
    return f"{text}+None"


@pytest.mark.parametrize(
    "build, step", [(outer, "JOINTHIS"), (with_grace, "LEFTJOIN"), (held_back, "SUPPRESS")]
)
def test_the_record_leaves_and_those_behind_it_go_on(build: Built, step: str) -> None:
    asked: list[ErrorContext] = []

    def handler(context: ErrorContext) -> Response:
        asked.append(context)
        return Response.DEAD_LETTER

    builder = StreamsBuilder()
    build(builder, builder.stream("in", key=str, value=str)).to("out")
    config: dict[str, Any] = {
        "processing_exception_handler": handler,
        "errors_dead_letter_queue_topic_name": "dead",
        "statestore_cache_max_bytes": 0,
    }
    with TopologyTestDriver(builder, config) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        records = [
            ("a", "good", 0),
            ("b", "bad", 1),
            ("c", "good", 2),
            ("d", "fine", 100),
            ("e", "fine", 200),
        ]
        for key, value, timestamp in records:
            topic.pipe_input(key, value, timestamp=timestamp)
        out = driver.create_output_topic("out", key=str, value=str).read_key_values()
        assert out == [("a", "good+None"), ("c", "good+None"), ("d", "fine+None")]
        (context,) = asked
        assert step in context.step
        assert (context.timestamp, context.raw_key, context.raw_value) == (1, b"b", b"bad")
        (dead,) = driver.read_raw("dead")
        assert (dead.key, dead.value) == (b"b", b"bad")
        assert dict(dead.headers)["__streams.errors.content"] == b"store"
        assert driver.dropped_records == 1


@pytest.mark.parametrize("build, place", [(outer, "a record that waited"), (with_grace, "in-0 offset 0")])
def test_where_the_handler_says_so_it_stops_the_task(build: Built, place: str) -> None:
    builder = StreamsBuilder()
    build(builder, builder.stream("in", key=str, value=str)).to("out")
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        topic.pipe_input("a", "bad", timestamp=0)
        with pytest.raises(ProcessingError) as raised:
            topic.pipe_input("b", "good", timestamp=100)
    for part in ("I do not like it", place, "timestamp 0", "join ("):
        assert part in str(raised.value)


class Total(msgspec.Struct):
    number: int


@pytest.mark.parametrize("windows", [TimeWindows.tumbling(10), SessionWindows.of(10)])
def test_a_closed_window_that_cannot_be_read_is_left_out_alone(windows: Any) -> None:
    def add(_total: Total, value: str) -> Total:
        return Total(value if value == "bad" else int(value))  # type: ignore[arg-type]

    builder = StreamsBuilder()
    grouped: Any = builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows)
    grouped = grouped.emit_strategy(EmitStrategy.on_window_close())
    merger = [lambda one, two: two] if isinstance(windows, SessionWindows) else []
    grouped.aggregate(lambda: Total(0), add, *merger, value=Total, retention=1_000).to_stream(
        lambda window, _: window.key, key=str
    ).to("out")
    with TopologyTestDriver(builder, {"processing_exception_handler": "continue"}) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for key, value, timestamp in [("a", "1", 20), ("b", "bad", 20), ("c", "2", 20), ("d", "3", 100)]:
            topic.pipe_input(key, value, timestamp=timestamp)
        topic.pipe_input("e", "4", timestamp=200)
        totals = driver.create_output_topic("out", key=str, value=Total).read_key_values()
        assert [(key, total.number) for key, total in totals] == [("a", 1), ("c", 2), ("d", 3)]
        assert driver.dropped_records == 1


def test_sessions_stay_that_a_failing_aggregator_was_to_make_one() -> None:
    def add(text: str, value: str) -> str:
        if value == "bad":
            raise ValueError("I do not like it")
        return text + value

    builder = StreamsBuilder()
    sessions = (
        builder.stream("in", key=str, value=str).group_by_key().windowed_by(SessionWindows.of(10, grace=9))
    )
    sessions.aggregate(str, add, lambda one, two: one + two, name="sessions")
    with TopologyTestDriver(builder, {"processing_exception_handler": "continue"}) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for timestamp, value in [(0, "x"), (5, "y"), (20, "z"), (12, "bad"), (6, "w")]:
            topic.pipe_input("a", value, timestamp=timestamp)
        with driver.store("sessions").fetch("a") as found:
            assert [(str(window), text) for window, text in found] == [("a@0/6", "xyw"), ("a@20/20", "z")]
