"""Every type of values has a column of its own type, and what has none is JSON text: a table of examples."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, Literal, NamedTuple, TypedDict

import faust
import msgspec
import pyarrow as pa
import pydantic
import pytest

from pystreams.backfill.columns.of_serde import column_of
from pystreams.errors import SerializationError
from pystreams.serde import (
    BYTES,
    INT32,
    VOID,
    AvroSerde,
    FaustSerde,
    JsonSchemaSerde,
    JsonSerde,
    ListSerde,
    MsgpackSerde,
    ProtobufSerde,
    Serde,
    serde_for,
)
from pystreams.serde.schema_registry.clients import close_clients
from tests.unit.serde.schema_registry.messages import Customer, Order

MOMENT, LOCAL, TEXT = pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.string()
NOON = datetime(2024, 5, 6, 12, 0, 0, 5, UTC)
ID = uuid.UUID(int=7)


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Size(IntEnum):
    SMALL = 1
    LARGE = 2


class Mixed(Enum):
    ONE = 1
    A = "a"


class Point(msgspec.Struct):
    x: int
    y: int = 0


class Frugal(msgspec.Struct, omit_defaults=True, rename="camel", tag="frugal"):
    first_name: str
    at: datetime = NOON
    not_set: int | msgspec.UnsetType = msgspec.UNSET


class InPlaces(msgspec.Struct, array_like=True):
    a: int
    b: str = "b"


class Tree(msgspec.Struct):
    name: str
    below: list[Tree] = []


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    bones: int


class Pair(NamedTuple):
    left: int
    right: str


class Row(TypedDict):
    name: str
    n: int


@dataclass
class Total:
    cents: int
    by: dict[str, float] = field(default_factory=dict)
    note: str | None = None


class Numbers(pydantic.RootModel[list[int]]):
    pass


class Visit(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(serialize_by_alias=True)
    at: datetime
    who: str = pydantic.Field(alias="user")
    numbers: Numbers
    color: Color = Color.RED
    tags: set[str] = set()
    link: pydantic.AnyUrl | None = None
    cost: Decimal = Decimal(0)


class Bought(faust.Record, coerce=True):
    id: int
    at: datetime
    note: str | None = None


TOTAL = pa.struct([("cents", pa.int64()), ("by", pa.map_(TEXT, pa.float64())), ("note", TEXT)])
POINT = pa.struct([("x", pa.int64()), ("y", pa.int64())])

#: By type: the column's type, and pairs of a value and how the column has it.
PYTHON: dict[str, tuple[Any, Any, list[tuple[Any, Any]]]] = {
    "any value": (Any, TEXT, [({"a": [1]}, '{"a":[1]}'), ("x", '"x"')]),
    "dict": (dict, TEXT, [({"b": 1, "a": 2}, '{"b":1,"a":2}')]),
    "list": (list, TEXT, [([1, "x"], '[1,"x"]')]),
    "numbers": (list[int], pa.list_(pa.int64()), [([1, -(2**63)], [1, -(2**63)]), ([], [])]),
    "decimal": (list[Decimal], pa.list_(pa.decimal128(38, 18)), [([Decimal("1.50")], [Decimal("1.5")])]),
    "float or int": (list[int | float], pa.list_(pa.float64()), [([1, 2.5], [1.0, 2.5])]),
    "moment": (list[datetime], pa.list_(MOMENT), [([NOON], [NOON])]),
    "of another zone": (
        list[datetime],
        pa.list_(MOMENT),
        [([NOON.astimezone(timezone(timedelta(hours=2)))], [NOON])],
    ),
    "date": (list[date], pa.list_(pa.date32()), [([date(1, 2, 3)], [date(1, 2, 3)])]),
    "time": (list[time], pa.list_(TEXT), [([time(1, 2, 3)], ["01:02:03"])]),
    "timedelta": (list[timedelta], pa.list_(pa.duration("us")), [([timedelta(1, 2)], [timedelta(1, 2)])]),
    "uuid": (list[uuid.UUID], pa.list_(TEXT), [([ID], [str(ID)])]),
    "bytes": (list[bytes], pa.list_(pa.binary()), [([b"\xff"], [b"\xff"])]),
    "enum": (list[Color], pa.list_(TEXT), [([Color.RED], ["red"])]),
    "enum of numbers": (list[Size], pa.list_(pa.int64()), [([Size.LARGE], [2])]),
    "literal": (list[Literal["a"] | None], pa.list_(TEXT), [(["a", None], ["a", None])]),
    "literal of several types": (list[Literal[1, "a"]], pa.list_(TEXT), [([1, "a"], ["1", '"a"'])]),
    "set": (set[int], pa.list_(pa.int64()), [({3, 1, 2}, [1, 2, 3])]),
    "tuple": (
        tuple[int, str],
        pa.struct([("_1", pa.int64()), ("_2", TEXT)]),
        [((1, "a"), {"_1": 1, "_2": "a"})],
    ),
    "tuple of any length": (tuple[int, ...], pa.list_(pa.int64()), [((1, 2), [1, 2])]),
    "map": (dict[str, Point], pa.map_(TEXT, POINT), [({"a": Point(1)}, [("a", {"x": 1, "y": 0})])]),
    "map by number": (dict[int, str | None], pa.map_(pa.int64(), TEXT), [({1: None}, [(1, None)])]),
    "map of any values": (dict[str, Any], TEXT, [({"a": [1]}, '{"a":[1]}')]),
    "map of any values by number": (dict[int, Any], TEXT, [({1: ["a"]}, '{"1":["a"]}')]),
    "union": (list[int | str], pa.list_(TEXT), [([1, "a"], ["1", '"a"'])]),
    "union of objects": (list[Cat | Dog], pa.list_(TEXT), [([Cat(9)], ['{"type":"Cat","lives":9}'])]),
    "optional": (Point | None, POINT, [(Point(1, 2), {"x": 1, "y": 2})]),
    "struct": (Point, POINT, [(Point(1, 2), {"x": 1, "y": 2})]),
    "struct that leaves out defaults": (
        Frugal,
        pa.struct([("firstName", TEXT), ("at", MOMENT), ("notSet", pa.int64())]),
        [(Frugal("x"), {"firstName": "x", "at": NOON, "notSet": None})],
    ),
    "struct as an array": (
        InPlaces,
        pa.struct([("a", pa.int64()), ("b", TEXT)]),
        [(InPlaces(1), {"a": 1, "b": "b"})],
    ),
    "struct within itself": (
        Tree,
        pa.struct([("name", TEXT), ("below", pa.list_(TEXT))]),
        [(Tree("a", [Tree("b")]), {"name": "a", "below": ['{"name":"b","below":[]}']})],
    ),
    "named tuple": (
        Pair,
        pa.struct([("left", pa.int64()), ("right", TEXT)]),
        [(Pair(1, "a"), {"left": 1, "right": "a"})],
    ),
    "typed dict": (
        Row,
        # msgspec describes them by name.
        pa.struct([("n", pa.int64()), ("name", TEXT)]),
        [({"name": "a", "n": 1}, {"name": "a", "n": 1})],
    ),
    "dataclass": (Total, TOTAL, [(Total(5, {"a": 0.5}), {"cents": 5, "by": [("a", 0.5)], "note": None})]),
    "pydantic": (
        Visit,
        pa.struct(
            [
                ("at", MOMENT),
                ("user", TEXT),
                ("numbers", pa.list_(pa.int64())),
                ("color", TEXT),
                ("tags", pa.list_(TEXT)),
                ("link", TEXT),
                ("cost", pa.decimal128(38, 18)),
            ]
        ),
        [
            (
                Visit(at=NOON, user="ann", numbers=[1], tags={"b", "a"}, link="http://x.org/", cost="1.25"),
                {
                    "at": NOON,
                    "user": "ann",
                    "numbers": [1],
                    "color": "red",
                    "tags": ["a", "b"],
                    "link": '"http://x.org/"',
                    "cost": Decimal("1.25"),
                },
            )
        ],
    ),
}


def column(serde: Serde[Any], values: list[Any]) -> Any:
    """What the serde writes, and null, as a column."""
    data = [*map(serde.serializer("t"), values), None]
    found = column_of(serde, "t")
    read = found.read(pa.array(data, pa.binary()), "here")
    assert read.type == found.type
    assert read[-1].as_py() is None
    return read.slice(0, len(values))


@pytest.mark.parametrize("form", [JsonSerde, MsgpackSerde])
@pytest.mark.parametrize("name", PYTHON)
def test_a_type_of_python_has_its_column(name: str, form: Any) -> None:
    type_, expected, examples = PYTHON[name]
    found = column(form(type_), [value for value, _ in examples])
    assert found.type == expected
    shown = [one for _, one in examples]
    if form is MsgpackSerde and name == "dict":
        # The text is not the one that was written, and has its names sorted.
        shown = ['{"a":2,"b":1}']
    assert found.to_pylist() == shown


@pytest.mark.parametrize(
    "serde, expected, values",
    [
        (serde_for(str), pa.string(), ["a", ""]),
        (serde_for(int), pa.int64(), [1, -1]),
        (INT32, pa.int32(), [1]),
        (serde_for(float), pa.float64(), [0.5]),
        (serde_for(bool), pa.bool_(), [True]),
        (BYTES, pa.binary(), [b"\xff"]),
        (VOID, pa.binary(), []),
        (ListSerde(int), pa.list_(pa.int64()), [[1, None]]),
        (ListSerde(str), pa.list_(pa.string()), [["a", None], []]),
    ],
)
def test_a_serde_of_java_has_its_column(serde: Any, expected: Any, values: list[Any]) -> None:
    found = column(serde, values)
    assert found.type == expected
    assert found.to_pylist() == values


def test_a_model_of_faust_has_its_column() -> None:
    found = column(FaustSerde(Bought), [Bought(id=1, at=NOON)])
    assert found.type == pa.struct([("id", pa.int64()), ("at", MOMENT), ("note", TEXT)])
    assert found.to_pylist() == [{"id": 1, "at": NOON, "note": None}]


def test_bytes_of_a_serde_of_the_user_stay_bytes() -> None:
    found = column(Serde.of(lambda value: value.encode(), lambda data: data.decode()), ["a"])
    assert found.type == pa.binary()
    assert found.to_pylist() == [b"a"]


@pytest.fixture
def registry() -> Iterator[str]:
    yield f"mock://{uuid.uuid4()}"
    close_clients()


TO = {"type": "record", "name": "To", "fields": [{"name": "city", "type": "string"}]}
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "n", "type": "int"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "to", "type": ["null", TO]},
        {"name": "second", "type": ["null", "To"]},
        {"name": "counts", "type": {"type": "map", "values": "float"}},
        {"name": "kinds", "type": {"type": "array", "items": {"type": "enum", "name": "K", "symbols": ["A", "B"]}}},
        {"name": "any", "type": ["int", "string"]},
        {"name": "within", "type": ["null", "Order"], "default": None},
    ],
}  # fmt: skip


def test_a_record_of_avro_has_its_column(registry: str) -> None:
    moment = NOON.replace(microsecond=0)
    value = {
        "id": ID,
        "n": 1,
        "price": Decimal("1.50"),
        "day": date(2024, 1, 2),
        "at": moment,
        "to": {"city": "Rome"},
    }
    value |= {"second": None, "counts": {"a": 0.5}, "kinds": ["B"], "any": "x"}
    found = column(
        AvroSerde(AVRO, registry=registry), [{**value, "within": {**value, "any": 1, "within": None}}]
    )
    to = pa.struct([("city", TEXT)])
    assert found.type == pa.struct(
        [
            ("id", TEXT),
            ("n", pa.int32()),
            ("price", pa.decimal128(10, 2)),
            ("day", pa.date32()),
            ("at", MOMENT),
            ("to", to),
            ("second", to),
            ("counts", pa.map_(TEXT, pa.float32())),
            ("kinds", pa.list_(TEXT)),
            ("any", TEXT),
            ("within", TEXT),
        ]
    )
    [row] = found.to_pylist()
    assert json.loads(row.pop("within"))["any"] == 1
    assert row == {**value, "id": str(ID), "counts": [("a", 0.5)], "any": '"x"'}


def test_a_record_of_avro_with_a_class_has_the_columns_of_the_class(registry: str) -> None:
    schema = {
        "type": "record",
        "name": "P",
        "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "int"}],
    }
    found = column(AvroSerde(schema, Point, registry=registry), [Point(1, 2)])
    assert found.type == POINT
    assert found.to_pylist() == [{"x": 1, "y": 2}]


def test_a_value_with_a_json_schema_has_its_column(registry: str) -> None:
    found = column(JsonSchemaSerde(Total, registry=registry), [Total(5)])
    assert found.type == TOTAL


def test_a_message_of_protobuf_has_its_column(registry: str) -> None:
    order = Order(id=5, counts={"a": 2})
    order.to.city = "Rome"
    found = column(ProtobufSerde(Order, registry=registry), [order, Order()])
    assert found.type == pa.struct(
        [("id", pa.int64()), ("to", pa.struct([("city", TEXT)])), ("counts", pa.map_(TEXT, pa.int32()))]
    )
    assert found.to_pylist() == [
        {"id": 5, "to": {"city": "Rome"}, "counts": [("a", 2)]},
        {"id": 0, "to": None, "counts": []},
    ]
    read_by_any = ProtobufSerde(registry=registry)
    data = ProtobufSerde(Customer, registry=registry).serializer("c")(Customer(name="ann"))
    text = column_of(read_by_any, "c").read(pa.array([data], pa.binary()), "here")
    assert text.to_pylist() == ['{"name": "ann"}']


@pytest.mark.parametrize(
    "serde, value, why",
    [
        (JsonSerde(list[int]), [1 << 63], "too large"),
        (JsonSerde(list[Decimal]), [Decimal("1e-19")], "ecimal"),
        (JsonSerde(list[int | float]), [(1 << 53) + 1], "exactly representable"),
    ],
)
def test_a_value_that_does_not_fit_is_reported(serde: Any, value: Any, why: str) -> None:
    data = pa.array([serde.serializer("t")(value)], pa.binary())
    with pytest.raises(SerializationError, match="does not fit into a column") as raised:
        column_of(serde, "t").read(data, "store counts, partition 3")
    assert why in raised.value.why
    assert raised.value.place == "store counts, partition 3"


def test_bytes_that_their_serde_cannot_read_are_reported() -> None:
    with pytest.raises(SerializationError, match="cannot read") as raised:
        column_of(JsonSerde(Total), "t").read(pa.array([b"{"], pa.binary()), "store totals, partition 0")
    assert "store totals, partition 0" in raised.value.place
    assert "changelog()" in raised.value.hint
