"""Stores and records of a result are tables of typed columns, with the content that ``changelog`` and ``sink`` have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.errors import StateError, TopicError
from pystreams.serde import JsonSerde
from tests.backfill.kit import Backfill, memory
from tests.backfill.typed_program import Customer, Item, Revenue, typed, typed_history

MOMENT = pa.timestamp("us", "UTC")
CUSTOMER = pa.struct([("region", pa.string()), ("number", pa.int64())])
ITEM = pa.struct([("name", pa.string()), ("cents", pa.int64())])
REVENUE = pa.struct(
    [
        ("total", pa.decimal128(38, 18)),
        ("last", MOMENT),
        ("items", pa.list_(ITEM)),
        ("by_name", pa.map_(pa.string(), pa.int64())),
        ("note", pa.string()),
        ("first", pa.string()),
    ]
)
PLACE = [("timestamp", MOMENT), pa.field("partition", pa.int32(), nullable=False)]


@pytest.fixture(scope="module", params=["default", "headers"])
def result(request: Any, tmp_path_factory: pytest.TempPathFactory) -> BackfillResult:
    app = typed(dsl_store_format=request.param, statestore_cache_max_bytes=0)
    return Backfill(app, memory(typed_history()), tmp_path_factory.mktemp("staging")).run()


def of(type_: Any) -> Callable[[bytes], Any]:
    return JsonSerde(type_).deserializer("t")


def milliseconds(time: Any) -> int:
    return round(time.timestamp() * 1000)


def revenue_of(row: Any) -> Revenue:
    first = msgspec.json.decode(row["first"])
    return msgspec.convert({**row, "by_name": dict(row["by_name"]), "first": first}, Revenue)


def first_window(row: Any) -> bool:
    return row["key"] == {"region": "south", "number": 0} and milliseconds(row["window_start"]) == 60_000


def test_a_store_of_structs_has_struct_columns(result: BackfillResult) -> None:
    table = result.table("revenue")
    assert table.schema == pa.schema([("key", CUSTOMER), ("value", REVENUE), *PLACE])
    key, value = of(Customer), of(Revenue)
    expected = [
        (key(one.key), value(one.value), one.timestamp, partition)
        for partition, entries in result.changelog("revenue").items()
        for one in entries
    ]
    found = [
        (
            msgspec.convert(row["key"], Customer),
            revenue_of(row["value"]),
            milliseconds(row["timestamp"]),
            row["partition"],
        )
        for row in table.to_pylist()
    ]
    assert len(expected) == 6
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_windows_are_two_columns(result: BackfillResult) -> None:
    table = result.table("per-minute")
    windows = [("window_start", MOMENT), ("window_end", MOMENT)]
    assert table.schema == pa.schema([("key", CUSTOMER), *windows, ("value", pa.int64()), *PLACE])
    rows = table.to_pylist()
    assert sum(row["value"] for row in rows) == 40
    assert {milliseconds(row["window_start"]) % 60_000 for row in rows} == {0}
    assert {(row["window_end"] - row["window_start"]).total_seconds() for row in rows} == {60}
    assert len(rows) == sum(map(len, result.changelog("per-minute").values()))


def test_sessions_have_their_bounds(result: BackfillResult) -> None:
    table = result.table("visits")
    assert table.schema.names == ["key", "session_start", "session_end", "value", "timestamp", "partition"]
    assert table.schema.field("value").type == ITEM
    rows = table.to_pylist()
    assert len(rows) == sum(map(len, result.changelog("visits").values())) > 6
    assert all(row["session_start"] <= row["session_end"] for row in rows)


def test_a_store_with_versions_has_the_latest(result: BackfillResult) -> None:
    table = result.table("last-item")
    assert table.schema == pa.schema([("key", CUSTOMER), ("value", ITEM), *PLACE])
    customer, item = of(Customer), of(Item)
    latest: dict[tuple[str, int], Item] = {}
    for entries in result.changelog("last-item").values():
        for one in sorted(entries, key=lambda entry: entry.timestamp):
            assert one.value is not None
            latest[astuple(customer(one.key))] = item(one.value)
    rows = table.to_pylist()
    found = {(row["key"]["region"], row["key"]["number"]): Item(**row["value"]) for row in rows}
    assert found == latest
    assert len(found) == table.num_rows == 6


def test_a_store_of_declared_aggregates_has_what_is_shown_of_them(result: BackfillResult) -> None:
    table = result.table("declared")
    shown = pa.struct([("cents", pa.int64()), ("mean", pa.float64()), ("n", pa.int64())])
    assert table.schema == pa.schema([("key", CUSTOMER), ("value", shown), *PLACE])
    values = [row["value"] for row in table.to_pylist()]
    assert sum(value["n"] for value in values) == 40
    assert all(value["mean"] == value["cents"] / value["n"] for value in values)


def test_values_of_which_nothing_is_known_are_bytes(result: BackfillResult) -> None:
    table = result.table("own")
    assert table.schema == pa.schema([("key", pa.string()), ("value", pa.binary()), *PLACE])
    assert {(row["key"], row["value"]) for row in table.to_pylist()} == {(f"i{n}", b"8") for n in range(5)}


def test_records_for_a_topic_are_a_table(result: BackfillResult) -> None:
    table = result.emitted("big-orders")
    assert table.schema.names == ["key", "value", "timestamp", "partition", "offset", "headers"]
    assert table.schema.field("key").type == CUSTOMER
    assert table.schema.field("value").type == REVENUE
    key, value = of(Customer), of(Revenue)
    expected = [
        (partition, offset, key(one.key), value(one.value), one.timestamp)
        for partition, records in result.sink("big-orders").items()
        for offset, one in enumerate(records)
    ]
    found = [
        (
            row["partition"],
            row["offset"],
            msgspec.convert(row["key"], Customer),
            revenue_of(row["value"]),
            milliseconds(row["timestamp"]),
        )
        for row in table.to_pylist()
    ]
    assert found == expected
    assert len(found) > 10


def test_windowed_keys_of_records_are_columns_too(result: BackfillResult) -> None:
    counts = result.emitted("counts-per-minute")
    assert counts.schema.names[:4] == ["key", "window_start", "window_end", "value"]
    assert counts.schema.field("key").type == CUSTOMER
    whole = [row["value"] for row in result.table("per-minute").to_pylist() if first_window(row)]
    emitted = [row["value"] for row in counts.to_pylist() if first_window(row)]
    assert whole == [emitted[-1]]
    assert emitted == [*range(1, emitted[-1] + 1)]
    sessions = result.emitted("sessions")
    assert sessions.schema.names[:4] == ["key", "session_start", "session_end", "value"]
    # A merged session deletes those that it was made of.
    assert any(row["value"] is None for row in sessions.to_pylist())


def test_records_for_topics_that_are_chosen_have_the_sinks_types(result: BackfillResult) -> None:
    tables = [result.emitted(f"chosen-{n}") for n in (0, 1)]
    assert [table.schema.field("key").type for table in tables] == [pa.string()] * 2
    values = [row["value"] for table in tables for row in table.to_pylist()]
    assert sorted(values) == sorted(b"%d" % n for n in range(1, 9) for _ in range(5))


def test_a_topic_without_records_is_an_empty_table(tmp_path: Path) -> None:
    result = Backfill(typed(), memory({"items": [[]]}), tmp_path / "staging").run()
    for table in (result.emitted("big-orders"), result.table("revenue"), result.table("last-item")):
        assert table.num_rows == 0
        assert table.schema.field("key").type == CUSTOMER


def test_what_does_not_exist_is_reported(result: BackfillResult) -> None:
    with pytest.raises(StateError, match="no store revenu") as no_store:
        result.table("revenu")
    assert "revenue" in no_store.value.hint
    with pytest.raises(TopicError, match="no records for topic big-order") as no_topic:
        result.emitted("big-order")
    assert "big-orders" in no_topic.value.hint
