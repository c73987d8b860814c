"""What the comparison of two Avro schemas says is what fastavro does with the records."""

from __future__ import annotations

import json
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import fastavro
import pytest
from fastavro.read import SchemaResolutionError
from fastavro.schema import SchemaParseException
from hypothesis import assume, given
from hypothesis import strategies as st

from pystreams.serde import AvroSerde
from pystreams.serde.base import schema_of
from pystreams.serde.schemas import Effect, Finding
from pystreams.serde.schemas.comparison import changes_keys, compare
from tests.examples import examples

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
VALUES: dict[str, list[Any]] = {
    "null": [None],
    "boolean": [True, False],
    "int": [0, -1, 2**31 - 1],
    "long": [0, 2**40],
    "float": [0.5],
    "double": [0.5, 1e300],
    "bytes": [b"a", b"\xff"],
    "string": ["", "a"],
}
DEFAULTS = {name: some[0] for name, some in VALUES.items()} | {"bytes": "a"}


def all_findings(was: Any, now: Any, type_was: Any = None, type_now: Any = None) -> list[Finding]:
    old, new = AvroSerde(json.dumps(was), type_was), AvroSerde(json.dumps(now), type_now)
    return compare(schema_of(old), schema_of(new))


def findings(was: Any, now: Any, *types: Any) -> list[Finding]:
    return [finding for finding in all_findings(was, now, *types) if "registry" not in finding.why]


def effect(was: Any, now: Any) -> Effect:
    return max((finding.effect for finding in findings(was, now)), default=Effect.READS_ON)


def read(was: Any, now: Any, value: Any) -> Any:
    out = BytesIO()
    written, wanted = fastavro.parse_schema(was), fastavro.parse_schema(now)
    fastavro.schemaless_writer(out, written, value)
    out.seek(0)
    return fastavro.schemaless_reader(out, written, wanted)


def reads(was: Any, now: Any, value: Any) -> bool:
    try:
        read(was, now, value)
    except (SchemaResolutionError, ValueError, TypeError, KeyError):
        return False
    return True


def record(*fields: Any, name: str = "Row", **more: Any) -> dict[str, Any]:
    told = [
        {"name": field[0], "type": field[1], **({"default": field[2]} if len(field) > 2 else {})}
        for field in fields
    ]
    return {"type": "record", "name": name, "fields": told, **more}


@pytest.mark.parametrize("was", PRIMITIVES)
def test_primitives(was: str) -> None:
    for now in PRIMITIVES:
        all_read = all(reads({"type": was}, {"type": now}, value) for value in VALUES[was])
        assert (effect({"type": was}, {"type": now}) is not Effect.FAILS) == all_read, now


ENUM = {"type": "enum", "name": "E", "symbols": ["a", "b"]}


@pytest.mark.parametrize(
    "was, now, expected",
    [
        (record(("x", "int")), record(("x", "int"), ("y", "string", "")), Effect.READS_ON),
        (record(("x", "int")), record(("x", "int"), ("y", "string")), Effect.FAILS),
        (record(("x", "int"), ("y", "int")), record(("x", "int")), Effect.LOSES),
        (record(("x", "int")), record(("z", "int", 0)), Effect.LOSES),
        (record(("x", "int")), record(("x", "int"), name="Other"), Effect.FAILS),
        (record(("x", "int")), record(("x", "int"), name="Other", aliases=["Row"]), Effect.READS_ON),
        (record(("x", "int")), record(("x", "int"), namespace="com.example"), Effect.READS_ON),
        (record(("x", "int")), record(("x", ["null", "int"])), Effect.READS_ON),
        (record(("x", ["null", "int"])), record(("x", "int")), Effect.FAILS),
        (record(("x", ENUM)), record(("x", {**ENUM, "symbols": ["a", "b", "c"]})), Effect.READS_ON),
        (record(("x", ENUM)), record(("x", {**ENUM, "symbols": ["a"]})), Effect.FAILS),
        (record(("x", ENUM)), record(("x", {**ENUM, "symbols": ["a"], "default": "a"})), Effect.LOSES),
        (record(("x", ENUM)), record(("x", "string")), Effect.FAILS),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, Effect.READS_ON),
        ({"type": "map", "values": "int"}, {"type": "map", "values": "string"}, Effect.FAILS),
        ({"type": "array", "items": "int"}, {"type": "map", "values": "int"}, Effect.FAILS),
        ({"type": "fixed", "name": "F", "size": 2}, {"type": "fixed", "name": "F", "size": 3}, Effect.FAILS),
    ],
)
def test_the_rules_of_resolution(was: Any, now: Any, expected: Effect) -> None:
    assert effect(was, now) is expected
    some = [value for value in values_of(was) if reads(was, was, value)]
    assert all(reads(was, now, value) for value in some) == (expected is not Effect.FAILS)


