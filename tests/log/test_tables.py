"""What is consumed becomes Arrow tables and data frames, with columns typed by the model."""

from __future__ import annotations

import subprocess
import sys
import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, TypedDict

import msgspec
import pyarrow as pa
import pydantic
import pytest

from pystreams import MsgpackSerde, TimeWindowedSerde, Windowed
from pystreams.errors import SerializationError

MS = pa.timestamp("ms", "UTC")


class Kind(Enum):
    NEW = "new"


class Place(msgspec.Struct):
    city: str
    zip: int | None = None


class Order(msgspec.Struct, rename="camel"):
    order_id: uuid.UUID
    amount: int | None
    price: Decimal
    kind: Kind
    day: date
    at: datetime
    tags: list[str]
    place: Place | None
    extra: dict[str, Any]
    size: Literal["s", "l"] = "s"
    partition: int = 7


@dataclass
class Customer:
    name: str
    vip: bool


class Row(TypedDict, total=False):
    a: int
    b: str


class Model(pydantic.BaseModel):
    name: str
    n: int | None = None


class Tree(msgspec.Struct):
    name: str
    children: list[Tree]


ORDER = Order(
    uuid.UUID(int=1),
    2**60 + 1,
    Decimal("1.10"),
    Kind.NEW,
    date(2020, 1, 2),
    datetime(2020, 1, 2, 3, tzinfo=UTC),
    ["x"],
    Place("Köln", 5),
    {"a": [1]},
)


@pytest.fixture
def topic(log) -> str:
    log.create_topic("t", config={"retention.ms": -1})
    return "t"


def test_the_fields_of_a_model_are_columns_of_their_types(log, topic):
    log.produce_many(topic, [("a", ORDER, 1000), ("b", None, 2000)])
    table = log.consume(topic, key=str, value=Order).to_arrow()
    assert dict(zip(table.schema.names, table.schema.types, strict=True)) == {
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": MS,
        "key": pa.string(),
        "orderId": pa.string(),
        "amount": pa.int64(),
        "price": pa.string(),
        "kind": pa.string(),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "tags": pa.list_(pa.string()),
        "place": pa.struct([("city", pa.string()), ("zip", pa.int64())]),
        "extra": pa.string(),
        "size": pa.string(),
        "value.partition": pa.int64(),
    }
    first, second = table.to_pylist()
    assert first["timestamp"] == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert (first["orderId"], first["amount"], first["price"]) == (str(uuid.UUID(int=1)), 2**60 + 1, "1.10")
    assert (first["place"], first["extra"]) == ({"city": "Köln", "zip": 5}, '{"a":[1]}')
    assert (second["key"], second["amount"], second["tags"], second["place"]) == ("b", None, None, None)


def test_numbers_beside_nulls_stay_exact_in_a_data_frame(log, topic):
    log.produce_many(topic, [("a", ORDER), ("b", None)])
    frame = log.consume(topic, key=str, value=Order).to_pandas()
    assert str(frame["amount"].dtype) == "Int64"
    assert frame["amount"].iloc[0] == 2**60 + 1
    assert frame["amount"].isna().tolist() == [False, True]
    assert frame["offset"].dtype == "int64"
    assert str(frame["timestamp"].dtype) == "datetime64[ms, UTC]"


@pytest.mark.parametrize(
    "type_,values,columns",
    [
        (Customer, [Customer("ann", True)], {"name": ["ann"], "vip": [True]}),
        (Row, [{"a": 1}, {"b": "x"}], {"a": [1, None], "b": [None, "x"]}),
        (Model, [Model(name="ann")], {"name": ["ann"], "n": [None]}),
        (dict, [{"a": 1}, {"b": [2]}], {"a": [1, None], "b": [None, [2]]}),
        (dict, [{"a": 1}, {"a": "x"}], {"a": ["1", '"x"']}),
        (dict[str, int], [{"a": 1}], {"value": ['{"a":1}']}),
        (list[int], [[1, 2]], {"value": [[1, 2]]}),
        (int, [5], {"value": [5]}),
        (float, [0.5], {"value": [0.5]}),
        (bool, [True], {"value": [True]}),
        (bytes, [b"\xff"], {"value": [b"\xff"]}),
        (uuid.UUID, [uuid.UUID(int=2)], {"value": [str(uuid.UUID(int=2))]}),
        (int | str, [1, "x"], {"value": ["1", '"x"']}),
        (MsgpackSerde(Place), [Place("a")], {"city": ["a"], "zip": [None]}),
        (Tree, [Tree("a", [Tree("b", [])])], {"name": ["a"], "children": [['{"name":"b","children":[]}']]}),
    ],
    ids=str,
)
def test_every_kind_of_value_has_its_columns(log, topic, type_, values, columns):
    log.produce_many(topic, [(None, value) for value in values], value=type_)
    table = log.consume(topic, value=type_).to_arrow()
    assert table.drop_columns(["partition", "offset", "timestamp", "key"]).to_pydict() == columns
    assert len(log.consume(topic, value=type_).to_pandas()) == len(values)


def test_keys_that_are_models_have_columns_behind_key(log, topic):
    log.produce(topic, Place("a", 1), 5)
    table = log.consume(topic, key=Place, value=int).to_arrow()
    assert table.select(["key.city", "key.zip", "value"]).to_pylist() == [
        {"key.city": "a", "key.zip": 1, "value": 5}
    ]


def test_a_windowed_key_has_its_bounds_beside_it(log, topic):
    windows = TimeWindowedSerde(str, 1000)
    log.produce(topic, Windowed("a", 1000, 2000), 5, key=windows)
    (row,) = log.consume(topic, key=windows, value=int).to_arrow().to_pylist()
    assert (row["key"], row["window_start"].second, row["window_end"].second) == ("a", 1, 2)


def test_an_empty_topic_has_the_columns_all_the_same(log, topic):
    frame = log.consume(topic, key=str, value=Customer).to_pandas()
    assert list(frame.columns) == ["partition", "offset", "timestamp", "key", "name", "vip"]


def test_a_number_that_arrow_has_no_room_for_is_reported(log, topic):
    log.produce(topic, {"zip": 2**70, "city": "a"})
    with pytest.raises(SerializationError, match="Column zip cannot have the type int64"):
        log.consume(topic, value=Place).to_arrow()


def test_without_the_packages_the_error_says_how_to_install_them(folder):
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from pystreams import open_log\n"
        "with open_log() as log:\n"
        "    log.create_topic('t')\n"
        "    log.consume('t').to_pandas()\n"
    )
    failed = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert "pandas and Arrow are not installed" in failed.stderr
    assert "pip install 'pystreams-engine[pandas]'" in failed.stderr
