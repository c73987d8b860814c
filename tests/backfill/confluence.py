"""What of an application's result is the same in whatever order records arrive behind a repartition (E4).

Step by step through a scenario: which records a step gives for certain (``EXACT``: these, in this order;
``RECORDS``: these, in any order), where only the last value of each key is certain (``LAST``), and where nothing is
(``OPEN``). What is not known to be certain counts as open: an aggregator that is neither the same in any order nor has
an inverse, a join behind a repartition, a filter behind an aggregation, a processor with state.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from enum import IntEnum
from typing import Any, NamedTuple

from pystreams.dsl.table import KTable
from tests.conformance.builder import ScenarioBuilder

Json = Any


class Certain(IntEnum):
    """How much is certain of what a step gives; a step behind several has the least of them."""

    OPEN = 0
    LAST = 1
    RECORDS = 2
    EXACT = 3


class Settled(NamedTuple):
    """Stores whose content is certain (windowed ones only if no record came too late), topics with certain records, and
    topics with a certain last value for each key."""

    stores: frozenset[str]
    windowed_stores: frozenset[str]
    records: frozenset[str]
    last_values: frozenset[str]


class _Step(NamedTuple):
    certain: Certain
    #: Its records' keys are new: what needs them by key puts a repartition topic in between.
    rekeyed: bool = False
    windowed: bool = False


#: The same result in any order of records.
_IN_ANY_ORDER = {"aggregate": {"max", "min", "len"}, "reduce": {"max", "min"}}
_STATELESS_PROCESSORS = {"pass", "fan", "add_header", "drop_headers", "shift_ts", "throw_if"}


def settled(scenario: Json, held_back: AbstractSet[str] = frozenset()) -> Settled:
    """What is certain of a scenario's result, caches off. Of the stores that are ``held_back`` nothing is: what they
    still have depends on how far stream time has come."""
    return _Reading(scenario, held_back).read()


class _Reading:
    def __init__(self, scenario: Json, held_back: AbstractSet[str]) -> None:
        self._held_back = held_back
        self._steps = scenario["steps"]
        builder = ScenarioBuilder(scenario["config"])
        builder.build(self._steps)
        self._built = builder.results
        self._known: dict[str, _Step] = {}
        self._stores: dict[str, _Step] = {}
        self._sinks: dict[str, Certain] = {}

    def read(self) -> Settled:
        for step in self._steps:
            handle: Callable[[Json], None] | None = getattr(self, f"_{step['op']}", None)
            if handle is not None:
                handle(step)
            elif "id" in step:
                self._put(step, Certain.OPEN)
        stores = {name for name, one in self._stores.items() if one.certain > Certain.OPEN}
        windowed = {name for name in stores if self._stores[name].windowed}
        return Settled(
            frozenset(stores - windowed),
            frozenset(windowed),
            frozenset(topic for topic, certain in self._sinks.items() if certain >= Certain.RECORDS),
            frozenset(topic for topic, certain in self._sinks.items() if certain == Certain.LAST),
        )

    def _put(self, step: Json, certain: Certain, *, rekeyed: bool = False, windowed: bool = False) -> None:
        ref = self._built[step["id"]].ref
        store = ref._store.name if isinstance(ref, KTable) and ref._store is not None else None
        if store in self._held_back:
            certain = Certain.OPEN
        self._known[step["id"]] = found = _Step(certain, rekeyed, windowed)
        if store is not None:
            self._stores[store] = found

    def _from(self, step: Json, field: str = "from") -> _Step:
        return self._known[step[field]]

    # Sources and sinks

    def _source(self, step: Json) -> None:
        self._put(step, Certain.EXACT)

    _stream = _table = _source

    def _to(self, step: Json) -> None:
        if "topic" in step:
            certain = self._from(step).certain
            if step["topic"] in self._sinks:
                # Of two writers nobody knows who is last.
                least = min(certain, self._sinks[step["topic"]])
                certain = Certain.RECORDS if least >= Certain.RECORDS else Certain.OPEN
            self._sinks[step["topic"]] = certain

    # One by one

    def _one_for_one(self, step: Json) -> None:
        self._put(step, *self._from(step)[:1], rekeyed=self._from(step).rekeyed)

    _map_values = _peek = _one_for_one

    def _some(self, step: Json) -> None:
        """Whether a record passes depends on it: of the last value alone nothing follows."""
        source = self._from(step)
        self._put(step, _records(source.certain), rekeyed=source.rekeyed)

    _filter = _filter_not = _flat_map_values = _some

    def _rekey(self, step: Json) -> None:
        self._put(step, _records(self._from(step).certain), rekeyed=True)

    _map = _flat_map = _select_key = _unwindow = _rekey

    def _to_stream(self, step: Json) -> None:
        (self._rekey if "key_fn" in step else self._one_for_one)(step)

    def _merge(self, step: Json) -> None:
        one, other = self._from(step), self._from(step, "with")
        certain = min(one.certain, other.certain, Certain.RECORDS)
        self._put(step, _records(certain), rekeyed=one.rekeyed or other.rekeyed)

    def _split(self, step: Json) -> None:
        source = self._from(step)
        for branch in (*step["branches"], step.get("default")):
            if branch is not None:
                self._put(branch, _records(source.certain), rekeyed=source.rekeyed)

    def _repartition(self, step: Json) -> None:
        self._put(step, _shuffled(self._from(step).certain))

    def _process(self, step: Json) -> None:
        source = self._from(step)
        stateless = step["processor"].partition(":")[0] in _STATELESS_PROCESSORS
        certain = _records(source.certain) if stateless else Certain.OPEN
        self._put(step, certain, rekeyed=source.rekeyed or step["op"] == "process")

    _process_values = _process

    # By key

    def _group_by_key(self, step: Json) -> None:
        source = self._from(step)
        self._put(step, _shuffled(source.certain) if source.rekeyed else source.certain)

    def _group_by(self, step: Json) -> None:
        certain = self._from(step).certain
        if self._built[step["id"]].kind == "gtable" and certain != Certain.EXACT:
            # A value that a table has in one order only would leave a group behind.
            certain = Certain.OPEN
        self._put(step, _shuffled(certain))

    def _windowed_by(self, step: Json) -> None:
        plain = step["windows"]["type"] in {"tumbling", "hopping"} and step.get("emit") != "close"
        self._put(step, self._from(step).certain if plain else Certain.OPEN, windowed=True)

    def _aggregated(self, step: Json) -> None:
        source, kind = self._from(step), self._built[step["from"]].kind
        self._put(step, self._of_aggregation(step, source.certain, kind), windowed=source.windowed)

    _count = _reduce = _aggregate = _aggregated

    def _of_aggregation(self, step: Json, certain: Certain, kind: str) -> Certain:
        if certain != Certain.RECORDS:
            return certain if certain == Certain.EXACT else Certain.OPEN
        if step["op"] == "count":
            return Certain.LAST
        function = step["fn"].partition(":")[0]
        if kind == "gtable":
            inverse = step["op"] == "aggregate" and (function, step["sub_fn"]) == ("len", "sub_len")
            return Certain.LAST if inverse else Certain.OPEN
        return Certain.LAST if function in _IN_ANY_ORDER[step["op"]] else Certain.OPEN

    def _to_table(self, step: Json) -> None:
        source = self._from(step)
        exact = source.certain == Certain.EXACT and not source.rekeyed
        self._put(step, Certain.EXACT if exact else Certain.OPEN)

    _global_table = _source

    def _join(self, step: Json) -> None:
        if self._built[step["with"]].kind == "global":
            # Its content is the same for all records.
            self._some(step)
            return
        one, other = self._from(step), self._from(step, "with")
        exact = one.certain == other.certain == Certain.EXACT and not (one.rekeyed or other.rekeyed)
        self._put(step, Certain.EXACT if exact else Certain.OPEN)

    _left_join = _join


def _records(certain: Certain) -> Certain:
    """Behind a step that may leave out, multiply or re-key."""
    return Certain.OPEN if certain == Certain.LAST else certain


def _shuffled(certain: Certain) -> Certain:
    """Behind a repartition topic that several tasks write."""
    return min(_records(certain), Certain.RECORDS)
