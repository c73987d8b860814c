"""A function's annotation gives the type of what it returns, where neither the step nor a setting does."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pystreams import App, TopologyError
from pystreams.serde import BYTES, FLOAT, INT
from pystreams.testing import play
from pystreams.topology.nodes import SinkNode

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass
class Trip:
    station: str
    minutes: int


class Code(str):  # noqa: SLOT000 - as programs write it
    pass


def trip(line: str) -> Trip:
    station, minutes = line.split()
    return Trip(station, int(minutes))


def trip_or_none(line: str) -> Trip | None:
    return trip(line)


def named(line: str, name: str | None) -> Trip:
    return Trip(name or "unknown", len(line))


def by_station(line: str) -> tuple[str, Trip]:
    return trip(line).station, trip(line)


def twice(line: str) -> list[Trip]:
    return [trip(line), trip(line)]


def one_by_one(line: str) -> Iterator[Trip]:
    yield trip(line)


def pairs(line: str) -> list[tuple[int, Trip]]:
    return [(trip(line).minutes, trip(line))]


def minutes(line: str) -> int:
    return trip(line).minutes


def code(line: str) -> Code:
    return Code(line)


def anything(line: str) -> Any:
    return line


def checked_elsewhere(line: str) -> Decimal:
    return line


def played(steps: Callable[[App], Any], *before: tuple[str, Any, Any, int]) -> str:
    """What one line makes of a topology that writes what its last step computes."""
    app = App("annotated")
    steps(app).to("out")
    shown = play(app, *before, ("lines", "k", "S1 7", 2))
    return " ".join(shown.splitlines()[-1].split())


def lines(app: App) -> Any:
    return app.stream("lines", key=str, value=str)


TRIP = "out k Trip(station='S1', minutes=7) @2"
TOLD = {
    "map_values": (lambda a: lines(a).map_values(trip), TRIP),
    "map_values, or null": (lambda a: lines(a).map_values(trip_or_none), TRIP),
    "partial": (lambda a: lines(a).map_values(functools.partial(trip)), TRIP),
    "map": (lambda a: lines(a).map(by_station), TRIP.replace(" k ", " S1 ")),
    "flat_map": (lambda a: lines(a).flat_map(pairs), TRIP.replace(" k ", " 7 ")),
    "flat_map_values": (lambda a: lines(a).flat_map_values(twice), TRIP),
    "generator": (lambda a: lines(a).flat_map_values(one_by_one), TRIP),
    "select_key": (lambda a: lines(a).select_key(minutes), "out 7 S1 7 @2"),
    "group_by": (lambda a: lines(a).group_by(minutes).count().to_stream(), "out 7 1 @2"),
    "table": (lambda a: lines(a).to_table(name="t").map_values(trip).to_stream(), TRIP),
}


@pytest.mark.parametrize("steps, shown", TOLD.values(), ids=TOLD)
def test_the_annotation_is_the_type_of_what_is_written(steps, shown):
    assert played(steps) == shown


def test_an_initializer_gives_the_type_of_its_aggregate():
    def nothing() -> Trip:
        return Trip("", 0)

    def add(total: Trip, line: str) -> Trip:
        return Trip("all", total.minutes + minutes(line))

    shown = played(lambda a: lines(a).group_by_key().aggregate(nothing, add, name="all").to_stream())
    assert shown == "out k Trip(station='all', minutes=7) @2"


def test_a_joiner_gives_the_type_of_what_it_joins():
    steps = lambda a: lines(a).join(a.table("names", key=str, value=str), named)  # noqa: E731 - as programs do
    shown = played(steps, ("names", "k", "Harbour", 1))
    assert shown == "out k Trip(station='Harbour', minutes=4) @2"


def sink_serde(function: Callable[..., Any], given: Any = None, default: Any = None) -> Any:
    """The serde of the values that are written."""
    app = App("annotated")
    lines(app).map_values(function, value=given).to("out")
    (sub,) = app.build().build("annotated", default_value_serde=default).subtopologies
    (serde,) = (node.value_serde for node in sub.nodes if isinstance(node, SinkNode))
    return serde


def test_what_the_step_says_comes_first_then_a_configured_default_then_the_annotation():
    assert sink_serde(minutes, given=bytes, default=float) is BYTES
    assert sink_serde(minutes, default=float) is FLOAT
    assert sink_serde(minutes) is INT


@pytest.mark.parametrize("function", [code, anything, checked_elsewhere])
def test_text_made_of_text_stays_text(function):
    assert played(lambda a: lines(a).map_values(function)) == "out k S1 7 @2"


def test_a_type_that_no_serde_is_known_for_must_be_given_all_the_same():
    def strange(n: int) -> complex:
        return complex(n)

    app = App("annotated")
    app.stream("numbers", key=str, value=int).map_values(strange, step="x").to("out")
    with pytest.raises(TopologyError, match="the value that x computes"):
        app.build().build("annotated")
