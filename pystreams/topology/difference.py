"""The effects of a changed topology on stores, internal topics, inputs and outputs of an application.

Compares two shapes (``fingerprint.shape``): that of the version that ran last, and that of the new version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, NamedTuple

from pystreams.serde.schemas import Effect, Schema
from pystreams.state.spec import EXPIRING_KINDS
from pystreams.topology.changed_schemas import change_of_keys, change_of_values, difference
from pystreams.topology.fingerprint import is_of_earlier_version
from pystreams.topology.former_names import names_to_be, renamed
from pystreams.topology.names import is_generated
from pystreams.topology.steps_before import Part, Steps, first_change


class Verdict(Enum):
    """The effect on a store or topic, ordered from harmless to severe."""

    KEPT = "keeps its content"
    NEW = "is new"
    MIXED = "keeps its content, which was computed in another way"
    CHANGED = "is read or written as another type"
    UNKNOWN = "cannot be compared"
    PARTLY_LOST = "loses a part of its content"
    LOST = "loses its content"
    GONE = "is not used any more"
    REBUILT = "must be built anew"


#: Stores whose entries expire, but for those of joins: with a shorter retention nothing would match what expires there.
_OF_RESULTS = EXPIRING_KINDS - {"join_window"}

#: The end of the ``why`` of a repartition topic whose records cannot be read as they are.
EMPTY_IT_FIRST: Final = ": stop the old version when it has caught up, so that the topic is empty"

_LOSSES = (Verdict.PARTLY_LOST, Verdict.LOST, Verdict.REBUILT)


@dataclass(frozen=True, slots=True)
class Change:
    """The effect on one store or topic. ``kind`` is ``store``, ``repartition topic``, ``input`` or ``output``;
    ``fields`` are the parts of keys and values that are lost or cannot be read (``value.cents``); ``renamed`` maps
    those that probably have a new name to this name (``euros``). ``successor`` is the new store that a lost one
    probably is now."""

    kind: str
    name: str
    verdict: Verdict
    why: str = ""
    fields: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    successor: str | None = None

    @property
    def loses(self) -> bool:
        """Whether content of a store, or unprocessed records of a repartition topic, would be lost or must be
        rebuilt."""
        return self.kind in ("store", "repartition topic") and self.verdict in _LOSSES


def changes(was: Sequence[Part], now: Sequence[Part]) -> list[Change]:
    """The effects on stores, topics, inputs and outputs: first those that stay, the others in the topologies' order."""
    names = names_to_be(was, now)
    former = {new: old for old, new in names.items()}
    was = renamed(was, names)
    found = [
        *(_carried_over(change, former) for change in _Stores(was, now).changes()),
        *_repartition_topics(was, now),
        *_inputs(was, now),
        *_outputs(was, now),
    ]
    return sorted(found, key=lambda change: change.verdict is not Verdict.KEPT)


def _carried_over(change: Change, former: Mapping[str, str]) -> Change:
    if change.name not in former or change.verdict not in (Verdict.KEPT, Verdict.MIXED):
        return change
    note = f"carried over from {former[change.name]}"
    return replace(change, why=f"{note}; {change.why}" if change.why else note)


class _Store(NamedTuple):
    """A store, as ``fingerprint.shape`` lists its properties."""

    name: str
    kind: str
    keys: Any
    values: Any
    persistent: bool
    logged: bool
    window_size_ms: int
    retention_ms: int
    retain_duplicates: bool
    #: The input topic from which it is restored, if there is one; the extra properties of versioned and bounded stores.
    rest: tuple[Any, ...]

    @classmethod
    def of(cls, properties: Sequence[Any]) -> _Store:
        known = len(cls._fields) - 1
        return cls._make((*properties[:known], tuple(properties[known:])))

    @property
    def source_topic(self) -> str | None:
        return self.rest[0] if self.rest and isinstance(self.rest[0], str) else None