def test_a_field_that_has_another_name_is_read_by_its_alias() -> None:
    now = record()
    now["fields"] = [{"name": "euros", "type": "int", "aliases": ["cents"]}]
    was = record(("cents", "int"))
    (found,) = findings(was, now)
    assert (found.path, found.effect) == ("euros", Effect.READS_ON)
    assert read(was, now, {"cents": 5}) == {"euros": 5}
    gone, new = sorted(findings(was, record(("euros", "int", 0))), key=lambda one: one.path)
    assert (gone.path, gone.effect, gone.why) == ("cents", Effect.LOSES, "is gone (perhaps it is now euros)")
    assert (new.path, new.effect) == ("euros", Effect.READS_ON)


def test_records_that_hold_themselves() -> None:
    was = record(("x", "int"), ("next", ["null", "Row"], None))
    now = record(("x", "long"), ("next", ["null", "Row"], None), ("y", "int", 1))
    assert {finding.path for finding in findings(was, now)} == {"x", "y"}
    assert read(was, now, {"x": 1, "next": {"x": 2, "next": None}})["next"]["y"] == 1


@dataclass
class Row:
    x: int = 0
    y: int = 0


@dataclass
class Smaller:
    x: int = 0


def test_the_type_of_values_counts_where_it_has_fewer_fields() -> None:
    schema = record(("x", "int", 0), ("y", "int", 0))
    (found,) = findings(schema, schema, Row, Smaller)
    assert (found.path, found.effect) == ("y", Effect.LOSES)


def test_a_key_has_other_bytes_as_soon_as_its_schema_has_another_text() -> None:
    found = all_findings(record(("x", "int")), record(("x", "int"), doc="the place"))
    assert max(finding.effect for finding in found) is Effect.READS_ON
    assert changes_keys(found)
    assert all_findings(record(("x", "int")), record(("x", "int"))) == []


# Any two schemas

NAMES = ("a", "b", "c")


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> Any:
    composite = ["optional", "array", "map", "record"] if depth else []
    kind = draw(st.sampled_from(["primitive", "primitive", *composite]))
    if kind == "primitive":
        return draw(st.sampled_from(PRIMITIVES))
    if kind == "record":
        return draw(records(depth - 1))
    inner = draw(schemas(depth - 1))
    if kind == "optional":
        return inner if inner == "null" or isinstance(inner, list) else ["null", inner]
    return {"type": kind, "items" if kind == "array" else "values": inner}


@st.composite
def records(draw: st.DrawFn, depth: int = 1) -> Any:
    fields = []
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3)):
        kind = draw(schemas(depth))
        default = (
            DEFAULTS.get(kind, ...) if isinstance(kind, str) else None if isinstance(kind, list) else ...
        )
        with_default = default is not ... and draw(st.booleans())
        fields.append((name, kind, default) if with_default else (name, kind))
    return record(*fields, name=f"Row{depth}")


def values_of(schema: Any) -> list[Any]:
    """Values such that everything that can be in one is in one of them."""
    if isinstance(schema, list):
        return [value for one in schema for value in values_of(one)]
    if isinstance(schema, str):
        return VALUES[schema]
    kind = schema["type"]
    if kind == "array":
        return [[], *([value] for value in values_of(schema["items"]))]
    if kind == "map":
        return [{}, *({"k": value} for value in values_of(schema["values"]))]
    if kind == "enum":
        return list(schema["symbols"])
    if kind == "fixed":
        return [b"x" * schema["size"]]
    if kind != "record":
        return VALUES[kind]
    fields = {field["name"]: values_of(field["type"]) for field in schema["fields"]}
    first = {name: some[0] for name, some in fields.items()}
    return [first, *({**first, name: value} for name, some in fields.items() for value in some)]


def kept(was: Any, now: Any) -> bool:
    if isinstance(was, dict):
        return all(name in now and kept(was[name], now[name]) for name in was)
    if isinstance(was, list):
        return len(was) == len(now) and all(map(kept, was, now))
    return bool(was == now or (isinstance(was, str) and now == was.encode()) or was == pytest.approx(now))


@examples(120)
@given(schemas(), schemas())
def test_any_two_schemas(was: Any, now: Any) -> None:
    try:
        fastavro.parse_schema(was)
        fastavro.parse_schema(now)
    except SchemaParseException:
        assume(False)
    said = effect(was, now)
    values = values_of(was)
    assert all(reads(was, now, value) for value in values) == (said is not Effect.FAILS)
    if said is Effect.READS_ON:
        assert all(kept(read(was, was, value), read(was, now, value)) for value in values)
