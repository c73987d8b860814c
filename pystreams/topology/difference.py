"""What another topology under the same application id does to stores, internal topics, inputs and outputs.

Compares two shapes (``fingerprint.shape``): what a version that ran left behind, and what the next one wants.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pystreams.topology.steps_before import Part, Steps, first_change

_GENERATED = re.compile(r".*-STATE-STORE-[0-9]{10}|K(STREAM|TABLE)-[A-Z-]+-[0-9]{10}(-.*)?")


class Verdict(Enum):
    """What becomes of something, from the harmless to the grave."""

    KEPT = "keeps its content"
    NEW = "is new"
    MIXED = "keeps its content, which was made in another way"
    LOST = "loses its content"
    GONE = "is not used any more"
    REBUILT = "must be built anew"

    @property
    def needs_reset(self) -> bool:
        """Nothing but processing the inputs again from the beginning makes it right."""
        return self is Verdict.REBUILT


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one thing. ``kind`` is ``store``, ``repartition topic``, ``input`` or ``output``."""

    kind: str
    name: str
    verdict: Verdict
    why: str = ""


def changes(was: Sequence[Part], now: Sequence[Part]) -> list[Change]:
    """Of everything that outlives a run: what is kept first, the rest in the order of the topologies."""
    found = [
        *_Stores(was, now).changes(),
        *_repartition_topics(was, now),
        *_inputs(was, now),
        *_outputs(was, now),
    ]
    return sorted(found, key=lambda change: change.verdict is not Verdict.KEPT)


class _Stores:
    """The stores of two topologies. In a shape a store is [name, kind, key serde, value serde, persistent, logged,
    window's size, retention, duplicates, the topic it is restored from if that is an input ...]."""

    def __init__(self, was: Sequence[Part], now: Sequence[Part]) -> None:
        self._was, self._now = _stores(was), _stores(now)
        self._steps_was, self._steps_now = Steps(was), Steps(now)
        self._number_was, self._number_now = _numbers(was), _numbers(now)
        self._headers_was, self._headers_now = _with_headers(was), _with_headers(now)

    def changes(self) -> Iterator[Change]:
        renamed = self._renamed()
        old_names = {new: old for old, new in renamed.items()}
        for name, store in self._now.items():
            if name in self._was:
                yield self._of_both(name, self._was[name], store)
            else:
                yield Change("store", name, Verdict.NEW, _was_named(old_names.get(name), name))
        for name in self._was:
            if name not in self._now:
                yield Change("store", name, Verdict.LOST, _is_named(name, renamed.get(name)))

    def _of_both(self, name: str, old: Any, new: Any) -> Change:
        for i, what in enumerate(("name", "kind", "type of keys", "type of values")):
            if old[i] != new[i]:
                why = f"its {what} changes: {_brief(old[i])} to {_brief(new[i])}"
                return Change("store", name, Verdict.REBUILT, why)
        if old[6] != new[6]:
            return Change("store", name, Verdict.REBUILT, f"its windows change from {old[6]} to {new[6]} ms")
        found = _restored_otherwise(name, old, new)
        if found is not None:
            return found
        changed = first_change(self._steps_was.before(name), self._steps_now.before(name))
        if changed:
            return Change("store", name, Verdict.MIXED, f"from now on {changed}")
        return Change("store", name, Verdict.KEPT, "; ".join(self._notes(name, old, new)))

    def _notes(self, name: str, old: Any, new: Any) -> Iterator[str]:
        if old[7] > new[7]:
            yield f"but windows older than {new[7]} ms go: its retention was {old[7]} ms"
        if (name in self._headers_was) != (name in self._headers_now):
            what = "with headers" if name in self._headers_now else "with headers no more"
            yield f"its values are written anew when it is opened, {what}"
        was, now = self._number_was.get(name), self._number_now.get(name)
        if was != now and None not in (was, now):
            yield f"restored from its changelog first: its tasks were {was}_… and are {now}_…"

    def _renamed(self) -> dict[str, str]:
        """Stores that probably have another name now: the same is kept in the same way, and only the name is new."""
        lost = [name for name in self._was if name not in self._now]
        new = [name for name in self._now if name not in self._was]
        found: dict[str, str] = {}
        for name in lost:
            for other in new:
                if (
                    other not in found.values()
                    and self._was[name][1:] == self._now[other][1:]
                    and (
                        (_GENERATED.fullmatch(name) and _GENERATED.fullmatch(other))
                        or not first_change(self._steps_was.before(name), self._steps_now.before(other))
                    )
                ):
                    found[name] = other
                    break
        return found