class _Stores:
    """The stores of two topologies."""

    def __init__(self, was: Sequence[Part], now: Sequence[Part]) -> None:
        self._was, self._now = _stores(was), _stores(now)
        self._steps_was, self._steps_now = Steps(was), Steps(now)
        self._number_was, self._number_now = _numbers(was), _numbers(now)
        self._earlier = is_of_earlier_version(was) or is_of_earlier_version(now)
        self._headers_was, self._headers_now = _with_headers(was), _with_headers(now)

    def changes(self) -> Iterator[Change]:
        renamed = self._renamed()
        old_names = {new: old for old, new in renamed.items()}
        for name, store in self._now.items():
            if name in self._was:
                yield self._of_both(name, self._was[name], store)
            else:
                yield Change("store", name, Verdict.NEW, _was_named(old_names.get(name)))
        for name in self._was:
            if name not in self._now:
                successor = renamed.get(name)
                why = f"perhaps it is now {successor}" if successor else ""
                yield Change("store", name, Verdict.LOST, why, successor=successor)

    def _of_both(self, name: str, old: _Store, new: _Store) -> Change:
        if old.kind != new.kind:
            why = f"its kind changes: {old.kind} to {new.kind}"
            return Change("store", name, Verdict.REBUILT, why)
        if self._earlier:
            return Change("store", name, Verdict.UNKNOWN, _EARLIER)
        keys, values = change_of_keys(old.keys, new.keys), change_of_values(old.values, new.values)
        if keys.effect is Effect.FAILS:
            why = f"its keys change: {keys.why}"
            return Change("store", name, Verdict.REBUILT, why, keys.fields)
        if values.effect is Effect.FAILS:
            return Change("store", name, Verdict.REBUILT, values.why, values.fields, values.renamed)
        if old.window_size_ms != new.window_size_ms:
            why = f"its windows change from {old.window_size_ms} to {new.window_size_ms} ms"
            return Change("store", name, Verdict.REBUILT, why)
        found = _restored_otherwise(name, old, new) or self._with_nothing_to_restore_from(name, old, new)
        if found is not None:
            return found
        losses = [values.why] if values.effect is Effect.LOSES else []
        if old.kind in _OF_RESULTS and old.retention_ms > new.retention_ms:
            losses.append(
                f"windows older than {new.retention_ms} ms are deleted: its retention was {old.retention_ms} ms"
            )
        if losses:
            why = "; ".join(losses)
            return Change("store", name, Verdict.PARTLY_LOST, why, values.fields, values.renamed)
        schemas = [why for why in (keys.why, values.why) if why]
        changed = first_change(self._steps_was.before(name), self._steps_now.before(name))
        if changed:
            return Change("store", name, Verdict.MIXED, "; ".join([f"from now on {changed}", *schemas]))
        return Change("store", name, Verdict.KEPT, "; ".join([*schemas, *self._notes(name, old, new)]))

    def _with_nothing_to_restore_from(self, name: str, old: _Store, new: _Store) -> Change | None:
        """The change of a store without a changelog: its content is only on disk in its tasks' folders, or in
        memory."""
        was, now = self._number_was.get(name), self._number_now.get(name)
        if new.logged or new.source_topic is not None or None in (was, now):
            return None
        if not old.persistent or not new.persistent:
            where = "it is in memory" if not old.persistent else "it will be in memory"
            return Change("store", name, Verdict.LOST, f"{where}, and has no changelog")
        if was != now:
            why = (
                f"it has no changelog, and its tasks change from {was}_… to {now}_…, which have other folders"
            )
            return Change("store", name, Verdict.LOST, why)
        return None

    def _notes(self, name: str, old: _Store, new: _Store) -> Iterator[str]:
        if (name in self._headers_was) != (name in self._headers_now):
            what = "with headers" if name in self._headers_now else "without headers"
            yield f"its values are rewritten {what} when it is opened"
        was, now = self._number_was.get(name), self._number_now.get(name)
        topic = new.source_topic or ("its changelog" if new.logged else None)
        if None in (was, now):
            return
        if topic is None:
            yield "but only where its files are: it has no changelog"
        elif was != now:
            yield f"it is restored from {topic} first, because its tasks change from {was}_… to {now}_…"

    def _kept_alike(self, old: _Store, new: _Store) -> bool:
        """Whether one store can continue with the other's content."""
        if old[4:] != new[4:] or old.kind != new.kind or self._earlier:
            return old[1:] == new[1:]
        same_keys = change_of_keys(old.keys, new.keys).effect is Effect.READS_ON
        return same_keys and change_of_values(old.values, new.values).effect is Effect.READS_ON

    def _renamed(self) -> dict[str, str]:
        """Old names of stores that probably have a new name, with it: everything else about the two stores is equal; or
        they are the only ones of their kind and types, and have other steps before them."""
        lost = [name for name in self._was if name not in self._now]
        new = [name for name in self._now if name not in self._was]
        alike = {
            name: [other for other in new if self._kept_alike(self._was[name], self._now[other])]
            for name in lost
        }
        found: dict[str, str] = {}
        for name, others in alike.items():
            for other in others:
                if other not in found.values() and self._same_steps(name, other):
                    found[name] = other
                    break
        left = {
            name: [other for other in others if other not in found.values()]
            for name, others in alike.items()
            if name not in found
        }
        asked = Counter(other for others in left.values() for other in others)
        return found | {name: others[0] for name, others in left.items() if [asked[o] for o in others] == [1]}

    def _same_steps(self, old: str, new: str) -> bool:
        if is_generated(old) and is_generated(new):
            return True
        return not first_change(self._steps_was.before(old), self._steps_now.before(new))


