"""Whether a topology can go on from what another one has stored, and what must be done before it does.

Asked before the client joins the group. What would be lost stops the start, unless somebody has accepted it; what a
store is to have from its former name is carried over (``carry_over``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pystreams.errors import ConfigError, TopologyError
from pystreams.take_over.last_run import LastRun, Shape, stores_only
from pystreams.topology.built import BuiltTopology
from pystreams.topology.difference import Change, Verdict, changes
from pystreams.topology.fingerprint import shape
from pystreams.topology.former_names import names_to_be, renamed, without_former_names

#: How many records of an internal topic nobody has processed yet.
Waiting: TypeAlias = Callable[[str], int]


#: Where nothing of what a store has can be used: it begins anew.
_NOTHING_LEFT = frozenset({Verdict.LOST, Verdict.REBUILT})


@dataclass(frozen=True, slots=True)
class TakeOver:
    """What becomes of stored data when a topology takes over from ``last``.

    ``dropped`` stores begin anew, or go; ``carried`` ones, by name, have the content of a former name from now on;
    of the ``accepted`` ones somebody has accepted what they lose. ``losses`` tell what that is, ``notes`` what else
    people may want to know.
    """

    last: LastRun
    topology: Shape
    dropped: tuple[str, ...] = ()
    carried: Mapping[str, str] = field(default_factory=dict)
    accepted: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def changes_data(self) -> bool:
        """Something must be done to topics before anybody starts."""
        return bool(self.dropped or self.carried or self.accepted or self.last.unfinished)

    def then(self) -> LastRun:
        """What holds when that is done."""
        left = without_stores(without_unfinished(self.last), self.dropped)
        names = {old: new for new, old in self.carried.items()}
        left = replace(
            left,
            topology=renamed(left.topology, names),
            earlier=tuple(renamed(one, names) for one in left.earlier),
            unfinished=None,
        )
        if not self.accepted:
            return left
        return replace(left.followed_by(self.topology), accepted=self.accepted)


def topology_as_kept(built: BuiltTopology) -> Shape:
    """A topology as it is kept: writing and reading changes nothing of it."""
    kept: Shape = json.loads(json.dumps(without_former_names(shape(built))))
    return kept


def without_unfinished(last: LastRun) -> LastRun:
    """What is left of a take-over that somebody has begun and not finished: what it was to drop is gone, what it was to
    carry over lies where it lay."""
    return without_stores(last, _dropped_before(last))


def _dropped_before(last: LastRun) -> tuple[str, ...]:
    return () if last.unfinished is None else last.unfinished.dropped


def without_stores(last: LastRun, dropped: Collection[str]) -> LastRun:
    """The same without what some stores have held."""
    if not dropped:
        return last
    names = _stores(last.topology) - set(dropped)
    topology = [
        {**part, "stores": [store for store in part["stores"] if store[0] in names]} for part in last.topology
    ]
    earlier = tuple(stores_only(one, _stores(one) - set(dropped)) for one in last.earlier)
    return replace(last, topology=topology, earlier=earlier)


def _stores(topology: Shape) -> set[str]:
    return {store[0] for part in topology for store in part["stores"]}


def plan_take_over(
    last: LastRun, built: BuiltTopology, accepted: Collection[str], where: str, waiting: Waiting
) -> TakeOver:
    """Compare what ran with what is to run.

    ``accepted`` are the stores that may lose what they have; ``where`` is for errors. Raises ``TopologyError`` if
    another one would lose something, ``ConfigError`` if one of them would not.
    """
    before, now = without_unfinished(last), shape(built)
    names = names_to_be(before.topology, now)
    found = compared(before, now)
    losing = _losing_stores(before, now, found) | _losing_topics(before, now, found, waiting)
    of_stores = {name: change for name, change in losing.items() if change.kind == "store"}
    _check_accepted(accepted, of_stores, last, where)
    refused = [change for name, change in losing.items() if name not in accepted]
    if refused:
        raise _refusal(refused, built.application_id, where)
    carried = {
        new: old
        for old, new in names.items()
        if new not in of_stores or of_stores[new].verdict not in _NOTHING_LEFT
    }
    former = {new: old for old, new in names.items()}
    begun_anew = [
        former.get(name, name) for name, change in of_stores.items() if change.verdict in _NOTHING_LEFT
    ]
    return TakeOver(
        last,
        topology_as_kept(built),
        (*begun_anew, *(name for name in _stores(now) if name in last.left_over and name not in carried)),
        carried,
        # Of a start that was killed what it has dropped is accepted, too.
        (*of_stores, *(name for name in _dropped_before(last) if name in accepted)),
        tuple(map(_told, of_stores.values())),
        tuple(_told(change) for change in found if _is_news(change)),
    )


def compared(before: LastRun, now: Shape) -> list[Change]:
    """What becomes of everything, also of what earlier versions have written and nobody has written anew since."""
    found = {(change.kind, change.name): change for change in changes(before.topology, now)}
    for earlier in before.earlier:
        for change in changes(earlier, now):
            # What else it has written was lost, or accepted, when the next version came.
            place = change.kind, change.name
            if change.kind == "store" and change.verdict is Verdict.REBUILT and not found[place].loses:
                why = f"{change.why} (an earlier version has written some of its content)"
                found[place] = replace(change, why=why)
    return list(found.values())


def _losing_stores(before: LastRun, now: Shape, found: Sequence[Change]) -> dict[str, Change]:
    """By name the stores that would lose something that outlives a run."""
    held = {store[0]: store for part in before.topology if "internal" in part for store in part["stores"]}
    former = {new: old for old, new in names_to_be(before.topology, now).items()}
    losing: dict[str, Change] = {}
    for change in found:
        told = held.get(former.get(change.name, change.name))
        if change.kind == "store" and change.loses and told is not None and _outlives_a_run(told):
            losing[change.name] = change
    return losing


def _losing_topics(
    before: LastRun, now: Shape, found: Sequence[Change], waiting: Waiting
) -> dict[str, Change]:
    """By name the repartition topics that cannot stay as they are, or whose waiting records would be lost."""
    partitions_were, partitions_are = _partitions(before.topology), _partitions(now)
    losing: dict[str, Change] = {}
    for change in found:
        if change.kind != "repartition topic" or not (change.loses or change.verdict is Verdict.GONE):
            continue
        if change.verdict is not Verdict.GONE and partitions_were[change.name] != partitions_are[change.name]:
            losing[change.name] = change
        elif count := waiting(change.name):
            why = f"{count} records wait in it; {change.why}" if change.why else f"{count} records wait in it"
            losing[change.name] = replace(change, why=why)
    return losing


def _partitions(topology: Shape) -> dict[str, int | None]:
    return {name: count for part in topology for name, count in part.get("internal", {}).items()}


def _outlives_a_run(told: Sequence[object]) -> bool:
    """Whether the task's store that a shape tells of has content of its own that another run finds."""
    persistent, logged = told[4:6]
    source_topic = told[9] if len(told) > 9 and isinstance(told[9], str) else None
    return bool(source_topic is None and (persistent or logged))


