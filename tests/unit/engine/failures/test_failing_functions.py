"""A user's function that raises stops the task, or costs its record this branch: the handler decides."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from pystreams.dsl.operators import stateless as ops
from pystreams.errors import ProcessingError, StateError
from pystreams.handlers import ErrorContext, Response
from pystreams.ids import TaskId
from pystreams.serde import INT
from pystreams.topology.nodes import Node
from tests.unit.engine.task_kit import Harness, fn, sink, source, step


def explode(value: str) -> str:
    if "!" in value:
        raise ValueError(f"cannot take {value}")
    return value.upper()


def chain(operation: Any) -> list[Node]:
    return [
        source(),
        step("KSTREAM-MAPVALUES-0000000001", "source", operation),
        sink("KSTREAM-MAPVALUES-0000000001"),
    ]


def test_the_error_says_what_failed_where_and_what_to_do() -> None:
    harness = Harness(chain(ops.MapValues(fn(explode))))
    harness.feed(("k", "a", 10), ("k", "b!", 11))
    with pytest.raises(ProcessingError) as caught:
        harness.process()
    message = str(caught.value)
    for part in (
        "step KSTREAM-MAPVALUES-0000000001 raised ValueError: cannot take b!",
        "task 0_1",
        "in-0 offset 1",
        "timestamp 11",
        f"explode ({__file__}:",
        "processing_exception_handler",
    ):
        assert part in message
    assert isinstance(caught.value.__cause__, ValueError)
    assert harness.values() == ["A"]


def test_the_traceback_shows_the_generated_line_with_the_step_and_the_users_own_line() -> None:
    harness = Harness(chain(ops.MapValues(fn(explode))))
    harness.feed(("k", "b!", 11))
    with pytest.raises(ProcessingError) as caught:
        harness.process()
    shown = "".join(traceback.format_exception(caught.value))
    assert "value = mapvalues_1(value)  # KSTREAM-MAPVALUES-0000000001" in shown
    assert 'File "<pystreams app 0' in shown
    assert 'raise ValueError(f"cannot take {value}")' in shown


def one_then_fail(value: str) -> Iterator[str]:
    yield value + "1"
    yield explode(value)


def not_a_pair(value: str) -> Any:
    return [("k", value), 7, ("k", "never")] if "!" in value else [("k", value.upper())]


@pytest.mark.parametrize(
    "operation, expected",
    [
        (ops.MapValues(fn(explode)), ["A", "C"]),
        (ops.Filter(fn(explode)), ["a", "c"]),
        (ops.Peek(fn(explode)), ["a", "c"]),
        (ops.SelectKey(fn(explode)), ["a", "c"]),
        (ops.Map(fn(lambda key, value: 5 if "!" in value else (key, value))), ["a", "c"]),
        # "b!" has two letters, and is not a pair for that.
        (ops.Map(fn(lambda key, value: value if "!" in value else [key, value])), ["a", "c"]),
        (ops.FlatMap(fn(lambda key, value: [value if "!" in value else (key, value)])), ["a", "c"]),
        (ops.FlatMapValues(fn(lambda value: None if "!" in value else [value])), ["a", "c"]),
        (ops.FlatMapValues(fn(one_then_fail)), ["a1", "A", "b!1", "c1", "C"]),
        (ops.FlatMap(fn(not_a_pair)), ["A", "b!", "C"]),
    ],
)
def test_with_continue_the_failing_record_is_left_out_and_counted(
    operation: Any, expected: list[str]
) -> None:
    harness = Harness(chain(operation), processing_exception_handler="continue")
    harness.run(("k", "a", 1), ("k", "b!", 2), ("k", "c", 3))
    assert harness.values() == expected
    assert harness.dropped() == 1


def test_with_continue_only_the_failing_branch_is_skipped() -> None:
    nodes = [
        source(),
        step("loop", "source", ops.FlatMapValues(fn(lambda value: value.split()))),
        step("bad", "loop", ops.MapValues(fn(explode))),
        step("good", "loop", ops.MapValues(fn(str.lower))),
        sink("bad", "bad-out", name="s1"),
        sink("good", "good-out", name="s2"),
    ]
    harness = Harness(nodes, processing_exception_handler="continue")
    harness.run(("k", "A b! C", 1), ("k", "D", 2))
    assert harness.values("bad-out") == ["A", "C", "D"]
    assert harness.values("good-out") == ["a", "b!", "c", "d"]


def test_an_action_at_the_end_that_fails_does_not_touch_its_siblings() -> None:
    nodes = [
        source(),
        step("act", "source", ops.Foreach(fn(explode))),
        step("show", "source", ops.Peek(fn(explode))),
        sink("source"),
    ]
    harness = Harness(nodes, processing_exception_handler="continue")
    harness.run(("k", "b!", 1))
    assert harness.values() == ["b!"]
    assert harness.dropped() == 2


def test_the_handler_learns_record_step_and_exception() -> None:
    contexts: list[ErrorContext] = []

    def handler(context: ErrorContext) -> Response:
        contexts.append(context)
        return Response.CONTINUE

    nodes = [
        source(),
        step("double", "source", ops.MapValues(fn(lambda value: value * 2))),
        step("bad", "double", ops.MapValues(fn(explode))),
        sink("bad"),
    ]
    harness = Harness(nodes, processing_exception_handler=handler)
    harness.feed(("k", "a", 1), ("k", "!", 2), headers=(("h", b"1"),))
    harness.process()
    (context,) = contexts
    assert (context.topic, context.partition, context.offset, context.timestamp) == ("in", 0, 1, 2)
    assert (context.step, context.task_id) == ("bad", TaskId(0, 1))
    assert (context.raw_key, context.raw_value, context.key, context.value) == (b"k", b"!", "k", "!!")
    assert context.headers == (("h", b"1"),)
    assert isinstance(context.exception, ValueError)


def test_a_failing_generator_is_reported_with_its_own_record() -> None:
    offsets: list[int] = []

    def handler(context: ErrorContext) -> Response:
        offsets.append(context.offset)
        return Response.CONTINUE

    harness = Harness(chain(ops.FlatMapValues(fn(one_then_fail))), processing_exception_handler=handler)
    harness.run(("k", "a", 1), ("k", "b!", 2), ("k", "c!", 3))
    assert offsets == [1, 2]


def test_a_dead_letter_is_the_record_as_it_came_with_headers_that_say_why() -> None:
    harness = Harness(
        chain(ops.MapValues(fn(explode))),
        processing_exception_handler="dead_letter",
        errors_dead_letter_queue_topic_name="dead",
    )
    harness.feed(("k", "b!", 7), headers=(("h", b"1"),))
    harness.process()
    (record,) = [r for r in harness.producer.records if r.topic == "dead"]
    assert (record.key, record.value, record.timestamp) == (b"k", b"b!", 7)
    headers = dict(record.headers)
    assert headers["h"] == b"1"
    assert headers["__streams.errors.message"] == b"cannot take b!"
    assert headers["__streams.errors.offset"] == b"0"
    assert harness.values() == []


def test_continue_leaves_the_dead_letter_topic_alone() -> None:
    """In Java the named handlers write to it whatever they decide."""
    settings = {"errors_dead_letter_queue_topic_name": "dead"}
    handlers = ("processing", "deserialization", "production")
    settings |= {f"{name}_exception_handler": "continue" for name in handlers}
    nodes = [source(value=INT), step("s", "source", ops.MapValues(fn(explode_if_odd))), sink("s", value=INT)]
    harness = Harness(nodes, **settings)
    harness.run(("k", 1, 1), ("k", b"bad", 2), ("k", 2, 3), ("k", 4, 4))
    assert [(record.topic, record.value) for record in harness.producer.records] == [
        ("out", INT.serializer("out")(4))
    ]
    assert harness.dropped() == 3


def explode_if_odd(value: int) -> Any:
    """Cannot take 1; what it makes of 2 cannot be written."""
    if value % 2:
        raise ValueError(f"cannot take {value}")
    return "no number" if value == 2 else value


def test_a_handler_that_raises_stops_the_task_and_names_both_errors() -> None:
    def handler(context: ErrorContext) -> Response:
        raise KeyError("handler")

    harness = Harness(chain(ops.MapValues(fn(explode))), processing_exception_handler=handler)
    harness.feed(("k", "b!", 1))
    with pytest.raises(ProcessingError, match="handler itself raised KeyError") as caught:
        harness.process()
    assert "cannot take b!" in str(caught.value)


def test_no_handler_is_asked_about_the_state_directory() -> None:
    def broken(value: str) -> str:
        raise StateError("the disk is full")

    harness = Harness(chain(ops.MapValues(fn(broken))), processing_exception_handler="continue")
    harness.feed(("k", "b", 1))
    with pytest.raises(StateError, match="disk is full"):
        harness.process()