_EARLIER = (
    "an earlier version of pystreams described one of the two topologies, without the types in the bytes"
)


def _was_named(old: str | None) -> str:
    return "it starts empty" if old is None else f"it starts empty; perhaps it was {old} before"


def _restored_otherwise(name: str, old: _Store, new: _Store) -> Change | None:
    """The change of a store that is restored from another topic than before, or no longer from any."""
    topic_was, topic_now = old.source_topic, new.source_topic
    if topic_now is not None and topic_now != topic_was:
        why = f"it will be restored from {topic_now}, which must be compacted to have all rows"
        return Change("store", name, Verdict.KEPT, why)
    if topic_was is not None and topic_now is None:
        why = (
            f"it was restored from {topic_was}: its new changelog does not have those rows"
            if new.logged
            else "it has no changelog"
        )
        return Change("store", name, Verdict.LOST, why)
    if old.logged and not new.logged:
        return Change("store", name, Verdict.LOST, "it has no changelog any more")
    if new.logged and not old.logged:
        return Change("store", name, Verdict.LOST, "it had no changelog")
    return None


def _repartition_topics(was: Sequence[Part], now: Sequence[Part]) -> Iterator[Change]:
    before, after = (
        {k: v for part in parts for k, v in part.get("internal", {}).items()} for parts in (was, now)
    )
    written, read = _schemas_written(was), _schemas_read(now)
    earlier = is_of_earlier_version(was) or is_of_earlier_version(now)
    kind = "repartition topic"
    for name, partitions in after.items():
        if name not in before:
            yield Change(kind, name, Verdict.NEW)
        elif before[name] != partitions:
            given = "that of the inputs"
            why = f"its partition count changes from {before[name] or given} to {partitions or given}"
            yield Change(kind, name, Verdict.REBUILT, why)
        elif earlier:
            yield Change(kind, name, Verdict.UNKNOWN, _EARLIER)
        else:
            yield _waiting(kind, name, written.get(name), read.get(name))
    for name in sorted(before.keys() - after.keys()):
        why = "stop the old version when it has caught up: records that are still in the topic are lost"
        yield Change(kind, name, Verdict.GONE, why)


def _waiting(kind: str, name: str, written: _Schemas | None, read: _Schemas | None) -> Change:
    """The effect on the records that a repartition topic still holds."""
    if written is None or read is None:
        return Change(kind, name, Verdict.KEPT)
    keys, values = change_of_keys(written[0], read[0]), change_of_values(written[1], read[1])
    why = "; ".join(one for one in (keys.why, values.why) if one)
    if keys.effect is Effect.FAILS:
        return Change(kind, name, Verdict.REBUILT, f"its keys change: {keys.why}", keys.fields)
    if values.effect is Effect.READS_ON:
        return Change(kind, name, Verdict.KEPT, why)
    verdict = Verdict.LOST if values.effect is Effect.FAILS else Verdict.PARTLY_LOST
    return Change(kind, name, verdict, f"{values.why}{EMPTY_IT_FIRST}", values.fields, values.renamed)


