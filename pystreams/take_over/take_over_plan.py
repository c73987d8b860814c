"""Decides whether a topology can take over the stored data of another one, and which changes this requires first.

This runs before the client joins the group. If content would be lost, the start is refused, unless the user has
accepted the loss. The content of a renamed store is copied from its former name (``carry_over``).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pystreams.errors import ConfigError, TopologyError
from pystreams.take_over.last_run import LastRun, Shape, stores_only
from pystreams.take_over.losses import NOTHING_LEFT, Waiting, losing_stores, losing_topics, lost_with
from pystreams.take_over.ways_on import ways_on, what_waits
from pystreams.topology.built import BuiltTopology
from pystreams.topology.difference import Change, Verdict, changes
from pystreams.topology.fingerprint import shape
from pystreams.topology.former_names import names_to_be, renamed, without_former_names


@dataclass(frozen=True, slots=True)
class TakeOver:
    """The changes of stored data when a topology takes over from ``last``.

    ``dropped`` stores start empty, or are removed; ``carried`` maps renamed stores to the former names whose content
    they get; the user has accepted the losses of the ``accepted`` stores. ``losses`` describes the lost content,
    ``notes`` other changes.
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
        """Whether topics must be changed before any member starts."""
        return bool(self.dropped or self.carried or self.accepted or self.last.unfinished)

    def then(self) -> LastRun:
        """The record of the last run after these changes."""
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
    """A topology as it is stored: in a form that writing and reading do not change."""
    kept: Shape = json.loads(json.dumps(without_former_names(shape(built))))
    return kept


def without_unfinished(last: LastRun) -> LastRun:
    """The record without an unfinished take-over: the stores that it drops are regarded as gone, and the content that
    it carries over as still in its old place."""
    return without_stores(last, _dropped_before(last))


def _dropped_before(last: LastRun) -> tuple[str, ...]:
    return () if last.unfinished is None else last.unfinished.dropped


def without_stores(last: LastRun, dropped: Collection[str]) -> LastRun:
    """The record without the content of some stores."""
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
    """Compare the topology that ran with the one that starts.

    ``accepted`` are the stores that may lose their content; ``where`` is for errors. Raises ``TopologyError`` if
    another store would lose content, ``ConfigError`` if an accepted one would not.
    """
    before, now = without_unfinished(last), shape(built)
    names = names_to_be(before.topology, now)
    found = compared(before, now)
    of_stores = losing_stores(before, now, found)
    losing = of_stores | losing_topics(before, now, found, waiting)
    buffers = lost_with(of_stores, before.topology, now)
    _check_accepted(accepted, of_stores.keys() - buffers.keys(), buffers, last, where)
    refused = [
        change
        for name, change in losing.items()
        if name not in accepted and buffers.get(name) not in accepted
    ]
    if refused:
        ways = ways_on(refused, buffers, before.topology, now)
        raise _refusal(refused, buffers, ways, f"application {built.application_id}, {where}")
    carried = {
        new: old
        for old, new in names.items()
        if new not in of_stores or of_stores[new].verdict not in NOTHING_LEFT
    }
    former = {new: old for old, new in names.items()}
    begun_anew = [
        former.get(name, name) for name, change in of_stores.items() if change.verdict in NOTHING_LEFT
    ]
    return TakeOver(
        last,
        topology_as_kept(built),
        (*begun_anew, *(name for name in _stores(now) if name in last.left_over and name not in carried)),
        carried,
        # Stores that a killed start has dropped count as accepted.
        (*of_stores, *(name for name in _dropped_before(last) if name in accepted)),
        tuple(map(_sentence, of_stores.values())),
        tuple(_sentence(change) for change in found if _is_news(change)),
    )


def compared(before: LastRun, now: Shape) -> list[Change]:
    """All changes, also of content that earlier versions have written and no later version has rewritten."""
    found = {(change.kind, change.name): change for change in changes(before.topology, now)}
    for earlier in before.earlier:
        for change in changes(earlier, now):
            # The rest of its content was lost, or its loss was accepted, when the next version started.
            place = change.kind, change.name
            if change.kind == "store" and change.verdict is Verdict.REBUILT and not found[place].loses:
                why = f"{change.why} (an earlier version has written some of its content)"
                found[place] = replace(change, why=why)
    return list(found.values())


def _check_accepted(
    accepted: Collection[str],
    losing: Collection[str],
    buffers: Collection[str],
    last: LastRun,
    where: str,
) -> None:
    """Raise an error if the user accepts a loss that does not happen, because the name or the program is wrong. A loss
    that was accepted before may be accepted again, because the setting may still exist at the next start, or after a
    start that was killed. ``buffers`` lose content together with one of the ``losing`` stores, and may be named,
    too."""
    wrong = sorted(set(accepted).difference(losing, buffers, last.accepted, _dropped_before(last)))
    if not wrong:
        return
    raise ConfigError(
        f"accept_loss names stores that lose nothing: {', '.join(wrong)}",
        where=where,
        why=f"the stores that lose content are {', '.join(sorted(losing))}"
        if losing
        else "no store loses any content",
        hint="name only stores that lose content (pystreams diff shows them), or leave it out",
    )


def _refusal(
    losing: Sequence[Change], buffers: Mapping[str, str], ways: Sequence[str], where: str
) -> TopologyError:
    """The error for losses that the user has not accepted. ``buffers`` are lost together with the stores to which they
    are mapped, and need no separate acceptance."""
    shown = [change for change in losing if change.name not in buffers]
    return TopologyError(
        f"stored content would be lost: {', '.join(change.name for change in shown)}",
        where=where,
        why="; ".join(_sentence(change) + what_waits(change.name, buffers) for change in shown),
        hint="; or ".join(ways),
    )


def _is_news(change: Change) -> bool:
    return change.verdict in (Verdict.MIXED, Verdict.UNKNOWN) or bool(
        change.verdict is Verdict.KEPT and change.why
    )


def _sentence(change: Change) -> str:
    why = f": {change.why}" if change.why else ""
    return f"{change.kind} {change.name} {change.verdict.value}{why}"
