"""An aggregator may change its aggregate in place and give it back: results are those of one that makes a new one."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from pystreams import SessionWindows, SlidingWindows, StreamsBuilder, TimeWindows
from pystreams.testing import TopologyTestDriver

Combine = Callable[[Any, Any], Any]


def a_new_one(texts: list[str], more: Any) -> list[str]:
    return [*texts, *more]


def in_place(texts: list[str], more: Any) -> list[str]:
    texts += more
    return texts


def all_but_anew(texts: list[str], gone: Any) -> list[str]:
    return [text for text in texts if text not in gone]


def all_but_in_place(texts: list[str], gone: Any) -> list[str]:
    texts[:] = all_but_anew(texts, gone)
    return texts


def counted_under_their_length(table: Any) -> Any:
    """The tables' changes, old values and all: each leaves the group of its old length for that of its new one."""
    groups = table.group_by(lambda key, texts: (str(len(texts)), texts), key=str, value=list)
    return groups.aggregate(list, lambda n, texts: [*n, texts], lambda n, texts: [*n, "-", texts], value=list)


def sliding(grouped: Any, combine: Combine, **store: Any) -> Any:
    return grouped.windowed_by(SlidingWindows.of(10, grace=100)).aggregate(list, combine, **store)


def hopping(grouped: Any, combine: Combine, **store: Any) -> Any:
    return grouped.windowed_by(TimeWindows.hopping(10, advance=4, grace=100)).aggregate(
        list, combine, **store
    )


def sessions(grouped: Any, combine: Combine, **store: Any) -> Any:
    windows = SessionWindows.of(2, grace=100)
    return grouped.windowed_by(windows).aggregate(list, combine, lambda a, b: combine(b, a), **store)


def without_windows(grouped: Any, combine: Combine, **store: Any) -> Any:
    return grouped.aggregate(list, combine, **store)


def reduced(grouped: Any, combine: Combine, **store: Any) -> Any:
    return grouped.reduce(combine, **store)


def of_a_table(grouped: Any, combine: Combine, **store: Any) -> Any:
    rows = grouped.reduce(lambda _, texts: texts)
    less = all_but_in_place if combine is in_place else all_but_anew
    return rows.group_by(lambda key, texts: ("all", texts), key=str, value=list).aggregate(
        list, combine, less, **store
    )


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("old_values", [True, False])
@pytest.mark.parametrize("build", [sliding, hopping, sessions, without_windows, reduced, of_a_table])
def test_results_are_those_of_an_aggregator_that_changes_nothing(
    build: Callable[..., Any], old_values: bool, cached: bool
) -> None:
    chance = random.Random(7)
    records = [
        (chance.choice("ab"), [f"{number}"], 50 + number // 2 + chance.randrange(9)) for number in range(60)
    ]

    def run(combine: Combine) -> list[Any]:
        builder = StreamsBuilder()
        grouped = builder.stream("in", key=str, value=list).group_by_key()
        table = build(grouped, combine, cached=cached)
        if old_values:
            table = counted_under_their_length(table)
        table.to_stream(lambda key, _: str(key), key=str).to("out")
        with TopologyTestDriver(builder) as driver:
            topic = driver.create_input_topic("in", key=str, value=list)
            for key, value, timestamp in records:
                topic.pipe_input(key, value, timestamp=timestamp)
            return driver.create_output_topic("out", key=str, value=list).read_key_values()

    assert run(in_place) == run(a_new_one)
