"""The fixed vocabulary of functions in scenarios, and how a value is written as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pystreams.windowed import Windowed

Function = Callable[..., Any]


class ScenarioError(Exception):
    """The scenario itself is wrong."""


class BoomError(Exception):
    """What ``throw_if`` raises."""


def render(value: Any) -> str:
    """``R(x)``: a value, key or windowed key as text; None is ``null``."""
    if value is None:
        return "null"
    if isinstance(value, Windowed):
        return f"{render(value.key)}@{value.start}/{value.end}"
    return value if isinstance(value, str) else str(value)


def render_or_none(value: Any) -> str | None:
    return None if value is None else render(value)


def to_int(value: Any) -> int:
    """1 to 9 digits with an optional sign; anything else counts as 0."""
    text = render(value)
    return int(text) if re.fullmatch("-?[0-9]{1,9}", text, re.ASCII) else 0


def _upper(text: str) -> str:
    return "".join(chr(ord(c) - 32) if "a" <= c <= "z" else c for c in text)


def _raise_if(value: Any, needle: str) -> str:
    text = render(value)
    if needle in text:
        raise BoomError(f"boom {text}")
    return text


def _field(value: Any, index: int) -> str | None:
    if value is None:
        return None
    parts = render(value).split("|")
    return (parts[index] or None) if index < len(parts) else None


def _null_if(text: str, needle: str) -> str | None:
    return None if needle in text else text


#: name -> a -> function of (key, value)
_PREDICATES: dict[str, Callable[[str], Function]] = {
    "true": lambda a: lambda k, v: True,
    "false": lambda a: lambda k, v: False,
    "len_even": lambda a: lambda k, v: len(render(v)) % 2 == 0,
    "key_is": lambda a: lambda k, v: render(k) == a,
    "key_in": lambda a: lambda k, v: render(k) in a.split(","),
    "key_starts": lambda a: lambda k, v: render(k).startswith(a),
    "contains": lambda a: lambda k, v: a in render(v),
    "starts": lambda a: lambda k, v: render(v).startswith(a),
    "gt": lambda a: lambda k, v: render(v) > a,
    "value_null": lambda a: lambda k, v: v is None,
    "key_null": lambda a: lambda k, v: k is None,
    "throw_if": lambda a: lambda k, v: bool(_raise_if(v, a)) or True,
}

_MAPPERS: dict[str, Callable[[str], Function]] = {
    "append": lambda a: lambda k, v: render(v) + a,
    "prepend": lambda a: lambda k, v: a + render(v),
    "upper": lambda a: lambda k, v: _upper(render(v)),
    "len": lambda a: lambda k, v: str(len(render(v))),
    "const": lambda a: lambda k, v: a,
    "null": lambda a: lambda k, v: None,
    "keep": lambda a: lambda k, v: render_or_none(v),
    "value": lambda a: lambda k, v: render(v),
    "key": lambda a: lambda k, v: render_or_none(k),
    "key_str": lambda a: lambda k, v: render(k),
    "key_append": lambda a: lambda k, v: render(k) + a,
    "with_key": lambda a: lambda k, v: f"{render(k)}:{render(v)}",
    "first": lambda a: lambda k, v: render(v)[: int(a)],
    "key_first": lambda a: lambda k, v: render(k)[: int(a)],
    "last": lambda a: lambda k, v: render(v)[max(0, len(render(v)) - int(a)) :],
    "field": lambda a: lambda k, v: _field(v, int(a)),
    "null_if": lambda a: lambda k, v: _null_if(render(v), a),
    "throw_if": lambda a: lambda k, v: _raise_if(v, a),
}

_FLAT: dict[str, Callable[[str], Function]] = {
    "chars": lambda a: lambda k, v: list(render(v)),
    "split": lambda a: lambda k, v: render(v).split(a),
    "dup": lambda a: lambda k, v: [f"{render(v)}#{i}" for i in range(int(a))],
    "none": lambda a: lambda k, v: [],
}

#: functions of (key, left, right)
_JOINERS: dict[str, Callable[[str], Function]] = {
    "join": lambda a: lambda k, left, right: render(left) + a + render(right),
    "join_key": lambda a: lambda k, left, right: f"{render(k)}={render(left)}{a}{render(right)}",
    "left": lambda a: lambda k, left, right: render(left),
    "right": lambda a: lambda k, left, right: render(right),
    "null": lambda a: lambda k, left, right: None,
    "null_if": lambda a: lambda k, left, right: _null_if(f"{render(left)}&{render(right)}", a),
}

#: functions of (key, aggregate, value)
_AGGREGATORS: dict[str, Callable[[str], Function]] = {
    "cat": lambda a: lambda k, g, v: render(g) + a + render(v),
    "kcat": lambda a: lambda k, g, v: f"{render(g)}{a}{render(k)}:{render(v)}",
    "max": lambda a: lambda k, g, v: max(render(g), render(v)),
    "min": lambda a: lambda k, g, v: min(render(g), render(v)),
    "last": lambda a: lambda k, g, v: render(v),
    "first": lambda a: lambda k, g, v: render(g),
    "len": lambda a: lambda k, g, v: str(to_int(g) + len(render(v))),
    "sub_len": lambda a: lambda k, g, v: str(to_int(g) - len(render(v))),
    "cat_null_if": lambda a: lambda k, g, v: None if a in render(v) else f"{render(g)}+{render(v)}",
    "null": lambda a: lambda k, g, v: None,
}


_MERGERS: dict[str, Callable[[str], Function]] = {
    "merge": lambda a: lambda k, one, two: f"{render(one)}{a}{render(two)}",
    "kmerge": lambda a: lambda k, one, two: f"{render(one)}{a}{render(k)}{a}{render(two)}",
}


def _look_up(table: dict[str, Callable[[str], Function]], kind: str, name: str) -> Function:
    head, _, argument = name.partition(":")
    if head not in table:
        raise ScenarioError(f"unknown {kind}: {name}")
    return table[head](argument)


def predicate(name: str) -> Function:
    """Of (key, value), a bool."""
    return _look_up(_PREDICATES, "predicate", name)


def mapper(name: str) -> Function:
    """Of (key, value), text or None."""
    return _look_up(_MAPPERS, "mapper", name)


def flat(name: str) -> Function:
    """Of (key, value), a list of texts."""
    return _look_up(_FLAT, "flat function", name)


def joiner(name: str) -> Function:
    """Of (key, left, right), text or None."""
    return _look_up(_JOINERS, "joiner", name)


def aggregator(name: str) -> Function:
    """Of (key, aggregate, value), text or None."""
    return _look_up(_AGGREGATORS, "aggregator", name)


def merger(name: str) -> Function:
    """Of (key, one, two): one aggregate of two sessions'."""
    return _look_up(_MERGERS, "session merger", name)


def reducer(name: str) -> Function:
    """Of (aggregate, value): an aggregator that gets no key."""
    function = aggregator(name)
    return lambda aggregate, value: function(None, aggregate, value)
