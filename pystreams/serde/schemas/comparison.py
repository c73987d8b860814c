"""Compares schemas: what happens to bytes that one serde wrote when another reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pystreams.serde.schemas.avro import compare_avro
from pystreams.serde.schemas.finding import Effect, Finding, Schema, fails, reads_on
from pystreams.serde.schemas.protobuf import compare_protobuf
from pystreams.serde.schemas.type_comparison import compare_types

#: Formats that contain other schemas, and the places of these.
_HOLDERS = {
    "list": {"of": "[]"},
    "windowed key": {"key": ""},
    "session key": {"key": ""},
    "change": {"of": ""},
    "answer of a foreign-key join": {"value": ""},
    "waiting key of a join": {"key": ""},
    "waiting value of a join": {"left": "left", "right": "right"},
}


def compare(was: Schema, now: Schema) -> list[Finding]:
    """The differences between two schemas of serdes (``schema_of``), by their effect on existing bytes.

    It uses only the data of the schemas, because one may come from another process and an earlier day.
    """
    if was == now:
        return []
    form = was["format"]
    if form != now["format"]:
        return fails(f"was {format_name(was)}, is now {format_name(now)}")
    if form in _HOLDERS:
        return _held(was, now)
    comparison = _COMPARISONS.get(form)
    found = _unlike(was, now) if comparison is None else comparison(was, now)
    if was.get("registered") != now.get("registered"):
        return [
            *found,
            *reads_on("has another schema in the registry, whose id begins its bytes"),
        ]
    return found


def format_name(schema: Schema) -> str:
    """The format of values, for people."""
    form = schema["format"]
    if form == "serde":
        return f"written by {str(schema['name']).rpartition('.')[2]}"
    return f"{form} in {schema['size']} bytes" if "size" in schema else str(form)


def _held(was: Schema, now: Schema) -> list[Finding]:
    places = _HOLDERS[was["format"]]
    found = [
        finding.below(place) if place else finding
        for part, place in places.items()
        for finding in compare(was[part], now[part])
    ]
    others = {name for name in (*was, *now) if name not in places and was.get(name) != now.get(name)}
    return found + [
        finding
        for name in sorted(others)
        for finding in reads_on(f"has {name} {now.get(name)}, had {was.get(name)}")
    ]


def _unlike(was: Schema, now: Schema) -> list[Finding]:
    """The difference between two schemas of the same format, if no more is known about it."""
    if was["format"] == "serde":
        if was["name"] != now["name"]:
            why = f"was {format_name(was)}, is now {format_name(now)}"
        else:
            why = f"is written by a {str(now['name']).rpartition('.')[2]} with other arguments"
        return fails(f"{why}: the effect on the bytes is not known")
    return fails(f"was {format_name(was)}, is now {format_name(now)}")


_MSGSPEC = {"json": "json", "json with a schema": "json", "msgpack": "msgpack"}


def _typed(was: Schema, now: Schema) -> list[Finding]:
    codec = "pydantic" if now["by"] == "pydantic" else _MSGSPEC[now["format"]]
    if was["by"] != now["by"] and _holds_bytes(was["type"]):
        return fails(f"was written by {was['by']}, is now written by {now['by']}, and their bytes differ")
    return compare_types(was["type"], now["type"], codec)


def _checked(was: Schema, now: Schema) -> list[Finding]:
    checks = was.get("checked_against"), now.get("checked_against")
    if checks[1] is not None and checks[0] != checks[1]:
        return fails("is validated against another JSON Schema, whose effect cannot be determined")
    return _typed(was, now)


def _of_faust(was: Schema, now: Schema) -> list[Finding]:
    if was["codec"] != now["codec"]:
        return fails(f"was written as {was['codec']}, is now {now['codec']}")
    return compare_types(was["type"], now["type"], "json")


def _holds_bytes(schema: Any) -> bool:
    if isinstance(schema, dict):
        return schema.get("is") == "bytes" or any(map(_holds_bytes, schema.values()))
    return isinstance(schema, list) and any(map(_holds_bytes, schema))


_COMPARISONS: dict[str, Callable[[Schema, Schema], list[Finding]]] = {
    "avro": compare_avro,
    "faust": _of_faust,
    "json": _typed,
    "json with a schema": _checked,
    "msgpack": _typed,
    "protobuf": compare_protobuf,
}


def changes_keys(findings: list[Finding]) -> bool:
    """Whether these differences change the bytes of keys, by which stores and partitioners compare keys."""
    return any(finding.rewrites or finding.effect is not Effect.READS_ON for finding in findings)
