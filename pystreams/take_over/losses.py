"""Finds the stores and internal topics that would lose persistent content, and the losses that belong together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from pystreams.plural import plural
from pystreams.take_over.last_run import LastRun, Shape
from pystreams.topology.difference import EMPTY_IT_FIRST, Change, Verdict
from pystreams.topology.former_names import names_to_be, renamed
from pystreams.topology.steps_before import Steps

#: The number of records of an internal topic that are not processed yet.
Waiting: TypeAlias = Callable[[str], int]

#: The verdicts with which no content of a store can be used: it starts empty.
NOTHING_LEFT: Final = frozenset({Verdict.LOST, Verdict.REBUILT})


def losing_stores(before: LastRun, now: Shape, found: Sequence[Change]) -> dict[str, Change]:
    """By name, the stores that would lose persistent content. ``found`` are all changes."""
    held = {store[0]: store for part in before.topology if "internal" in part for store in part["stores"]}
    former = {new: old for old, new in names_to_be(before.topology, now).items()}
    losing: dict[str, Change] = {}
    for change in found:
        store = held.get(former.get(change.name, change.name))
        if change.kind == "store" and change.loses and store is not None and _outlives_a_run(store):
            losing[change.name] = change
    return losing


def losing_topics(
    before: LastRun, now: Shape, found: Sequence[Change], waiting: Waiting
) -> dict[str, Change]:
    """By name, the repartition topics that cannot stay as they are, or whose unprocessed records would be lost."""
    losing: dict[str, Change] = {}
    for change in found:
        if change.kind != "repartition topic" or not (change.loses or change.verdict is Verdict.GONE):
            continue
        if has_other_partitions(change, before.topology, now):
            losing[change.name] = change
        elif count := waiting(change.name):
            left = f"it holds {count} {plural(count, 'record')} not processed yet"
            why = f"{left}; {change.why}" if change.why else left
            losing[change.name] = replace(change, why=why)
    return losing


def as_topics_are(before: LastRun, now: Shape, found: Sequence[Change], waiting: Waiting) -> list[Change]:
    """``found``, adjusted to the present content of repartition topics: an empty topic loses nothing."""
    losing = losing_topics(before, now, found, waiting)
    return [_as_it_is(change, losing.get(change.name)) for change in found]


def _as_it_is(change: Change, losing: Change | None) -> Change:
    """``losing`` is the result of ``losing_topics`` for the same topic."""
    if change.kind != "repartition topic":
        return change
    if losing is not None:
        return replace(losing, verdict=Verdict.LOST) if losing.verdict is Verdict.GONE else losing
    if not change.loses:
        return change
    why = change.why.removesuffix(EMPTY_IT_FIRST)
    empty = "it is empty now, and must be empty when the old version stops"
    return replace(change, verdict=Verdict.CHANGED, why=f"{why}: {empty}")


def has_other_partitions(change: Change, before: Shape, now: Shape) -> bool:
    """Whether the change of a repartition topic is one of its number of partitions."""
    was, will_be = _partitions(before), _partitions(now)
    return change.name in will_be and was[change.name] != will_be[change.name]


def lost_with(losing: Mapping[str, Change], before: Shape, now: Shape) -> dict[str, str]:
    """For each buffer of a ``suppress``, the store whose rows wait in it and that loses its content by the same change:
    to accept one loss is to accept the other. ``losing`` are all stores that lose content, by name."""
    was = renamed(before, names_to_be(before, now))
    steps = Steps(was)
    buffers = {store[0] for part in was for store in part["stores"] if store[1] == "buffer"}
    return {
        buffer: store
        for buffer in losing.keys() & buffers
        for store in steps.stores_before(buffer)
        if store in losing and _by_the_same_change(losing[store], losing[buffer])
    }


def _by_the_same_change(store: Change, buffer: Change) -> bool:
    """Whether the store loses all rows, including those that wait in the buffer, or both lose the same fields of
    rows."""
    if store.verdict in NOTHING_LEFT:
        return True
    return bool(buffer.verdict is store.verdict and buffer.fields and set(buffer.fields) <= set(store.fields))


def _partitions(topology: Shape) -> dict[str, int | None]:
    return {name: count for part in topology for name, count in part.get("internal", {}).items()}


def _outlives_a_run(store: Sequence[object]) -> bool:
    """Whether a task's store, as a shape describes it, has its own content that survives a run."""
    persistent, logged = store[4:6]
    source_topic = store[9] if len(store) > 9 and isinstance(store[9], str) else None
    return bool(source_topic is None and (persistent or logged))
