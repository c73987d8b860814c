"""Finds where two results of one scenario differ first.

Levels, each holding those before it: 1 outputs, and whether and where it failed; 2 stores, dumps, stream time, dropped
records; 3 internal topics byte for byte; 4 the topology's description. Texts and classes of errors are Java's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

Json = Any

_ABSENT = object()
#: What each level adds. Of an aborted run only outputs, internal topics, dumps and description count.
_ADDED: tuple[tuple[str, ...], ...] = (
    ("outputs",),
    ("dumps", "stores", "stream_time", "metrics"),
    ("internal",),
    ("describe",),
)
_ONLY_OF_WHOLE_RUNS = frozenset(("stores", "stream_time", "metrics"))
LEVELS = len(_ADDED)
#: Phases before anything runs. Some refuse a step, others the whole topology: the outputs named by then differ.
_REFUSED = frozenset(("config", "build"))


def difference(expected: Mapping[str, Json], actual: Mapping[str, Json], level: int = LEVELS) -> str | None:
    """The first difference up to ``level``, told in one line; None if there is none."""
    failure, own_failure = expected.get("error"), actual.get("error")
    if (failure is None) != (own_failure is None):
        return f"error: expected {_brief(failure)}, got {_brief(own_failure)}"
    if failure is not None and own_failure is not None:
        where, own_where = ((e.get("phase"), e.get("at")) for e in (failure, own_failure))
        if where != own_where:
            return f"error: expected {_brief(failure)}, got {_brief(own_failure)}"
        if where[0] in _REFUSED:
            return None
    for field in chain.from_iterable(_ADDED[:level]):
        if failure is not None and field in _ONLY_OF_WHOLE_RUNS:
            continue
        for found in _differences(expected.get(field), actual.get(field), field):
            return found
    return None


def _differences(expected: Json, actual: Json, path: str) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        if "error" in expected and path.startswith(("stores.", "dumps[")):
            # Kafka Streams has the store, and cannot read it from one end to the other.
            return
        for name in dict.fromkeys((*expected, *actual)):
            yield from _differences(expected.get(name, _ABSENT), actual.get(name, _ABSENT), f"{path}.{name}")
    elif isinstance(expected, list) and isinstance(actual, list):
        for i in range(max(len(expected), len(actual))):
            yield from _differences(
                expected[i] if i < len(expected) else _ABSENT,
                actual[i] if i < len(actual) else _ABSENT,
                f"{path}[{i}]",
            )
    elif isinstance(expected, str) and isinstance(actual, str) and "\n" in expected + actual:
        if expected != actual:
            yield from _differences(expected.splitlines(), actual.splitlines(), path)
            yield f"{path}: line ends differ"
    elif type(expected) is not type(actual) or expected != actual:
        yield f"{path}: expected {_brief(expected)}, got {_brief(actual)}"


def _brief(value: Json) -> str:
    return "nothing" if value is _ABSENT else json.dumps(value, ensure_ascii=False)[:400]
