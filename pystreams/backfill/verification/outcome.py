"""The outcome of a verification: the compared content, and the differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias

from pystreams.backfill.compute.backfill_result import ChangelogEntry
from pystreams.backfill.compute.summary import ResultSummary, Summarised
from pystreams.ids import TopicPartition
from pystreams.plural import counted

#: How an entry differs: other values, the same value with another timestamp, or only one side has the key.
DifferenceKind: TypeAlias = Literal["value", "timestamp", "only live", "only history"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A key whose entries differ. ``live`` and ``history`` are the entries of each side: none, one, or several where a
    store keeps several records under one key."""

    kind: DifferenceKind
    partition: int
    live: tuple[ChangelogEntry, ...]
    history: tuple[ChangelogEntry, ...]

    @property
    def key(self) -> bytes:
        """The key in the changelog, of a window or session with its times."""
        return (self.live or self.history)[0].key


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """How many keys (of a versioned store: versions) are equal, have another value, have only another timestamp, or are
    only on one side; and those that were not compared, because the application has changed them ``since``, or because
    the log may have deleted them since (``expired``)."""

    equal: int = 0
    value: int = 0
    timestamp: int = 0
    only_live: int = 0
    only_history: int = 0
    since: int = 0
    expired: int = 0

    @property
    def different(self) -> int:
        return self.value + self.timestamp + self.only_live + self.only_history

    @property
    def compared(self) -> int:
        return self.equal + self.different

    @property
    def text(self) -> str:
        """``5,839 keys compared, 2,000 with another value``: without zeros."""
        each = {
            "equal": self.equal if self.different else 0,
            "with another value": self.value,
            "with another timestamp": self.timestamp,
            "only live": self.only_live,
            "only in history": self.only_history,
            "changed since": self.since,
            "expired": self.expired,
        }
        numbers = (f"{n:,} {what}" for what, n in each.items() if n)
        return ", ".join([f"{counted(self.compared, 'key')} compared", *numbers])

    def __add__(self, other: StoreCounts) -> StoreCounts:
        return StoreCounts(
            **{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)}
        )


@dataclass(frozen=True, slots=True, repr=False)
class StoreVerified(Summarised):
    """The comparison of a store. ``differences`` are the first ones, by partition and key. ``may_differ``: why a right
    result may have other entries than the live one; empty if nothing is known that permits it. A notebook shows the
    counts."""

    counts: StoreCounts
    differences: tuple[Difference, ...] = ()
    may_differ: tuple[str, ...] = ()

    def _summary(self) -> ResultSummary:
        title = "Different" if self.counts.different else "Equal"
        return ResultSummary(f"{title}: {self.counts.text}", [], _may_differ("", self))


@dataclass(frozen=True, slots=True, repr=False)
class Verified(Summarised):
    """The comparison of an application with its history, which ends before ``offsets``.

    ``left_out`` are stores that no changelog has, each with the reason. ``atomic``: the application commits changelogs
    together with offsets; otherwise changelogs may be ahead of the offsets after a crash. A notebook shows the counts
    of each store.
    """

    application_id: str
    offsets: Mapping[TopicPartition, int]
    stores: Mapping[str, StoreVerified] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    atomic: bool = True

    @property
    def counts(self) -> StoreCounts:
        """Those of all stores."""
        return sum((one.counts for one in self.stores.values()), StoreCounts())

    @property
    def equal(self) -> bool:
        """Whether no compared key differs."""
        return not self.counts.different

    def _summary(self) -> ResultSummary:
        counts = self.counts
        differs = f"Different: {counts.different:,} of {counted(counts.compared, 'key')}"
        found = f"Equal: {counted(counts.compared, 'key')} compared" if self.equal else differs
        return ResultSummary(
            f"Verified {self.application_id}. {found}",
            [
                *(("store", name, one.counts.text) for name, one in self.stores.items()),
                *(("not compared", name, why) for name, why in self.left_out.items()),
            ],
            [remark for name, one in self.stores.items() for remark in _may_differ(f" in {name}", one)],
        )


def _may_differ(where: str, one: StoreVerified) -> list[str]:
    """Sentences, if something differs."""
    if not one.counts.different:
        return []
    return [f"A right result may differ{where}: {why}" for why in one.may_differ]
