"""Rules for single values: which types are read as which other types, and with which constraints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pystreams.serde.schemas.finding import Finding, Schema, fails, reads_on
from pystreams.serde.schemas.wording import brief, listed, shown

_NUMBERS = ("int", "float", "decimal")
_TEXTUAL = ("date", "time", "timedelta", "uuid", "decimal")

#: All values of the first type are read as the second, by every codec.
_ALWAYS = {
    ("int", "float"): "whole numbers beyond 2^53 are rounded",
    ("int", "decimal"): "",
    ("float", "decimal"): "",
    **{(kind, "str"): "as its text" for kind in _TEXTUAL},
}
_JSON = {("datetime", "str"): "as its text", ("bytes", "str"): "as its text in base64"}
_PYDANTIC = {
    ("bool", "int"): "as 0 or 1",
    ("bool", "float"): "as 0 or 1",
    ("date", "datetime"): "as its midnight",
    ("decimal", "float"): "as the nearest one",
    ("time", "timedelta"): "as the time since midnight",
    ("datetime", "str"): "as its text",
    ("bytes", "str"): "as its text",
    **{(kind, "bytes"): "as its text" for kind in ("str", "datetime", *_TEXTUAL)},
}
#: The conversions of pydantic in strict mode.
_STRICT = {("int", "float"): _ALWAYS["int", "float"]}
_BY_CODEC = {"json": _JSON, "msgpack": {}, "pydantic": _PYDANTIC}


def conversion(old: Schema, new: Schema, codec: str) -> list[Finding]:
    """The effect on a value of ``old`` that is read as ``new``; neither is a container."""
    was, now = old["is"], new["is"]
    change = f"was {brief(old)}, is now {brief(new)}"
    if now == "one of":
        return _into_choice(old, new) if was == "one of" else fails(change)
    if was == "one of":
        return _out_of_choice(old, new, codec)
    if was == now:
        return (
            []
            if was != "class" or old["name"] == new["name"]
            else fails(f"{change}: the effect is not known")
        )
    if (was, now) == ("datetime", "str") and codec == "msgpack" and old.get("tz") is False:
        return reads_on(f"{change}: read as its text", rewrites=False)
    rules = _STRICT if new.get("strict") else {**_ALWAYS, **_BY_CODEC[codec]}
    if (was, now) not in rules:
        return fails(change)
    how = rules[was, now]
    return reads_on(f"{change}: read {how}" if how.startswith("as") else f"{change}{how and f' ({how})'}")


def _into_choice(old: Schema, new: Schema) -> list[Finding]:
    missing = [value for value in old["values"] if not _among(value, new["values"])]
    if missing:
        values = listed(map(shown, missing))
        if new.get("others"):
            return reads_on(f"no longer has {values}, and handles others in its own way")
        return fails(f"could be {values}, which is not allowed any more")
    if old.get("others") and not new.get("others"):
        return []
    more = [value for value in new["values"] if not _among(value, old["values"])]
    return reads_on(f"may be {listed(map(shown, more))}, too", rewrites=False) if more else []


def _out_of_choice(old: Schema, new: Schema, codec: str) -> list[Finding]:
    for value in old["values"]:
        of_value = conversion({"is": _kind_of(value)}, new, codec)
        if any(finding.effect for finding in of_value):
            return fails(f"was {brief(old)}, is now {brief(new)}")
    return reads_on(f"was {brief(old)}, is now {brief(new)}", rewrites=new["is"] not in ("str", "int"))


def _kind_of(value: Any) -> str:
    return {bool: "bool", int: "int", str: "str", float: "float", type(None): "none"}.get(type(value), "any")


def _among(value: Any, values: list[Any]) -> bool:
    """Whether a value is one of ``values``; 1 and True differ."""
    return any(value == one and type(value) is type(one) for one in values)


def limits_broken(old: Schema, new: Schema) -> str:
    """The constraints on new values that old values did not have; empty if there are none."""
    for limit, check in _CHECKS.items():
        if limit in new and not check(old, new):
            return f"have {limit}={shown(new[limit])}"
    return ""


def _at_least(old: Schema, new: Schema, *, strictly: bool) -> bool:
    wanted = new["gt" if strictly else "ge"]
    if "gt" in old and old["gt"] >= wanted:
        return True
    return "ge" in old and (old["ge"] > wanted if strictly else old["ge"] >= wanted)


def _at_most(old: Schema, new: Schema, *, strictly: bool) -> bool:
    wanted = new["lt" if strictly else "le"]
    if "lt" in old and old["lt"] <= wanted:
        return True
    return "le" in old and (old["le"] < wanted if strictly else old["le"] <= wanted)


_CHECKS: dict[str, Callable[[Schema, Schema], bool]] = {
    "gt": lambda old, new: _at_least(old, new, strictly=True),
    "ge": lambda old, new: _at_least(old, new, strictly=False),
    "lt": lambda old, new: _at_most(old, new, strictly=True),
    "le": lambda old, new: _at_most(old, new, strictly=False),
    "multiple_of": lambda old, new: (
        old.get("multiple_of", 0) % new["multiple_of"] == 0 < old.get("multiple_of", 0)
    ),
    "min_length": lambda old, new: new["min_length"] <= max(old.get("min_length", 0), 0),
    "max_length": lambda old, new: "max_length" in old and old["max_length"] <= new["max_length"],
    "pattern": lambda old, new: old.get("pattern") == new["pattern"],
    "tz": lambda old, new: old.get("tz") == new["tz"],
}
