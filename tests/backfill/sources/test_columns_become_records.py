"""Columns become the keys and values that a program's types say, in the bytes that producers write; what does not fit
is told at once, before a row is read."""

from __future__ import annotations

import dataclasses
import enum
import uuid
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, TypedDict

import msgspec
import pyarrow as pa
import pydantic
import pytest

from pystreams.app import App
from pystreams.backfill.application import loaded
from pystreams.backfill.sources import DataFrameSource, SparkTable
from pystreams.backfill.sources.frames.encoding import RowEncoder
from pystreams.errors import ConfigError, SerializationError
from pystreams.partitioning import partition_for_key
from pystreams.serde import INT32, MsgpackSerde, serde_for

BERLIN = timezone(timedelta(hours=1))
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
NOON_MS = 1_709_294_400_000


class Color(enum.Enum):
    RED = "red"


class Part(msgspec.Struct):
    name: str
    size: float


class Order(msgspec.Struct):
    customer: str
    id: uuid.UUID
    cents: int
    at: datetime
    day: date
    color: Color
    price: Decimal
    parts: list[Part]
    labels: dict[str, int]
    due: int | None = None
    note: str = "-"


@dataclasses.dataclass
class Plain:
    customer: str
    cents: int


class Model(pydantic.BaseModel):
    customer: str
    cents: int
    parts: list[dict[str, float | str]] = []


class Typed(TypedDict):
    customer: str
    cents: int


class Tagged(msgspec.Struct, tag="order", rename="camel"):
    customer_name: str


ID = uuid.UUID(int=7)

TABLE = pa.table(
    {
        "customer": ["ann"],
        "id": [str(ID)],
        "cents": pa.array([450], pa.int32()),
        "at": pa.array([NOON.astimezone(BERLIN)], pa.timestamp("us", tz="Europe/Berlin")),
        "day": [date(2024, 3, 1)],
        "color": ["red"],
        "price": pa.array([Decimal("4.50")], pa.decimal128(10, 2)),
        "parts": pa.array(
            [[{"name": "lid", "size": 1.5}]],
            pa.list_(pa.struct([("name", pa.string()), ("size", pa.float32())])),
        ),
        "labels": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        "due": pa.array([NOON.replace(tzinfo=None)], pa.timestamp("us")),
        "raw": [b"\x00\x01"],
        "nothing": pa.array([None], pa.string()),
        "customerName": ["ann"],
        "at_ms": pa.array([NOON_MS], pa.int64()),
    }
)


def encoder(schema: pa.Schema, key_type: Any, value_type: Any, /, **columns: Any) -> RowEncoder:
    app = App("shop")
    app.stream("orders", key=key_type, value=value_type).foreach(lambda key, value: None)
    columns = {"timestamp": "at", **columns}
    source = DataFrameSource(SparkTable("table", "orders"), **columns)
    return RowEncoder(source, schema, loaded(app, {}), "orders", 4, "table orders")


def encoded(value_type: Any, /, table: pa.Table = TABLE, **columns: Any) -> dict[str, Any]:
    """The one row as a record; only the columns that are needed are given."""
    own = encoder(table.schema, str, value_type, **columns)
    (batch,) = table.select(list(own.columns)).to_batches()
    record: dict[str, Any] = own.records(batch).to_pylist()[0]
    places = own.places(table.select(list(own.place_columns)).to_batches()[0]).to_pylist()[0]
    assert places == {name: record[name] for name in places}
    return record


def test_a_struct_has_its_fields_from_columns() -> None:
    record = encoded(Order, key="customer")
    order = Order(
        "ann", ID, 450, NOON, date(2024, 3, 1), Color.RED, Decimal("4.50"), [Part("lid", 1.5)], {"a": 1}
    )
    order.due = NOON_MS
    assert record["value"] == msgspec.json.encode(order)
    assert record["key"] == b"ann"
    assert record["partition"] == partition_for_key(b"ann", 4)
    assert record["timestamp"] == NOON_MS
    assert record["offset"] is None


@pytest.mark.parametrize(
    "value,columns,data",
    [
        (Plain, {}, b'{"customer":"ann","cents":450}'),
        (Typed, {}, b'{"customer":"ann","cents":450}'),
        (Model, {}, b'{"customer":"ann","cents":450,"parts":[{"name":"lid","size":1.5}]}'),
        (Tagged, {}, b'{"type":"order","customerName":"ann"}'),
        (dict, {"value": ["cents", "at"]}, b'{"cents":450,"at":"2024-03-01T12:00:00Z"}'),
        (dict, {"value": ["labels", "price"]}, b'{"labels":{"a":1},"price":"4.50"}'),
        (dict, {"value": "labels"}, b'{"a":1}'),
        (list[Part], {"value": "parts"}, b'[{"name":"lid","size":1.5}]'),
        (MsgpackSerde(Plain), {}, msgspec.msgpack.encode(Plain("ann", 450))),
        (int, {"value": "cents"}, (450).to_bytes(8, "big")),
        (INT32, {"value": "cents"}, (450).to_bytes(4, "big")),
        (int, {"value": "at"}, NOON_MS.to_bytes(8, "big")),
        (float, {"value": "price"}, serde_for(float).serializer("t")(4.5)),
        (uuid.UUID, {"value": "id"}, str(ID).encode()),
        (str, {"value": "nothing"}, None),
        (Order, {"value": "raw"}, b"\x00\x01"),
        (bytes, {"value": "raw"}, b"\x00\x01"),
    ],
)  # fmt: skip
def test_values_have_the_bytes_of_their_serde(
    value: Any, columns: dict[str, Any], data: bytes | None
) -> None:
    assert encoded(value, **columns)["value"] == data


