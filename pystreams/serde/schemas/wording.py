"""Schemas and values in words."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pystreams.serde.schemas.finding import Schema

_SHOWN_MAX = 60


def brief(node: Schema) -> str:
    """A node of a type's schema for people: ``list of int``, ``str or none``."""
    kind = node["is"]
    if kind == "union":
        return " or ".join(brief(one) for one in sorted(node["of"], key=lambda one: one["is"] == "none"))
    if kind in ("list", "set"):
        return kind if node["of"]["is"] == "any" else f"{kind} of {brief(node['of'])}"
    if kind == "mapping":
        return f"mapping of {brief(node['keys'])} to {brief(node['values'])}"
    if kind == "tuple":
        return f"({', '.join(brief(item) for item in node['items'])})"
    if kind == "one of":
        return f"one of {listed(shown(value) for value in node['values'])}"
    if kind == "any":
        return "any value"
    return str(node["name"]) if kind == "class" else str(kind)


def shown(value: Any) -> str:
    """A value as JSON, cut where it is long."""
    text = json.dumps(value, default=str)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 1]}…"


def listed(names: Iterable[str]) -> str:
    """Several names as ``a, b, c``."""
    return ", ".join(names)
