"""``faust.Record`` models: a Faust application's topic is read as the same models, and it reads what is written here.

Faust's side is Faust itself: an ``App`` with topics, whose serializers write and read as its agents do.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import faust
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams import StreamsBuilder, TopologyTestDriver
from pystreams.errors import ConfigError, SerializationError, TopologyError
from pystreams.serde import FaustSerde, JsonSerde, TimeWindowedSerde, serde_for
from pystreams.windowed import Windowed
from tests.examples import examples


class Line(faust.Record):
    sku: str
    count: int = 1


class Order(faust.Record, coerce=True):
    id: int
    at: datetime
    price: Decimal
    lines: list[Line]
    note: str | None = None


class Plain(faust.Record, include_metadata=False):
    x: int


class Encoded(faust.Record, serializer="json|binary"):
    x: int


class Renamed(faust.Record, namespace="com.example.Renamed"):
    short: str = faust.models.fields.StringField(field="a_long_name")


class Base(faust.Record, polymorphic_fields=True):
    id: int


class Special(Base):
    extra: str


ORDER = Order(
    id=7, at=datetime(2024, 5, 6, 7, 8, tzinfo=UTC), price=Decimal("1.50"), lines=[Line("a", 2), Line("b")]
)


@pytest.fixture(scope="module")
def app() -> faust.App:
    return faust.App("theirs", broker="kafka://localhost:1", store="memory://")


def written_by_faust(app: faust.App, type_: Any, value: Any, serializer: str | None = None) -> bytes:
    schema = app.topic("t", value_type=type_, value_serializer=serializer).schema
    data, _ = schema.dumps_value(app, value, serializer=schema.value_serializer, headers=None)
    return data


def read_by_faust(app: faust.App, type_: Any, data: bytes, serializer: str | None = None) -> Any:
    schema = app.topic("t", value_type=type_, value_serializer=serializer).schema
    return schema.loads_value(app, type("Message", (), {"value": data})())


@pytest.mark.parametrize(
    "type_,value,serializer",
    [
        (Order, ORDER, None),
        (Line, Line("ü", -3), None),
        (Plain, Plain(1), None),
        (Encoded, Encoded(1), None),
        (Line, Line("b"), "json|binary"),
        (Line, Line("b"), "pickle_restricted"),
        (Renamed, Renamed("x"), None),
        (Special, Special(1, "s"), None),
    ],
    ids=lambda v: getattr(v, "__name__", str(v)),
)
def test_both_sides_have_the_same_bytes(app: faust.App, type_: Any, value: Any, serializer: str | None):
    serde = FaustSerde(type_, serializer)
    theirs = written_by_faust(app, type_, value, serializer)
    ours = serde.serializer("t")(value)
    assert ours == theirs
    for read in (serde.deserializer("t")(theirs), read_by_faust(app, type_, ours, serializer)):
        assert read == value
        assert type(read) is type_


def test_a_record_names_its_model():
    assert FaustSerde(Line).serializer("t")(Line("a")) == (
        b'{"sku":"a","count":1,"__faust":{"ns":"' + Line._options.namespace.encode() + b'"}}'
    )
    assert FaustSerde(Plain).serializer("t")(Plain(1)) == b'{"x":1}'


def test_models_within_models_and_times_come_back(app: faust.App):
    read = FaustSerde(Order).deserializer("t")(written_by_faust(app, Order, ORDER))
    assert type(read.lines[0]) is Line
    assert (read.at, read.price, read.note) == (ORDER.at, Decimal("1.50"), None)


def test_the_other_sides_model_may_have_another_name():
    read = FaustSerde(Order).deserializer("t")
    data = FaustSerde(Order).serializer("t")(ORDER)
    theirs = data.replace(__name__.encode(), b"their.module")
    assert theirs != data
    assert read(theirs) == ORDER
    # Nor does the name of another model of this side change what is read.
    other = data.replace(Order._options.namespace.encode(), Plain._options.namespace.encode())
    assert type(read(other)) is Order


def test_a_topic_of_several_models_is_read_by_their_names(app: faust.App):
    read = FaustSerde(faust.Record).deserializer("t")
    assert read(written_by_faust(app, None, ORDER)) == ORDER
    assert read(written_by_faust(app, None, Line("a"))) == Line("a")
    with pytest.raises(
        SerializationError, match="could not be deserialized as FaustSerde\\(Record\\)"
    ) as caught:
        read(b'{"x":1}')
    assert "it does not name a model of this process in '__faust'" in caught.value.why
    write = FaustSerde(faust.Record).serializer("t")
    assert write(ORDER) == written_by_faust(app, None, ORDER)


def test_a_subclass_is_read_as_what_it_is_where_faust_does_so(app: faust.App):
    special = Special(1, "s")
    data = FaustSerde(Base).serializer("t")(special)
    read, theirs = FaustSerde(Base).deserializer("t")(data), read_by_faust(app, Base, data)
    assert type(read) is type(theirs) is Special
    assert read == theirs == special


@examples(20)
@given(sku=st.text(), count=st.integers())
def test_any_text_and_number_comes_back(sku: str, count: int):
    serde = FaustSerde(Line)
    assert serde.deserializer("t")(serde.serializer("t")(Line(sku, count))) == Line(sku, count)


@pytest.mark.parametrize(
    "data,why",
    [
        (b"", "JSONDecodeError"),
        (b"[1]", "TypeError"),
        (b'{"count":1}', "sku"),
        (b"\xff", "UnicodeDecodeError"),
    ],
)
def test_another_record_is_an_error_that_says_why(data: bytes, why: str):
    with pytest.raises(
        SerializationError, match="could not be deserialized as FaustSerde\\(Line\\)"
    ) as caught:
        FaustSerde(Line).deserializer("lines")(data)
    assert why in caught.value.why
    assert caught.value.where == "topic lines"


@pytest.mark.parametrize("value", [{"sku": "a"}, 3, "a"])
def test_another_value_is_not_written(value: Any):
    with pytest.raises(
        SerializationError, match=f"a value of type {type(value).__name__} cannot be serialized"
    ):
        FaustSerde(Line).serializer("t")(value)


def test_a_model_as_a_type_is_enough():
    serde = serde_for(Line)
    assert isinstance(serde, FaustSerde)
    assert repr(serde) == "FaustSerde(Line)"
    assert isinstance(serde_for(dict), JsonSerde)


@pytest.mark.parametrize("wrong", [dict, int, faust.App, Line("a")])
def test_another_type_is_refused(wrong: Any):
    with pytest.raises(TopologyError, match="is not a Faust model"):
        FaustSerde(wrong)


def test_a_serializer_that_faust_does_not_have_is_reported_with_those_it_has():
    with pytest.raises(ConfigError, match="Faust has no serializer 'msgpack'") as caught:
        FaustSerde(Line, "msgpack")
    assert "json" in caught.value.hint


def test_a_pickled_serde_has_the_same_bytes():
    serde = FaustSerde(Line, "json|binary")
    back = pickle.loads(pickle.dumps(serde))
    assert back.serializer("t")(Line("a")) == serde.serializer("t")(Line("a"))
    assert back.deserializer("t")(serde.serializer("t")(Line("a"))) == Line("a")


def test_in_a_topology_as_keys_values_windows_and_state():
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=str, value=Order)
    lines = orders.flat_map(
        lambda key, order: [(Line(line.sku, 0), line) for line in order.lines], key=Line, value=Line
    )

    def add(total: Line, line: Line) -> Line:
        return Line(total.sku or line.sku, total.count + line.count)

    lines.group_by_key().aggregate(lambda: Line("", 0), add, name="totals", value=Line).to_stream().to(
        "totals"
    )
    with TopologyTestDriver(builder, {"application_id": "faust", "statestore_cache_max_bytes": 0}) as driver:
        driver.create_input_topic("orders", key=str, value=Order).pipe_input("k", ORDER, timestamp=5)
        out = driver.create_output_topic("totals", key=Line, value=Line)
        assert out.read_key_values() == [(Line("a", 0), Line("a", 2)), (Line("b", 0), Line("b", 1))]
    windowed = TimeWindowedSerde(Line, 10)
    key = Windowed(Line("a"), 20, 30)
    assert windowed.deserializer("t")(windowed.serializer("t")(key)) == key


def test_pystreams_does_not_import_faust():
    program = "import sys, pystreams, pystreams.serde as s; s.serde_for(dict); print('faust' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert found.strip() == "False"
