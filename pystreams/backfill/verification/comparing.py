"""Compares one store partition: the content computed from history with the content of the changelog.

It runs where the executor works, one partition at a time; the content of a large partition goes to the disk.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import Final

from pystreams.backfill.application import Application
from pystreams.backfill.columns.parts import store_of
from pystreams.backfill.exchange.bounded_map import BoundedMap
from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.exchange.store_entries import StoreEntry, entries_of
from pystreams.backfill.local_disks import local_folder
from pystreams.backfill.verification.entry_form import EntryForm, gather
from pystreams.backfill.verification.live_entries import MEMORY_BYTES, LiveEntries
from pystreams.backfill.verification.outcome import Difference, DifferenceKind, StoreCounts
from pystreams.broker.port import Broker
from pystreams.ids import TopicPartition
from pystreams.stream_time import NO_TIME

#: The number of places that are removed at once, once both sides were compared there.
_REMOVED: Final = 10_000


@dataclass(frozen=True, slots=True)
class CompareStore:
    """An ``executor.PartitionFunction`` for one store; its result is that of ``partition_outcome``.

    ``ends`` are the offsets of the changelog's partitions up to which it is compared. The log may have deleted records
    with timestamps before ``deleted_before_ms``. Of the differences, the first ``limit`` are kept.
    """

    open_broker: Callable[[], Broker]
    application: Application
    store: str
    changelog: str
    ends: Mapping[int, int]
    deleted_before_ms: int
    limit: int

    def __call__(self, partition: int, batches: Iterator[Arrow]) -> bytes:
        loaded = self.application.load()
        form = EntryForm(store_of(loaded, self.store), frozenset(loaded.built.internal_topics))
        changelog = TopicPartition(self.changelog, partition)
        with (
            closing(self.open_broker()) as broker,
            LiveEntries(broker, changelog, self.ends[partition], form) as live,
            BoundedMap(local_folder(partition), MEMORY_BYTES) as gathered,
        ):
            comparison = _Comparison(form, live, partition, self.deleted_before_ms, self.limit)
            rows = comparison.not_expired(chain.from_iterable(entries_of(batch) for batch in batches))
            if form.by_key:
                history = ((key, form.content(value, timestamp)) for key, value, timestamp in rows)
                comparison.compare(history)
            else:
                gather(form, rows, gathered)
                comparison.compare(gathered.items())
            return pickle.dumps((comparison.counts, comparison.differences))


def partition_outcome(packed: bytes) -> tuple[StoreCounts, list[Difference]]:
    """The counts and the first differences of a partition."""
    found: tuple[StoreCounts, list[Difference]] = pickle.loads(packed)  # noqa: S301 - the executor's own bytes
    return found


class _Comparison:
    """The two sides of one partition."""

    def __init__(
        self, form: EntryForm, live: LiveEntries, partition: int, deleted_before_ms: int, limit: int
    ) -> None:
        self._form = form
        self._live = live
        self._partition = partition
        self._deleted_before_ms = deleted_before_ms
        self._limit = limit
        self._observed_ms = live.observed_ms
        self._counted: Counter[str] = Counter()
        self.differences: list[Difference] = []

    @property
    def counts(self) -> StoreCounts:
        return StoreCounts(**self._counted)

    def not_expired(self, rows: Iterator[StoreEntry]) -> Iterator[StoreEntry]:
        """The entries of history, without windows that the live store does not show any more."""
        for key, value, timestamp in rows:
            if self._form.expires:
                self._observed_ms = max(self._observed_ms, self._form.time_of(key) or NO_TIME)
                if self._expired(key):
                    continue
            yield key, value, timestamp

    def compare(self, history: Iterator[tuple[bytes, bytes]]) -> None:
        """Compare the contents of all places; those of history are given."""
        removed: dict[bytes, bytes | None] = {}
        for (place, content), following in _with_next(history):
            found = self._live.content.get(place)
            self._compare_place(place, found, content, following)
            removed[place] = None
            if len(removed) == _REMOVED:
                self._live.content.update(removed)
                removed = {}
        self._live.content.update(removed)
        for place, content in self._live.content.items():
            if not (self._form.expires and self._expired(self._form.key_of(place))):
                self._count_or_differ(place, content, None)

    def _expired(self, key: bytes) -> bool:
        time_ms = self._form.time_of(key)
        return time_ms is not None and time_ms <= self._observed_ms - self._form.spec.retention_ms

    def _compare_place(
        self, place: bytes, live: bytes | None, history: bytes, following: bytes | None
    ) -> None:
        """``following`` is the next place of history."""
        if live is None and self._deleted(place, history, following):
            self._counted["expired"] += 1
        else:
            self._count_or_differ(place, live, history)

    def _count_or_differ(self, place: bytes, live: bytes | None, history: bytes | None) -> None:
        form = self._form
        if self._live.changed_since(place):
            self._counted["since"] += 1
        elif live is None:
            self._differ("only history", place, live, history)
        elif history is None:
            self._differ("only live", place, live, history)
        elif form.equal(live, history):
            self._counted["equal"] += 1
        else:
            same = form.same_values(live, history)
            self._differ("timestamp" if same else "value", place, live, history)

    def _deleted(self, place: bytes, history: bytes, following: bytes | None) -> bool:
        """Whether the log may have deleted an entry that only history has."""
        form = self._form
        if not form.versioned:
            return form.written_ms(history) < self._deleted_before_ms
        key = form.key_of(place)
        if following is not None and form.key_of(following) == key:
            # Compaction leaves the last record of each key.
            return True
        return form.is_deletion(history) and not self._live.has_versions(key)

    def _differ(self, kind: DifferenceKind, place: bytes, live: bytes | None, history: bytes | None) -> None:
        self._counted[kind.replace(" ", "_")] += 1
        if len(self.differences) < self._limit:
            form = self._form
            self.differences.append(
                Difference(kind, self._partition, form.entries(place, live), form.entries(place, history))
            )


def _with_next(
    pairs: Iterator[tuple[bytes, bytes]],
) -> Iterator[tuple[tuple[bytes, bytes], bytes | None]]:
    """Each pair with the first element of the next one; None after the last."""
    last: tuple[bytes, bytes] | None = None
    for pair in pairs:
        if last is not None:
            yield last, pair[0]
        last = pair
    if last is not None:
        yield last, None