def _check_accepted(
    accepted: Collection[str], losing: Mapping[str, Change], last: LastRun, where: str
) -> None:
    """Who accepts what is not lost has mistaken the name, or the program. Who has accepted it before may say it again:
    a setting stays where it is when the application is started next, also after a start that was killed on the way."""
    wrong = sorted(set(accepted).difference(losing, last.accepted, _dropped_before(last)))
    if not wrong:
        return
    raise ConfigError(
        f"accept_loss names what loses nothing: {', '.join(wrong)}",
        where=where,
        why=f"content is lost of {', '.join(sorted(losing))}" if losing else "no store loses any content",
        hint="name only stores that lose content (pystreams diff shows them), or leave it out",
    )


def _refusal(losing: Sequence[Change], application_id: str, where: str) -> TopologyError:
    stores = [change for change in losing if change.kind == "store"]
    ways = []
    if stores and len(stores) == len(losing):
        options = " ".join(f"--accept-loss {change.name}" for change in stores)
        ways.append(f"go on without what is lost: {options} (or the setting accept_loss)")
    if any(change.verdict is Verdict.LOST for change in stores):
        ways.append('keep it, where a store only has another name now: name="new name", was="old name"')
    if any(change.kind != "store" and "wait" in change.why for change in losing):
        ways.append("let the old version catch up first (run it with --until-caught-up)")
    ways.append("process everything anew: pystreams reset")
    return TopologyError(
        f"stored content would be lost: {', '.join(change.name for change in losing)}",
        where=f"application {application_id}, {where}",
        why="; ".join(_told(change) for change in losing),
        hint="; or ".join(ways),
    )


def _is_news(change: Change) -> bool:
    return change.verdict in (Verdict.MIXED, Verdict.UNKNOWN) or bool(
        change.verdict is Verdict.KEPT and change.why
    )


def _told(change: Change) -> str:
    why = f": {change.why}" if change.why else ""
    return f"{change.kind} {change.name} {change.verdict.value}{why}"
