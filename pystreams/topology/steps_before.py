"""Finds the steps that determine a store's content, and compares those of two topologies.

Works on shapes (``fingerprint.shape``). It ignores names of steps, stores and internal topics, because they may change
without an effect on the content, and types, because the store's own schema shows their effect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from pystreams.topology.changed_schemas import is_schema

#: A sub-topology or a global store, as in ``fingerprint.shape``.
Part = Mapping[str, Any]

#: Parameters that later steps set on a step. They do not change what the step stores.
_ASKED_FROM_BELOW = ("send_old_values", "from_versioned")

_PROCESS = "Process"


@dataclass(frozen=True, slots=True)
class Step:
    """A step, to be compared without its names. ``content`` is its JSON without them, ``name`` is for messages."""

    name: str
    content: str


class Steps:
    """The steps of one topology."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._nodes = {node[1]: node for part in parts for node in part["nodes"]}
        self._order = {name: position for position, name in enumerate(self._nodes)}
        self._internal = {topic for part in parts for topic in part.get("internal", {})}
        self._stores = {store[0] for part in parts for store in part["stores"]}
        self._sinks: dict[str, list[str]] = {}
        for node in self._nodes.values():
            if node[0] == "sink":
                self._sinks.setdefault(node[3], []).append(node[1])

    def before(self, store: str) -> list[Step]:
        """The steps that write to a store and all steps before them, also through internal topics."""
        seen: set[str] = set()
        todo = self._writers(store)
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += self._parents(self._nodes[name])
        return [self._step(name) for name in sorted(seen, key=self._order.__getitem__)]

    def stores_before(self, store: str) -> list[str]:
        """The nearest stores before one: the steps that write to it get the rows of these."""
        found: list[str] = []
        seen: set[str] = set()
        todo = [parent for name in self._writers(store) for parent in self._parents(self._nodes[name])]
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            node = self._nodes[name]
            stores = node[4] if node[0] == "processor" else []
            found += stores
            todo += [] if stores else self._parents(node)
        return found

    def _writers(self, store: str) -> list[str]:
        users = [n for n in self._nodes.values() if n[0] == "processor" and store in n[4]]
        owners = [n[1] for n in users if _parameters(n[3]).get("store") == store]
        return owners or [n[1] for n in users if _kind(n[3]) == _PROCESS] or [n[1] for n in users]

    def _parents(self, node: Any) -> list[str]:
        if node[0] != "source":
            return list(node[2])
        return [sink for topic in node[2] if topic in self._internal for sink in self._sinks.get(topic, ())]

    def _step(self, name: str) -> Step:
        kind, _, where, *rest = self._nodes[name]
        if kind == "source":
            pattern = rest[0]
            content = [kind, [self._nameless(topic) for topic in where], pattern]
        elif kind == "sink":
            topic = rest[0]
            content = [kind, len(where), self._nameless(topic)]
        else:
            content = [kind, len(where), self._nameless(rest[0])]
        return Step(name, json.dumps(content, sort_keys=True))

    def _nameless(self, value: Any) -> Any:
        """``value`` with neutral words instead of the names of stores, internal topics and steps."""
        if isinstance(value, str):
            if value in self._stores:
                return "a store"
            return "an internal topic" if value in self._internal else value
        if isinstance(value, list):
            return [self._nameless(item) for item in value]
        if is_schema(value):
            return "a type"
        if isinstance(value, dict):
            return {
                name: "a step" if name in ("children", "default") else self._nameless(item)
                for name, item in value.items()
                if name not in _ASKED_FROM_BELOW
            }
        return value


def first_change(was: Sequence[Step], now: Sequence[Step]) -> str:
    """The first difference between the steps before a store, for people; empty if there is none."""
    matcher = SequenceMatcher(
        None, [step.content for step in was], [step.content for step in now], autojunk=False
    )
    for what, i1, i2, j1, j2 in matcher.get_opcodes():
        if what == "insert":
            return f"{now[j1].name} is new before it"
        if what == "delete":
            return f"{was[i1].name} before it is removed"
        if what == "replace":
            changed = _changed(json.loads(was[i1].content), json.loads(now[j1].content))
            if changed:
                return f"{now[j1].name}: {changed}"
            old, new = (", ".join(step.name for step in steps) for steps in (was[i1:i2], now[j1:j2]))
            return f"{old} before it is now {new}" if old != new else f"{new} changes"
    return ""


def _changed(was: Any, now: Any) -> str:
    """The parameters that differ between two steps of one kind, for people."""
    if was[0] != now[0] or was[0] != "processor" or _kind(was[2]) != _kind(now[2]):
        return ""
    old, new = _parameters(was[2]), _parameters(now[2])
    different = [
        f"{name} {_brief(old.get(name))} becomes {_brief(new.get(name))}"
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    ]
    return ", ".join(different)


def _kind(operation: Any) -> str:
    """The name of an operation's class. In a shape an operation is ``[class, parameters]``."""
    return str(operation[0]).rpartition(".")[2] if isinstance(operation, list) else str(operation)


def _parameters(operation: Any) -> Mapping[str, Any]:
    found = operation[1] if isinstance(operation, list) and len(operation) > 1 else None
    return found if isinstance(found, dict) else {}


def _brief(value: Any) -> str:
    """A parameter for people."""
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Za-z])", "", json.dumps(value))
