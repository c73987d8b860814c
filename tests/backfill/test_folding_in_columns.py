"""Aggregations that fold hold their results in columns: stores, offsets, drops and the last value of each key in each
sink are those of a backfill that writes each update; also if some records are unusual, however they come in batches,
and if few results may be held."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from pystreams import App, TimeWindows, agg, field
from pystreams.backfill import backfill
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.workers.shipping import shipped
from pystreams.dsl.operators import column_looks
from pystreams.dsl.operators.final_columns import ColumnFold
from tests.backfill.kit import Backfill, everything, last_values, lines, memory
from tests.examples import examples


class Order(msgspec.Struct):
    cents: int
    items: int | None = None
    note: str | None = None


def numbers(app: App) -> Any:
    grouped = app.stream("in", key=str, value=int).group_by_key()
    return grouped, {
        "n": agg.count(),
        "some": agg.count(lambda value: value or None),
        "total": agg.sum(),
        "mean": agg.mean(),
        "low": agg.min(),
        "high": agg.max(),
    }


def orders(app: App) -> Any:
    grouped = app.stream("in", key=int, value=Order).group_by_key()
    return grouped, {
        "total": agg.sum("cents"),
        "items": agg.sum("items"),
        "least": agg.min("items"),
        "notes": agg.count("note"),
    }


def halves(app: App) -> Any:
    """The order of floats matters."""
    grouped = app.stream("in", key=str, value=int).group_by_key()
    return grouped, {"total": agg.sum(lambda value: value / 3), "first": agg.max()}


def records_alone(app: App) -> Any:
    return app.stream("in", key=str, value=int).group_by_key(), {}


def with_a_function(app: App) -> Any:
    return app.stream("in", key=str, value=int).group_by_key(), deleting


def deleting(one: int | None, two: int | None) -> int | None:
    """Forgets its aggregate now and then."""
    return None if two is None or two % 5 == 0 else (one or 0) * 2 + two


def behind_a_step(app: App) -> Any:
    """The records do not come in columns, because a function is called for each."""
    positive = app.stream("in", key=str, value=int).filter(lambda value: value is None or value > 0)
    return positive.group_by_key(), {"total": agg.sum(), "n": agg.count()}


def behind_expressions(app: App) -> Any:
    """Stream time and late records are those of the records that pass the filters."""
    wanted = (field("cents") > 40) | field("note").is_null()
    stream = app.stream("in", key=int, value=Order).filter(wanted).filter_not(field("items") < 3)
    return stream.group_by_key(), {
        "total": agg.sum("cents"),
        "both": agg.sum(field("cents") + field("items")),
        "noted": agg.count(field("note")),
    }


def computed_numbers(app: App) -> Any:
    """Some are null."""
    stream = app.stream("in", key=int, value=Order).filter(field("cents") != 7)
    items = stream.map_values(3 * field("items") - field("cents"), value=int)
    return items.group_by_key(), {"total": agg.sum(), "n": agg.count()}


STREAMS = {
    "numbers": numbers,
    "orders": orders,
    "halves": halves,
    "count": records_alone,
    "function": with_a_function,
    "behind a step": behind_a_step,
    "behind expressions": behind_expressions,
    "computed numbers": computed_numbers,
}
#: The streams whose values are orders.
OF_ORDERS = {"orders", "behind expressions", "computed numbers"}
WINDOWS = {"by key": None, "tumbling": TimeWindows.tumbling(10, grace=5)}


def application(stream: str, windows: str, **config: Any) -> App:
    app = App(
        "columns",
        deserialization_exception_handler="continue",
        default_timestamp_extractor="log_and_skip",
        **config,
    )
    grouped, aggregates = STREAMS[stream](app)
    if WINDOWS[windows] is not None:
        grouped = grouped.windowed_by(WINDOWS[windows])
    if callable(aggregates):
        table = grouped.reduce(aggregates, name="s")
    else:
        table = grouped.aggregate(name="s", **aggregates) if aggregates else grouped.count(name="s")
    table.to_stream().map(lambda key, row: (str(key), str(row)), key=str, value=str).to("out")
    return app


def histories(stream: str) -> Any:
    """Records, few of which are unusual."""
    keys = st.sampled_from([1, 2, 3, 44] if stream in OF_ORDERS else ["a", "b", "c", "dd"])
    number = st.integers(-3, 400)
    values = (
        st.builds(Order, number, st.none() | number, st.sampled_from([None, "n"]))
        if stream in OF_ORDERS
        else number
    )
    usual = st.tuples(keys, values, st.integers(0, 60))
    unusual = st.tuples(st.none() | keys, st.none() | values, st.integers(-1, 60))
    return st.lists(st.one_of(usual, usual, usual, usual, unusual), max_size=60)


@pytest.fixture(autouse=True)
def small_batches() -> Iterator[None]:
    """What is done once for many records is done once for four."""
    with patch.object(column_looks, "BATCH_RECORDS", 4):
        yield


def compared(
    source: Any, place: Path, make: Any, expired_to_ms: int = -1, **how: Any
) -> tuple[BackfillResult, BackfillResult]:
    """A backfill with each update, and one that folds, which comes to the same.

    Windows that start at ``expired_to_ms`` or before have expired by the stream time of the step. A store hides them
    once something later has been written to it. Commits decide this if what came later was deleted before it was
    written. So such windows are not compared.
    """
    exact = Backfill(make(), source, place / "exact", commit_records=7, exact_updates=True).run(
        overwrite=True
    )
    folded = Backfill(make(), source, place / "folded", commit_records=7, **how).run(overwrite=True)
    assert folded.manifest.folded
    was, now = everything(exact), everything(folded)
    assert lasting(now, expired_to_ms) == lasting(was, expired_to_ms)
    assert now["offsets"] == was["offsets"]
    assert last_values(now["sinks"]) == last_values(was["sinks"])
    return exact, folded


def lasting(result: Any, expired_to_ms: int) -> Any:
    """The changelogs and the manifest's slices of ``everything``, without windows that start at ``expired_to_ms`` or
    before."""
    if expired_to_ms < 0:
        return result["changelogs"], result["slices"]
    changelogs = [
        [entry for entry in entries if window_start_ms(entry.key) > expired_to_ms]
        for entries in result["changelogs"]["s"].values()
    ]
    return changelogs, [replace(of_slice, stores={}) for of_slice in result["slices"].values()]


def window_start_ms(changelog_key: bytes) -> int:
    return int.from_bytes(changelog_key[-12:-4], "big")


def expired_to_ms(stream: str, windows: str, records: list[Any]) -> int:
    """The start of the last window that has expired, where a function may delete the aggregates of windows."""
    times = [record.timestamp for record in records if record.key is not None and record.value != b"?"]
    if stream != "function" or WINDOWS[windows] is None or not times:
        return -1
    return max(times) - WINDOWS[windows].size_ms - WINDOWS[windows].grace_ms


@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("stream", STREAMS)
@given(data=st.data())
@examples(6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_result_is_that_of_each_update(stream: str, windows: str, data: Any, tmp_path: Path) -> None:
    history = data.draw(histories(stream))
    if data.draw(st.booleans(), "in the order of time"):
        history.sort(key=lambda record: record[2])
    kinds = {"key": int, "value": Order} if stream in OF_ORDERS else {"key": str, "value": int}
    traced = data.draw(st.frozensets(st.integers(0, 60), max_size=9), "records with headers")
    records = [
        record._replace(headers=(("trace", b"%d" % number),)) if number in traced else record
        for number, record in enumerate(lines(history, **kinds))
    ]
    bad = data.draw(st.none() | st.integers(0, max(0, len(records) - 1)), "bytes that cannot be read")
    if bad is not None and records:
        records[bad] = records[bad]._replace(value=b"?")
    source = memory({"in": [records]}, {"out": 1})
    held = data.draw(st.sampled_from([2, 3, 1_000]), "held")
    compared(
        source,
        tmp_path,
        lambda: application(stream, windows, statestore_uncommitted_max_bytes=400 * held),
        expired_to_ms(stream, windows, records),
        batch_rows=data.draw(st.sampled_from([1, 5, 1_000]), "rows of a batch"),
    )


@pytest.mark.parametrize("uncommitted_max_bytes", [800, 1_000_000])
@pytest.mark.parametrize("first", [6, 7])
def test_commits_and_memory_decide_only_whether_expired_windows_remain(
    first: int, uncommitted_max_bytes: int, tmp_path: Path
) -> None:
    # What is later than the window at 0 is deleted again: between two commits, or after one.
    history = [*[("a", 1, 0)] * first, ("a", 0, 30), ("a", None, 20), ("a", 0, 30)]
    records = lines(history, key=str, value=int)
    compared(
        memory({"in": [records]}, {"out": 1}),
        tmp_path,
        lambda: application("function", "tumbling", statestore_uncommitted_max_bytes=uncommitted_max_bytes),
        expired_to_ms("function", "tumbling", records),
        batch_rows=1,
    )


@pytest.mark.parametrize("stream", ["numbers", "function"])
@pytest.mark.parametrize("windows", WINDOWS)
@given(history=histories("numbers"), rows=st.sampled_from([1, 2, 5]))
@examples(6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_depends_on_the_batches_even_if_few_results_are_held(
    windows: str, stream: str, history: list[Any], rows: int, tmp_path: Path
) -> None:
    source = memory({"in": [lines(history)]}, {"out": 1})

    def result(name: str, batch_rows: int) -> Any:
        app = application(stream, windows, statestore_uncommitted_max_bytes=800)
        job = Backfill(app, source, tmp_path / name, commit_records=7, batch_rows=batch_rows)
        return everything(job.run(overwrite=True))

    assert result("one", rows) == result("other", 1_000)


@pytest.mark.parametrize(
    ("stream", "in_columns"),
    [
        *[("numbers", 7), ("orders", 7), ("halves", 7), ("count", 7), ("function", 7), ("behind a step", 0)],
        *[("behind expressions", 7), ("computed numbers", 7)],
    ],
)
def test_records_come_in_columns_also_with_headers_and_beside_late_ones_and_in_other_processes(
    stream: str, in_columns: int, tmp_path: Path
) -> None:
    times = [0 if n == 9 else 3 * n for n in range(12)]
    history = [
        (n % 3, Order(n + 40, items=n, note="n"), time) if stream in OF_ORDERS else (f"k{n % 3}", n, time)
        for n, time in enumerate(times)
    ]
    kinds = {"key": int, "value": Order} if stream in OF_ORDERS else {"key": str, "value": int}
    records = lines(history, **kinds)
    # Of the batches of four, the first one has a value that is null, the second one is cut in two by a commit.
    records[0] = records[0]._replace(value=None)
    records[5] = records[5]._replace(headers=(("trace", b"1"),))
    added: list[int] = []
    add_batch = ColumnFold.add_batch

    def counting(step: ColumnFold, batch: Any) -> None:
        added.append(len(batch.keys))
        add_batch(step, batch)

    with patch.object(ColumnFold, "add_batch", counting):
        source = memory({"in": [records]}, {"out": 1})
        sent = pickle.loads(shipped(application(stream, "tumbling")))
        compared(source, tmp_path, lambda: sent, batch_rows=4)
    assert sum(added) == in_columns


@pytest.mark.parametrize("batch_rows", [1, 1_000])
def test_a_late_record_is_dropped_and_the_others_are_not(batch_rows: int, tmp_path: Path) -> None:
    history = [("a", 1, 0), ("a", 2, 30), ("a", 4, 5), ("b", 8, 31)]
    source = memory({"in": [lines(history)]}, {"out": 1})
    make = partial(application, "numbers", "tumbling")
    exact, folded = compared(source, tmp_path, make, batch_rows=batch_rows)
    ((exactly,), (result,)) = exact.manifest.slices.values(), folded.manifest.slices.values()
    assert [(one.records, one.late_ms, one.grace_ms) for one in result.late] == [(1, 25, 21)]
    assert result.late == exactly.late


def test_a_late_record_becomes_a_dead_letter(tmp_path: Path) -> None:
    history = [("a", 1, 0), ("a", 2, 30), ("a", 4, 5), ("b", 8, 31)]
    source = memory({"in": [lines(history)]}, {"out": 1, "dlq": 1})
    settings = {"errors_dead_letter_queue_topic_name": "dlq", "dead_letter_dropped_records": True}
    exact, folded = compared(source, tmp_path, lambda: application("numbers", "tumbling", **settings))
    assert len(everything(folded)["sinks"]["dlq"][0]) == 1
    assert everything(folded)["sinks"]["dlq"] == everything(exact)["sinks"]["dlq"]


@pytest.mark.parametrize("number", [1 << 49, -(1 << 49), 1 << 62])
def test_numbers_whose_sum_may_be_too_large_are_added_with_each_update(
    number: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = memory({"in": [lines([("a", number, 1), ("a", 1, 2), ("a", number - 1, 3)])]}, {"out": 1})
    exact = Backfill(application("numbers", "by key"), source, tmp_path / "e", exact_updates=True).run()
    folded = Backfill(application("numbers", "by key"), source, tmp_path / "f").run()
    assert everything(folded) == everything(exact)
    assert "is computed again, with each update" in caplog.text
    assert "might not fit into 64 bits" in caplog.text


@pytest.mark.parametrize("stream", ["numbers", "function"])
@pytest.mark.parametrize("windows", WINDOWS)
def test_an_earlier_backfill_is_continued(windows: str, stream: str, tmp_path: Path) -> None:
    history = [(f"k{n % 5}", n, n) for n in range(40)]

    def run(until: int, name: str, **previous: Any) -> BackfillResult:
        return backfill(
            application(stream, windows),
            sources=memory({"in": [lines(history[:until])]}, {"out": 1}),
            staging=tmp_path / name,
            **previous,
        )

    run(17, "first")
    continued, whole = run(40, "second", previous=tmp_path / "first"), run(40, "whole")
    assert everything(continued)["changelogs"] == everything(whole)["changelogs"]
    assert everything(continued)["offsets"] == everything(whole)["offsets"]
