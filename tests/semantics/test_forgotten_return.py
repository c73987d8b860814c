"""An aggregator that changes its aggregate in place and forgets to return it is told so, once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from pystreams import KTable, StreamsBuilder, TimeWindows
from pystreams.testing import TopologyTestDriver

HINT = "returned None, which deletes the key; a function that changes its aggregate must also return it"


def piped(builder: StreamsBuilder, *records: tuple[str, str | None]) -> list[tuple[Any, Any]]:
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=str, value=str, start=1).pipe_key_values(records)
        return [(record.key, record.value) for record in driver.read_raw("out")]


AGGREGATIONS: dict[str, Callable[[Any], KTable[Any, Any]]] = {
    "aggregate": lambda g: g.aggregate(list, lambda rows, row: rows.append(row), step="fold"),
    "windowed aggregate": lambda g: g.windowed_by(TimeWindows.tumbling(10)).aggregate(
        list, lambda rows, row: rows.append(row), step="fold"
    ),
    "reduce": lambda g: g.reduce(lambda one, two: None, step="fold"),
    "table aggregate": lambda g: (
        g.reduce(lambda one, two: two)
        .group_by(lambda k, v: (k, v), key=str, value=str)
        .aggregate(list, lambda rows, row: rows.append(row), lambda rows, row: rows, step="fold")
    ),
}


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_it_is_reported_once_with_the_step_and_the_function(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    builder = StreamsBuilder()
    AGGREGATIONS[name](builder.stream("in", key=str, value=str).group_by_key()).to_stream().to("out")
    with caplog.at_level(logging.WARNING, "pystreams"):
        piped(builder, ("a", "1"), ("a", "2"), ("b", "3"), ("b", "4"))
    (told,) = [message for message in caplog.messages if HINT in message]
    assert told.startswith("fold: ")
    assert "test_forgotten_return.py:" in told


def test_the_key_is_deleted_all_the_same() -> None:
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().aggregate(
        list, lambda rows, row: rows.append(row), cached=False
    ).to_stream().to("out")
    assert piped(builder, ("a", "1")) == [(b"a", None)]


def test_an_aggregate_that_is_deleted_later_is_no_mistake(caplog: pytest.LogCaptureFixture) -> None:
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().aggregate(
        int, lambda count, word: None if word == "stop" else count + 1
    ).to_stream().to("out")
    assert piped(builder, ("a", "1"), ("a", "stop"))[-1] == (b"a", None)
    assert HINT not in caplog.text
