"""A repartition topic gets partial aggregates unless somebody needs its records: for each rule, an application whose
results are others if the rule is not kept."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pystreams import App, TimeWindows, agg
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.plan.ways import with_ways
from pystreams.dsl.operators.partial_results import ORDER_MATTERS
from pystreams.errors import StreamsError
from pystreams.serde import JsonSerde
from tests.backfill.kit import Backfill, everything, lines, memory

PAST = {
    "in": [
        lines([("1a", 1, 5), ("1b", 2, 12), ("2a", 4, 13), ("3a", 2, 14)]),
        lines([("2a", 7, 5), ("2b", 7, 6), ("3b", 8, 44), ("1a", 9, 13)]),
    ],
}


def by_letter(app: App, **grouping: Any) -> Any:
    stream = app.stream("in", key=str, value=int)
    return stream.group_by(lambda key, _: key[-1], key=str, value=int, **grouping)


def summed(app: App) -> Any:
    return by_letter(app).reduce(operator.add, merge=operator.add, name="s").to_stream().to("out")


def without_merge(app: App) -> None:
    by_letter(app).reduce(operator.add, name="s").to_stream().to("out")


def with_key(app: App) -> None:
    table = by_letter(app).aggregate(
        lambda: "", lambda key, text, value: f"{text}{key}{value}", merge=operator.add, name="s", value=str
    )
    table.to_stream().to("out")


def in_order(app: App) -> None:
    table = by_letter(app).aggregate(name="s", first=agg.first(lambda value: value))
    table.to_stream().map_values(lambda row: row.first, value=int).to("out")


def two_aggregations(app: App) -> None:
    grouped = by_letter(app, repartition="shared")
    grouped.reduce(operator.add, merge=operator.add, name="s").to_stream().to("out")
    grouped.reduce(max, name="most").to_stream().to("out")


def own_partitions(app: App) -> None:
    def backwards(topic: str, key: str, value: int, partitions: int) -> int:
        return -ord(key) % partitions

    moved = app.stream("in", key=str, value=int).map(lambda key, value: (key[-1], value), key=str, value=int)
    grouped = moved.repartition(name="moved", partitions=3, partitioner=backwards).group_by_key()
    grouped.count(name="s").to_stream().to("out")


def each_update(app: App) -> None:
    by_letter(app).count(name="s", cached=False).to_stream().to("out")


NEEDED: dict[str, tuple[Callable[[App], Any], str]] = {
    "no merge": (without_merge, "(merge=)"),
    "functions with the key": (with_key, "its functions take the key"),
    "the first value": (in_order, "the order of the records matters"),
    "two aggregations": (two_aggregations, "reads the topic, too"),
    "partitions by a function": (own_partitions, "chooses the partitions of the topic"),
    "each update": (each_update, "its store has no cache"),
}


def backfill(
    build: Callable[[App], Any], place: Path, *, force: bool = False, **options: Any
) -> BackfillResult:
    app = App("needed")
    build(app)
    job = Backfill(app, memory(PAST, {"out": 1}), place, commit_records=2, **options)
    if force:
        job.manifest = replace(job.manifest, records=dict.fromkeys(job.manifest.records, ""))
    return job.run()


@pytest.mark.parametrize("name", NEEDED)
def test_records_that_somebody_needs_are_written_and_would_be_missed(name: str, tmp_path: Path) -> None:
    build, why = NEEDED[name]
    result = backfill(build, tmp_path / "each")
    assert next(iter(result.manifest.records.values())).endswith(why)
    assert not result.manifest.combined
    try:
        forced = backfill(build, tmp_path / "forced", force=True)
    except (StreamsError, AssertionError):
        return
    assert not forced.manifest.combined or everything(forced) != everything(result)


def test_windows_that_go_on_from_an_earlier_backfill_get_each_record(tmp_path: Path) -> None:
    """Their stream time is that of all queues, which a task before the topic does not know."""

    def windowed(app: App) -> None:
        by_letter(app).windowed_by(TimeWindows.tumbling(10)).count(name="s")

    app = App("needed")
    windowed(app)
    job = Backfill(app, memory(PAST), tmp_path / "first")
    assert job.manifest.combined
    again = replace(job.manifest, previous_id="earlier")
    assert list(with_ways(again, job.loaded, job.plan).records.values()) == [
        "its windows go on from an earlier backfill"
    ]


class Stumbles:
    """Adds, and fails at some values: in the end, or when two sums are merged."""

    def __init__(self, *, merging: bool) -> None:
        self.merging = merging

    def add(self, one: int, two: int) -> int:
        if two == 8 and not self.merging:
            raise ValueError("eight")
        return one + two

    def merge(self, one: int, two: int) -> int:
        raise ValueError("not merged")


@pytest.mark.parametrize("merging", [True, False])
def test_partials_that_fail_are_given_up_and_each_record_is_written(
    merging: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def program(app: App) -> None:
        stumbles = Stumbles(merging=merging)
        table = by_letter(app).reduce(stumbles.add, merge=stumbles.merge, name="s")
        table.to_stream().to("out")

    handler = {"processing_exception_handler": "continue"}
    result = backfill(program, tmp_path / "given-up", **handler)
    exact = backfill(program, tmp_path / "exact", exact_updates=True, **handler)
    assert not result.manifest.combined
    assert everything(result) == everything(exact)
    assert "slice 0 is computed again, with each update" in caplog.text
    (why,) = result.manifest.records.values()
    assert why == ("ValueError: not merged" if merging else "ValueError: eight")


@pytest.mark.parametrize("first", [0.5, 1])
def test_sums_of_floats_are_added_in_their_order(first: float, tmp_path: Path) -> None:
    """Whether they are floats is known only when they have come: the first of them, or a later one."""
    adders: list[float] = []

    def chosen(value: Any) -> Any:
        adders.append(value)
        return value

    def program(app: App) -> None:
        numbers = app.stream("in", key=str, value=int).map(
            lambda key, value: (key[-1], first if value == 1 else value / 10), key=str, value=Any
        )
        numbers.group_by_key(value=JsonSerde(Any)).aggregate(name="s", total=agg.sum(chosen))

    exact = backfill(program, tmp_path / "exact", exact_updates=True)
    adders.clear()
    result = backfill(program, tmp_path / "result")
    assert everything(result)["changelogs"] == everything(exact)["changelogs"]
    assert not result.manifest.combined
    (why,) = result.manifest.records.values()
    assert why == ORDER_MATTERS
    # Where the first one shows it, no other was added in vain.
    assert (len(adders) == 1 + 8) == (first == 0.5)
