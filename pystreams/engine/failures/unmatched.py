"""Joins that never find a match: probably their keys, or the table or stream that they look in, are not those that the
program means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from pystreams.dsl.operators.partners import Misses, Partner
from pystreams.engine.failures.origins import Origins
from pystreams.metrics import names
from pystreams.metrics.registry import Counter, Metrics

#: A join is only reported if at least this many records have found no match.
UNMATCHED_MIN: Final = 10


class Unmatched(NamedTuple):
    """The committed records of a join that found no match. ``where`` is the place of its function, ``partner`` a text
    for the match that they look for. If any record has found a match (``found``), ``records`` of some joins counts only
    the records before it."""

    step: str
    where: str
    partner: Partner
    records: int = 0
    found: bool = False

    @classmethod
    def from_json(cls, row: Sequence[Any]) -> Unmatched:
        """The counts from the lists that ``json`` has made of them."""
        step, where, partner, records, found = row
        return cls(step, where, Partner(*partner), records, found)

    def and_more(self, records: int, *, found: bool) -> Unmatched:
        """A copy to which these records are added."""
        return self._replace(records=self.records + records, found=self.found or found)

    @property
    def as_fields(self) -> dict[str, object]:
        """The fields for programs: the step, its place, the number of records, what they looked for, and a hint."""
        return {
            "step": self.step,
            "where": self.where,
            "records": self.records,
            "partner": self.partner.sought,
            "hint": self.partner.hint,
        }

    @property
    def text(self) -> str:
        """``join enrich in priced (app.py:12): none of 12 records found a row in table prices; look whether ...``."""
        step = f"{self.step} in {self.where}" if self.where else self.step
        return f"join {step}: none of {self.records:,} {self.partner.found}; look {self.partner.hint}"


def add_up_unmatched(counts: Iterable[Unmatched]) -> list[Unmatched]:
    """One element for each join."""
    by_step: dict[str, Unmatched] = {}
    for one in counts:
        other = by_step.get(one.step)
        by_step[one.step] = one if other is None else other.and_more(one.records, found=one.found)
    return list(by_step.values())


def never_found(joins: Iterable[Unmatched]) -> list[Unmatched]:
    """The joins in which no record has found a match, and many have looked for one."""
    return [one for one in joins if not one.found and one.records >= UNMATCHED_MIN]


def unmatched_text(joins: Sequence[Unmatched]) -> str:
    """One line that names these joins; empty if there are none."""
    return "; ".join(one.text for one in joins)


class _Join:
    """One join of a task. ``counted`` is the number of its misses that were counted at earlier commits."""

    __slots__ = ("counted", "counter", "misses", "unmatched")

    def __init__(self, misses: Misses, unmatched: Unmatched, counter: Counter | None) -> None:
        self.misses = misses
        self.unmatched = unmatched
        self.counter = counter
        self.counted = 0


class JoinCounts:
    """The joins of one task. Their misses are counted with each commit."""

    def __init__(self, origins: Origins, metrics: Metrics, **tags: object) -> None:
        self._origins = origins
        self._metrics = metrics
        self._tags = tags
        self._joins: list[_Join] = []

    def add(self, step: str, misses: Misses, partner: Partner) -> None:
        """Count the ``misses`` of a step from now on."""
        counter = (
            self._metrics.counter(names.UNMATCHED_RECORDS, **self._tags, processor_node_id=step)
            if misses.every
            else None
        )
        self._joins.append(_Join(misses, Unmatched(step, self._origins.function(step), partner), counter))

    def commit(self) -> list[Unmatched]:
        """The work so far is committed. Returns the records without a match since the last commit."""
        return [self._since_last(join) for join in self._joins]

    @staticmethod
    def _since_last(join: _Join) -> Unmatched:
        missed, join.counted = join.misses.records - join.counted, join.misses.records
        if join.counter is not None:
            join.counter.add(missed)
        return join.unmatched.and_more(missed, found=join.misses.found)
