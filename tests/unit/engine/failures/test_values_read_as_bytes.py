"""A function that fails because its topic was declared without a type of its values is told so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pystreams import StreamsBuilder
from pystreams.errors import ProcessingError
from pystreams.testing import TopologyTestDriver

ADVICE = (
    "the values of topic ins are read as bytes, as they are without value=: give their type where it is read "
    "(value=dict, value=str, a class); or correct the function"
)


def message(build: Callable[[StreamsBuilder], Any], value: bytes = b'{"gate": 1}') -> str:
    """The error at a record with this value."""
    builder = StreamsBuilder()
    build(builder)
    with TopologyTestDriver(builder) as driver, pytest.raises(ProcessingError) as caught:
        driver.create_input_topic("ins", key=bytes, value=bytes).pipe_input(b"k", value)
    return str(caught.value)


def assert_not_blamed(text: str) -> None:
    assert "correct the function" in text
    assert "read as bytes" not in text


@pytest.mark.parametrize(
    "function",
    [lambda v: v.gate, lambda v: v["gate"], lambda v: v.split(",")],
    ids=["attribute", "item", "text"],
)
def test_the_advice_is_to_give_the_topics_values_a_type(function: Callable[[Any], Any]) -> None:
    assert ADVICE in message(
        lambda builder: builder.stream("ins").filter(lambda k, v: True).map_values(function)
    )


def test_values_of_a_declared_type_are_not_blamed() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("ins", value=dict).map_values(lambda v: v.gate)

    assert_not_blamed(message(build))


def test_values_that_another_step_makes_are_not_blamed_on_the_topic() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("ins").map_values(lambda v: v + b"!").map_values(lambda v: v.gate)

    assert_not_blamed(message(build))


@pytest.mark.parametrize(
    "function", [int, lambda v: {}["gate"], lambda v: [] + 1], ids=["value", "key", "type"]
)
def test_errors_that_are_not_about_bytes_keep_their_advice(function: Callable[[Any], Any]) -> None:
    text = message(lambda builder: builder.stream("ins").map_values(function))
    assert_not_blamed(text)
