"""Behind a repartition topic, partial aggregates give what each record gives: stores, offsets, drops, late records and
the last value of each key in each sink, with its headers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pystreams import App, TimeWindows, UnlimitedWindows, agg
from pystreams.backfill.compute.result import BackfillResult
from tests.backfill.kit import Backfill, everything, last_values, memory
from tests.live.support import Line


def add(items: list[int], value: int) -> list[int]:
    """Changes its aggregate in place."""
    items.append(value)
    items.sort()
    return items


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
@given(rows=records, held=st.sampled_from([2, 3, 1_000]), rising=st.booleans())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_result_is_that_of_each_record(
    name: str, rows: list[Any], held: int, rising: bool, tmp_path: Path
) -> None:
    rows = sorted(rows, key=lambda record: record[2]) if rising else rows
    source = memory({"in": history_of(rows, 3)}, {"out": 1})

    def result(*, exact_updates: bool) -> BackfillResult:
        place = tmp_path / ("exact" if exact_updates else "combined")
        app = application(name, 330 * held)
        return Backfill(app, source, place, commit_records=7, exact_updates=exact_updates).run(overwrite=True)

    exact, combined = result(exact_updates=True), result(exact_updates=False)
    assert combined.manifest.combined
    was, now = everything(exact), everything(combined)
    assert now["changelogs"] == was["changelogs"]
    assert now["offsets"] == was["offsets"]
    assert last_values(now["sinks"]) == last_values(was["sinks"])
    for index, one in now["slices"].items():
        before = was["slices"][index]
        assert (one.dropped, one.late, one.stores) == (before.dropped, before.late, before.stores)
