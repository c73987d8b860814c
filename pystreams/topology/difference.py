"""What another topology under the same application id does to stores, internal topics and inputs.

Compares two shapes (``fingerprint.shape``): what a version that ran left behind, and what the next one wants.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

_GENERATED = re.compile(r"K(STREAM|TABLE)-[A-Z-]+-[0-9]{10}")

#: A sub-topology or a global store, as ``fingerprint.shape`` gives it.
Part = Mapping[str, Any]


class Verdict(Enum):
    """What becomes of something, from the harmless to the grave."""

    KEPT = "keeps its content"
    NEW = "is new and starts empty"
    MIXED = "keeps its content, which the steps before it made in another way"
    LOST = "loses its content"
    REBUILT = "must be built anew"

    @property
    def needs_reset(self) -> bool:
        """Nothing but processing the inputs again from the beginning makes it right."""
        return self is Verdict.REBUILT


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one thing. ``kind`` is ``store``, ``repartition topic`` or ``input``."""

    kind: str
    name: str
    verdict: Verdict
    why: str = ""


def changes(was: Sequence[Part], now: Sequence[Part]) -> list[Change]:
    """Of everything that outlives a run: what is kept first, the rest in the order of the topologies."""
    found = [*_stores(was, now), *_repartition_topics(was, now), *_inputs(was, now)]
    return sorted(found, key=lambda change: change.verdict is not Verdict.KEPT)


def _stores(was: Sequence[Part], now: Sequence[Part]) -> Iterator[Change]:
    before, after = _by_name(was, "stores"), _by_name(now, "stores")
    for name, (part, store) in after.items():
        if name in before:
            yield _store(name, before[name], (part, store))
        else:
            yield Change("store", name, Verdict.NEW, _moved(name, store, before, after, "it was"))
    for name, (_, store) in before.items():
        if name not in after:
            yield Change("store", name, Verdict.LOST, _moved(name, store, after, before, "it is now"))


def _store(name: str, before: tuple[Part, Any], after: tuple[Part, Any]) -> Change:
    (old_part, old), (new_part, new) = before, after
    for i, what in enumerate(("name", "kind", "type of keys", "type of values")):
        if old[i] != new[i]:
            return Change(
                "store", name, Verdict.REBUILT, f"its {what} changes: {_brief(old[i])} to {_brief(new[i])}"
            )
    if old[6] != new[6]:
        return Change("store", name, Verdict.REBUILT, f"its windows change from {old[6]} to {new[6]} ms")
    if old[5] and not new[5]:
        return Change("store", name, Verdict.LOST, "it has no changelog any more")
    if new[5] and not old[5]:
        return Change("store", name, Verdict.LOST, "it had no changelog")
    if _above(old_part, name) != _above(new_part, name):
        return Change("store", name, Verdict.MIXED, "what is written from now on comes another way")
    if old[7] > new[7]:
        return Change(
            "store",
            name,
            Verdict.KEPT,
            f"but windows older than {new[7]} ms go: its retention was {old[7]} ms",
        )
    return Change("store", name, Verdict.KEPT)


def _moved(
    name: str, store: Any, others: Mapping[str, tuple[Part, Any]], own: Mapping[str, Any], told: str
) -> str:
    """Of a generated name that moved, because a step was added or removed before it."""
    if not _GENERATED.fullmatch(name):
        return ""
    alike = [
        other
        for other, (_, found) in others.items()
        if other not in own and _GENERATED.fullmatch(other) and found[1:] == store[1:]
    ]
    return (
        f"{told} perhaps {alike[0]}: generated names change with the program, name= keeps them"
        if alike
        else ""
    )


def _repartition_topics(was: Sequence[Part], now: Sequence[Part]) -> Iterator[Change]:
    before, after = (
        {k: v for part in parts for k, v in part.get("internal", {}).items()} for parts in (was, now)
    )
    kind = "repartition topic"
    for name, partitions in after.items():
        if name not in before:
            yield Change(kind, name, Verdict.NEW)
        elif before[name] != partitions:
            given = "that of the inputs"
            why = f"its partitions change from {before[name] or given} to {partitions or given}"
            yield Change(kind, name, Verdict.REBUILT, why)
        else:
            yield Change(kind, name, Verdict.KEPT)
    for name in before.keys() - after.keys():
        yield Change(kind, name, Verdict.LOST, "what waits in it unprocessed when the old version stops")


def _inputs(was: Sequence[Part], now: Sequence[Part]) -> Iterator[Change]:
    before, after = ({topic for part in parts for topic in _topics(part)} for parts in (was, now))
    for topic in sorted(after - before):
        yield Change("input", topic, Verdict.NEW, "it is read from where auto_offset_reset says")
    for topic in sorted(before - after):
        yield Change("input", topic, Verdict.LOST, "it is not read any more; its committed offsets stay")


def _topics(part: Part) -> Iterator[str]:
    for node in part["nodes"]:
        if node[0] == "source":
            yield from (topic for topic in node[2] if topic not in part.get("internal", {}))
            if node[3]:
                yield f"/{node[3]}/"


def _by_name(parts: Sequence[Part], what: str) -> dict[str, tuple[Part, Any]]:
    return {item[0]: (part, item) for part in parts for item in part[what]}


def _above(part: Part, store: str) -> list[Any]:
    """The steps that write to a store, and all before them, without the generated numbers in their names."""
    nodes = {node[1]: node for node in part["nodes"]}
    seen: set[str] = set()
    todo = [node[1] for node in part["nodes"] if node[0] == "processor" and store in node[4]]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            node = nodes[name]
            todo += [] if node[0] == "source" else node[2]
    return [_unnumbered(nodes[name]) for name in nodes if name in seen]


def _unnumbered(node: Any) -> Any:
    if isinstance(node, str):
        return re.sub(r"-[0-9]{10}", "", node)
    if isinstance(node, list):
        return [_unnumbered(item) for item in node]
    if isinstance(node, dict):
        return {name: _unnumbered(item) for name, item in node.items()}
    return node


def _brief(value: Any) -> str:
    """A serde or a kind for people: ``pystreams.serde.primitives.StrSerde`` as ``StrSerde``."""
    if isinstance(value, list):
        name, *arguments = (_brief(item) for item in value)
        return f"{name}({', '.join(arguments)})" if arguments else name
    return str(value).rpartition(".")[2]
