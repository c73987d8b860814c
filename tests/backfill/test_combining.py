"""Behind a repartition topic, partial aggregates give what each record gives: stores, offsets, drops, late records and
the last value of each key in each sink, with its headers; however many records are added at once."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from pystreams import App, TimeWindows, UnlimitedWindows, agg
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.dsl.operators import partial_columns
from pystreams.serde import Serde
from pystreams.serde.base import AnySerde
from tests.backfill.kit import Backfill, everything, last_values, memory
from tests.examples import examples
from tests.live.support import Line


def add(items: list[int], value: int) -> list[int]:
    """Changes its aggregate in place."""
    items.append(value)
    items.sort()
    return items


class Amount(msgspec.Struct):
    """A value that a program may change, and that is read from its bytes."""

    cents: int


#: Values that are not read as they were written.
HALVES: AnySerde = Serde.of(lambda value: b"%d" % (value // 2), int)


APPS: dict[str, Callable[[Any], Any]] = {
    "count": lambda grouped: grouped.count(name="s"),
    "sum": lambda grouped: grouped.reduce(operator.add, merge=operator.add, name="s"),
    "in place": lambda grouped: grouped.aggregate(
        list, add, merge=lambda one, two: sorted(one + two), name="s", value=list
    ),
    "tumbling": lambda grouped: grouped.windowed_by(TimeWindows.tumbling(10, grace=5)).count(name="s"),
    "hopping": lambda grouped: grouped.windowed_by(TimeWindows.hopping(10, advance=4, grace=3)).aggregate(
        int, lambda total, value: total + (value or 0), merge=operator.add, name="s"
    ),
    "since a time": lambda grouped: grouped.windowed_by(UnlimitedWindows(20)).count(name="s"),
    "declared": lambda grouped: grouped.aggregate(name="s", total=agg.sum(lambda v: v), n=agg.count()),
    "declared by window": lambda grouped: grouped.windowed_by(TimeWindows.tumbling(10)).aggregate(
        name="s", most=agg.max(lambda v: v), n=agg.count()
    ),
    "declared by key": lambda grouped: grouped.aggregate(
        name="s", mean=agg.mean(lambda v: v), some=agg.count(lambda v: v if v > 2 else None)
    ),
    "declared by hopping windows": lambda grouped: grouped.windowed_by(
        TimeWindows.hopping(10, advance=4, grace=0)
    ).aggregate(name="s", total=agg.sum(lambda v: v), low=agg.min(lambda v: v)),
}


def application(name: str, bytes_max: int = 1_000_000) -> App:
    app = App("combines", statestore_uncommitted_max_bytes=bytes_max)
    stream = app.stream("in", key=str, value=int)
    grouped = stream.group_by(lambda key, _: key[-1], key=str, value=int)
    table = APPS[name](grouped)
    table.to_stream().map(lambda key, value: (str(key), str(value)), key=str, value=str).to("out")
    return app


records = st.lists(
    st.tuples(
        st.sampled_from(["1a", "2b", "3b", "4c"]),
        st.sampled_from([None, 1, 2, 3, 4]),
        st.integers(0, 60),
        st.sampled_from([(), (("h", b"1"),), (("h", b"2"),)]),
    ),
    max_size=60,
)


def history_of(rows: list[Any], partitions: int) -> list[list[Line]]:
    history: list[list[Line]] = [[] for _ in range(partitions)]
    for number, (key, value, at, headers) in enumerate(rows):
        data = None if value is None else value.to_bytes(8, "big")
        history[number % partitions].append(Line(key.encode(), data, at, headers))
    return history


@pytest.mark.parametrize("name", APPS)
@given(
    rows=records,
    held=st.sampled_from([2, 3, 1_000]),
    rising=st.booleans(),
    waiting=st.sampled_from([1, 3, 1_000]),
)
@examples(6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_result_is_that_of_each_record(
    name: str, rows: list[Any], held: int, rising: bool, waiting: int, tmp_path: Path
) -> None:
    rows = sorted(rows, key=lambda record: record[2]) if rising else rows
    source = memory({"in": history_of(rows, 2)}, {"out": 1})

    def result(*, exact_updates: bool) -> BackfillResult:
        place = tmp_path / ("exact" if exact_updates else "combined")
        app = application(name, 330 * held)
        return Backfill(app, source, place, commit_records=7, exact_updates=exact_updates).run(overwrite=True)

    with patch.object(partial_columns, "_WAITING_MAX", waiting):
        same(result(exact_updates=True), result(exact_updates=False))


def same(exact: BackfillResult, combined: BackfillResult) -> None:
    """Raise ``AssertionError`` unless a backfill that combines comes to what one with each update comes to."""
    assert combined.manifest.combined
    was, now = everything(exact), everything(combined)
    assert now["changelogs"] == was["changelogs"]
    assert now["offsets"] == was["offsets"]
    assert last_values(now["sinks"]) == last_values(was["sinks"])
    for index, one in now["slices"].items():
        before = was["slices"][index]
        assert (one.dropped, one.late, one.stores) == (before.dropped, before.late, before.stores)


KINDS: dict[str, tuple[Callable[[int], Any], Any, Callable[[Any], int]]] = {
    "a changing serde": (int, HALVES, int),
    "true": (lambda value: value > 1, int, int),
    "objects": (Amount, Amount, lambda amount: amount.cents),
}


@pytest.mark.parametrize("windows", [None, TimeWindows.tumbling(10, grace=5)])
@pytest.mark.parametrize("name", KINDS)
@given(rows=records)
@examples(6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_values_are_those_that_come_out_of_the_topic(
    name: str, windows: Any, rows: list[Any], tmp_path: Path
) -> None:
    make, serde, number = KINDS[name]

    def program() -> App:
        app = App("combines")
        stream = app.stream("in", key=str, value=int).filter(lambda value: value is not None)
        grouped = stream.map(lambda key, value: (len(key), make(value)), key=int, value=serde).group_by_key()
        windowed: Any = grouped if windows is None else grouped.windowed_by(windows)
        windowed.aggregate(name="s", total=agg.sum(number), n=agg.count())
        return app

    source = memory({"in": history_of(rows, 2)})
    exact = Backfill(program(), source, tmp_path / "exact", exact_updates=True).run(overwrite=True)
    same(exact, Backfill(program(), source, tmp_path / "combined").run(overwrite=True))