def _was_named(old: str | None, new: str) -> str:
    if old is None:
        return "it starts empty"
    return f"it starts empty; perhaps it was {old}: name={old!r} keeps that one's content" + (
        ", and names that you give never move" if _GENERATED.fullmatch(new) else ""
    )


def _is_named(old: str, new: str | None) -> str:
    return "" if new is None else f"perhaps it is now {new}: name={old!r} keeps the content"


def _restored_otherwise(name: str, old: Any, new: Any) -> Change | None:
    """Where another topic, or none, is what the store is restored from."""
    topic_was, topic_now = _source_topic(old), _source_topic(new)
    if topic_now is not None and topic_now != topic_was:
        why = f"restored from {topic_now} from now on, which must be compacted to have all rows"
        return Change("store", name, Verdict.KEPT, why)
    if topic_was is not None and topic_now is None:
        why = (
            f"it was restored from {topic_was}: its changelog lacks those rows"
            if new[5]
            else "it has no changelog"
        )
        return Change("store", name, Verdict.LOST, why)
    if old[5] and not new[5]:
        return Change("store", name, Verdict.LOST, "it has no changelog any more")
    if new[5] and not old[5]:
        return Change("store", name, Verdict.LOST, "it had no changelog")
    return None


def _source_topic(store: Any) -> str | None:
    return store[9] if len(store) > 9 and isinstance(store[9], str) else None


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
    for name in sorted(before.keys() - after.keys()):
        why = "stop the old version when it has caught up: what still waits in the topic is lost"
        yield Change(kind, name, Verdict.GONE, why)


def _inputs(was: Sequence[Part], now: Sequence[Part]) -> Iterator[Change]:
    before, after = ({topic for part in parts for topic in _topics(part)} for parts in (was, now))
    for topic in sorted(after - before):
        yield Change("input", topic, Verdict.NEW, "it is read from where auto_offset_reset says")
    for topic in sorted(before - after):
        yield Change("input", topic, Verdict.GONE, "its committed offsets stay")


def _outputs(was: Sequence[Part], now: Sequence[Part]) -> Iterator[Change]:
    before, after = ({topic for part in parts for topic in _written(part, parts)} for parts in (was, now))
    for topic in sorted(after - before):
        yield Change("output", topic, Verdict.NEW, "the topic must exist")
    for topic in sorted(before - after):
        yield Change("output", topic, Verdict.GONE)


def _topics(part: Part) -> Iterator[str]:
    for node in part["nodes"]:
        if node[0] == "source":
            yield from (topic for topic in node[2] if topic not in part.get("internal", {}))
            if node[3]:
                yield f"/{node[3]}/"


def _written(part: Part, parts: Sequence[Part]) -> Iterator[str]:
    internal = {topic for one in parts for topic in one.get("internal", {})}
    for node in part["nodes"]:
        if node[0] == "sink" and node[3] is not None and node[3] not in internal:
            yield node[3]


def _stores(parts: Sequence[Part]) -> dict[str, Any]:
    return {store[0]: store for part in parts for store in part["stores"]}


def _numbers(parts: Sequence[Part]) -> Mapping[str, int]:
    """The sub-topology of each store that tasks have; global ones have none."""
    of_tasks = [part for part in parts if "internal" in part]
    return {store[0]: number for number, part in enumerate(of_tasks) for store in part["stores"]}


def _with_headers(parts: Sequence[Part]) -> set[str]:
    """The stores that keep headers on disk."""
    return {name for part in parts for name in part.get("headers", ())}


def _brief(value: Any) -> str:
    """A serde or a kind for people: ``pystreams.serde.primitives.StrSerde`` as ``StrSerde``."""
    if isinstance(value, list):
        name, *arguments = (_brief(item) for item in value)
        return f"{name}({', '.join(arguments)})" if arguments else name
    return str(value).rpartition(".")[2]