def _other_types(kind: str, was: Mapping[str, _Schemas], now: Mapping[str, _Schemas]) -> Iterator[Change]:
    """Inputs or outputs whose records the new version reads, or writes, as other types than before."""
    for topic in sorted(was.keys() & now.keys()):
        why = difference(was[topic], now[topic])
        if why:
            yield Change(kind, topic, Verdict.CHANGED, why)


def _inputs(was: Sequence[Part], now: Sequence[Part]) -> Iterator[Change]:
    before, after = ({topic for part in parts for topic in _topics(part)} for parts in (was, now))
    for topic in sorted(after - before):
        yield Change("input", topic, Verdict.NEW, "auto_offset_reset decides where reading starts")
    for topic in sorted(before - after):
        yield Change("input", topic, Verdict.GONE, "its committed offsets stay")
    yield from _other_types("input", _outside(was, _schemas_read), _outside(now, _schemas_read))


def _outputs(was: Sequence[Part], now: Sequence[Part]) -> Iterator[Change]:
    before, after = ({topic for part in parts for topic in _written(part, parts)} for parts in (was, now))
    for topic in sorted(after - before):
        yield Change("output", topic, Verdict.NEW, "the topic must exist")
    for topic in sorted(before - after):
        yield Change("output", topic, Verdict.GONE)
    yield from _other_types("output", _outside(was, _schemas_written), _outside(now, _schemas_written))


def _topics(part: Part) -> Iterator[str]:
    for node in part["nodes"]:
        if node[0] == "source":
            yield from (topic for topic in node[2] if topic not in part.get("internal", {}))
            yield from _pattern(node)


def _written(part: Part, parts: Sequence[Part]) -> Iterator[str]:
    internal = {topic for one in parts for topic in one.get("internal", {})}
    for node in part["nodes"]:
        if node[0] == "sink" and node[3] is not None and node[3] not in internal:
            yield node[3]


#: The schemas of a topic's keys and of its values.
_Schemas = tuple[Schema, Schema]


def _schemas_read(parts: Sequence[Part]) -> dict[str, _Schemas]:
    """By topic. Topics that match a pattern are listed under the pattern."""
    nodes = [node for part in parts for node in part["nodes"] if node[0] == "source"]
    return {topic: (node[4], node[5]) for node in nodes for topic in (*node[2], *_pattern(node))}


def _schemas_written(parts: Sequence[Part]) -> dict[str, _Schemas]:
    nodes = [node for part in parts for node in part["nodes"] if node[0] == "sink"]
    return {node[3]: (node[4], node[5]) for node in nodes if node[3] is not None}


def _outside(
    parts: Sequence[Part], schemas: Callable[[Sequence[Part]], dict[str, _Schemas]]
) -> dict[str, _Schemas]:
    """The schemas of topics that are not internal; empty if an earlier version described one of the topologies."""
    internal = {topic for part in parts for topic in part.get("internal", {})}
    if is_of_earlier_version(parts):
        return {}
    return {topic: found for topic, found in schemas(parts).items() if topic not in internal}


def _pattern(node: Sequence[Any]) -> list[str]:
    return [f"/{node[3]}/"] if node[3] else []


def _stores(parts: Sequence[Part]) -> dict[str, _Store]:
    stores = (_Store.of(store) for part in parts for store in part["stores"])
    return {store.name: store for store in stores}


def _numbers(parts: Sequence[Part]) -> Mapping[str, int]:
    """The sub-topology of each store that belongs to tasks; global stores have none."""
    of_tasks = [part for part in parts if "internal" in part]
    return {store[0]: number for number, part in enumerate(of_tasks) for store in part["stores"]}


def _with_headers(parts: Sequence[Part]) -> set[str]:
    """The stores that keep headers on disk."""
    return {name for part in parts for name in part.get("headers", ())}