@pytest.mark.parametrize("timestamp", ["at", "at_ms", "due"])
def test_timestamps_are_moments_or_milliseconds(timestamp: str) -> None:
    assert encoded(str, value="customer", timestamp=timestamp)["timestamp"] == NOON_MS


def test_a_day_begins_at_midnight_utc() -> None:
    assert encoded(str, value="customer", timestamp="day")["timestamp"] == NOON_MS - 12 * 3_600_000


def test_keys_may_have_several_columns() -> None:
    record = encoded_with_key(Plain, ["customer", "cents"])
    assert record["key"] == b'{"customer":"ann","cents":450}'
    assert record["partition"] == partition_for_key(record["key"], 4)


def encoded_with_key(type_: Any, key: Any) -> dict[str, Any]:
    own = encoder(TABLE.schema, type_, str, key=key, value="customer")
    record: dict[str, Any] = own.records(TABLE.to_batches()[0]).to_pylist()[0]
    return record


def test_rows_without_a_key_are_spread_the_same_way_each_time() -> None:
    table = pa.table({"name": ["ann"] * 40, "at": pa.array(range(NOON_MS, NOON_MS + 40), pa.int64())})
    own = encoder(table.schema, str, str, value="name")
    first, again = own.records(table.to_batches()[0]), own.records(table.to_batches()[0])
    assert first.column("key").null_count == 40
    assert set(first.column("partition").to_pylist()) == {0, 1, 2, 3}
    assert again.equals(first)


def test_places_of_the_table_are_kept() -> None:
    table = TABLE.append_column("p", pa.array([3], pa.int64())).append_column("o", pa.array([77], pa.int32()))
    record = encoded(dict, table=table, partition="p", offset="o")
    assert (record["partition"], record["offset"]) == (3, 77)
    assert "p" not in msgspec.json.decode(record["value"])


def test_all_that_does_not_fit_is_reported_at_once() -> None:
    schema = pa.schema(
        [
            ("custmer", pa.string()),
            ("id", pa.int64()),
            ("cents", pa.string()),
            ("at", pa.string()),
            ("day", pa.date32()),
            ("color", pa.string()),
            ("price", pa.float64()),
            ("parts", pa.list_(pa.struct([("nam", pa.string()), ("size", pa.string())]))),
            ("labels", pa.string()),
        ]
    )
    with pytest.raises(ConfigError) as refused:
        encoder(schema, int, Order, key="kee", partition="cents")
    told = str(refused.value)
    for text in (
        "do not fit the records of topic orders",
        "there is no column kee (key)",
        "column cents is string, but the type wants an integer: it is the partition",
        "column at is string, but the type wants a timestamp, a date, or an integer (ms)",
        "there is no column customer, which Order needs (did you mean custmer?)",
        "column id is int64, but the type wants UUID",
        "column at is string, but the type wants datetime",
        "column price is double, but the type wants Decimal",
        "there is no column parts[].name, which Part needs (did you mean nam?)",
        "column parts[].size is string, but the type wants float",
        "column labels is string, but the type wants a map or a struct",
    ):
        assert text in told


@pytest.mark.parametrize(
    "value,columns,told",
    [
        (int, {}, "several columns cannot be a value of type int: name the one that is (value=)"),
        (int, {"value": "customer"}, "column customer is string, but the type wants int"),
        (int | None, {"value": "customer"}, "column customer is string, but the type wants int"),
        (Order, {"value": "cents"}, "column cents is int32, but the type wants the fields of Order"),
        (str, {"value": "customer", "timestamp": "att"}, "there is no column att (timestamp); did you mean at?"),
    ],
)  # fmt: skip
def test_a_column_that_does_not_fit_is_explained(value: Any, columns: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        encoder(TABLE.schema, str, value, **columns)
    assert told in str(refused.value)


def test_a_null_where_the_type_has_none_names_the_field() -> None:
    table = TABLE.set_column(2, "cents", pa.array([None], pa.int32()))
    with pytest.raises(
        SerializationError, match=r"a row cannot be made a value of topic orders[^$]*\$\.cents"
    ):
        encoded(Plain, table=table)


@pytest.mark.parametrize("partitions", [0, -1])
def test_a_topic_has_partitions(partitions: int) -> None:
    with pytest.raises(ConfigError, match="cannot have"):
        DataFrameSource(SparkTable("table", "orders"), "at", partitions=partitions)
