"""Writes the computed content of a store partition to its changelog: the last value of each key, and tombstones for
keys that an earlier run has left. Values that the changelog has already are not written again.

The stream time of a window store is later than all its entries if its last change was a deletion. A live run logs the
deletion, and a restore takes the stream time from it. A backfill has only the entries, so it writes a tombstone with
the stream time.

The changelog of a versioned store has every version, in the order of time, and nothing before: records cannot replace
those that an earlier run has left, so the hand-over creates the topic again.

The work runs where the executor works, and can be killed and repeated: its transactional id ends the transaction of a
former attempt, and the changelog is read after that. Large content goes to a database on the disk, so that memory is
bounded for any size (last_values.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass

from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.exchange.store_entries import entries_of
from pystreams.backfill.handover.last_values import LastValues, committed_records
from pystreams.broker.port import Broker, TransactionalProducer
from pystreams.clock import SystemClock
from pystreams.errors import StateError
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS, Headers
from pystreams.state.formats import pack_int64
from pystreams.state.sorted_files import TableFormat
from pystreams.state.value_forms import headers_apart
from pystreams.stream_time import NO_TIME
from pystreams.take_over.hand_over_record import read_record


@dataclass(frozen=True, slots=True)
class Published:
    """The changes of a changelog: records written, records unchanged, and tombstones."""

    written: int = 0
    unchanged: int = 0
    deleted: int = 0

    def __add__(self, other: Published) -> Published:
        return Published(
            self.written + other.written, self.unchanged + other.unchanged, self.deleted + other.deleted
        )

    def to_json(self) -> bytes:
        return json.dumps([self.written, self.unchanged, self.deleted]).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Published:
        return cls(*json.loads(text))


@dataclass(frozen=True, slots=True)
class StoreTimes:
    """The stream time (ms) of each partition of a store whose entries expire, and the format of their keys."""

    format: TableFormat
    ms: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PublishStore:
    """An ``executor.PartitionFunction`` for one store. ``attempt`` names the hand-over that it is part of; tombstones
    get the time ``cut_time_ms``; ``headers`` are those that the store's changelog has at every value."""

    open_broker: Callable[[], Broker]
    application_id: str
    store: str
    changelog: str
    attempt: str
    cut_time_ms: int
    headers: Headers = NO_HEADERS
    #: All versions are written, to a changelog that holds at most some of them.
    versions: bool = False
    #: Entries have headers before their values.
    with_headers: bool = False
    #: Of a store whose entries expire.
    times: StoreTimes | None = None

    def __call__(self, partition: int, batches: Iterator[Arrow]) -> bytes:
        """Raises ``StateError`` if another hand-over has begun since."""
        with ExitStack() as stack:
            broker = stack.enter_context(closing(self.open_broker()))
            producer = stack.enter_context(
                closing(
                    broker.transactional_producer(
                        "backfill", transactional_id(self.application_id, self.store, partition)
                    )
                )
            )
            # Checked now: from here on, the publisher of a later hand-over would end this transaction.
            require_attempt(broker, self.application_id, self.attempt)
            changelog = TopicPartition(self.changelog, partition)
            headers = None if self.with_headers else self.headers
            publishing = _Publishing(producer, changelog, self.cut_time_ms, headers)
            if self.versions:
                there = stack.enter_context(closing(committed_records(broker, changelog)))
                return publishing.append(batches, there).to_json()
            left = stack.enter_context(LastValues(broker, changelog, with_headers=self.with_headers))
            time = None if self.times is None else _TimeToTell(self.times.format, self.times.ms[partition])
            return publishing.replace(batches, left, time).to_json()


def transactional_id(application_id: str, store: str, partition: int) -> str:
    """The transactional id of a store partition's writer. A new writer with this id ends the old one's transaction."""
    return f"{application_id}-backfill-{store}-{partition}"


def require_attempt(broker: Broker, application_id: str, attempt: str) -> None:
    """Raises ``StateError`` if another hand-over has begun since this one."""
    with closing(broker.admin()) as admin:
        record = read_record(broker, admin, application_id, SystemClock())
    if record is None or record.attempt != attempt:
        raise StateError(
            f"another hand-over to {application_id} has begun meanwhile",
            where=broker.description,
            why="two hand-overs at the same time would mix their results",
            hint="wait until the other one has finished; if it does not finish, hand over again",
        )


class _TimeToTell:
    """Finds out whether the entries of a store partition show the store's time, as those who restore them see it."""

    def __init__(self, format: TableFormat, time_ms: int) -> None:
        self._format = format
        self._time_ms = time_ms
        self._shown_ms = NO_TIME

    def add(self, key: bytes) -> None:
        self._shown_ms = max(self._shown_ms, self._format.time_of(key))

    @property
    def tombstone(self) -> bytes | None:
        """The key of the tombstone to write; None: an entry is as late as the store's time. The key is not that of an
        entry, because all entries are earlier."""
        return self._format.empty_key_at(self._time_ms) if self._time_ms > self._shown_ms else None


class _Publishing:
    """One changelog partition at work."""

    def __init__(
        self,
        producer: TransactionalProducer,
        changelog: TopicPartition,
        cut_time_ms: int,
        headers: Headers | None,
    ) -> None:
        """``headers`` None: they stand before the values."""
        self._producer = producer
        self._changelog = changelog
        self._cut_time_ms = cut_time_ms
        self._headers = headers
        self._sent = 0

    def replace(self, batches: Iterator[Arrow], left: LastValues, time: _TimeToTell | None) -> Published:
        """Write the changes that lead from ``left``, the last values in the changelog, to the content of ``batches``.
        ``time`` None: the entries do not expire."""
        written = unchanged = deleted = 0
        for batch in batches:
            taken: dict[bytes, bytes | None] = {}
            for key, value, timestamp in entries_of(batch):
                assert value is not None, "only a versioned store keeps deletions"
                if time is not None:
                    time.add(key)
                last = left.get(key)
                if last is not None:
                    taken[key] = None
                if last is not None and last == pack_int64(timestamp) + value:
                    unchanged += 1
                else:
                    self._send(key, value, timestamp)
                    written += 1
            left.update(taken)
        for key in left:
            self._send(key, None, self._cut_time_ms)
            deleted += 1
        if time is not None and time.tombstone is not None:
            self._send(time.tombstone, None, self._cut_time_ms)
            deleted += 1
        self._producer.commit()
        return Published(written, unchanged, deleted)

    def append(
        self, batches: Iterator[Arrow], there: Iterator[tuple[list[bytes], list[bytes | None]]]
    ) -> Published:
        """Write the rest of ``batches`` after the records that a killed attempt has already written (``there``)."""
        written = unchanged = 0
        known = (pair for keys, packed in there for pair in zip(keys, packed, strict=True))
        for batch in batches:
            for key, value, timestamp in entries_of(batch):
                found = next(known, None)
                if found is None:
                    self._send(key, value, timestamp)
                    written += 1
                elif found == (key, None if value is None else pack_int64(timestamp) + value):
                    unchanged += 1
                else:
                    raise self._another_writer()
        if next(known, None) is not None:
            raise self._another_writer()
        self._producer.commit()
        return Published(written, unchanged)

    def _another_writer(self) -> StateError:
        return StateError(
            f"changelog {self._changelog} holds records that this hand-over did not write",
            why="the hand-over created the topic again, and another program has written to it since",
            hint="stop all instances of the application, then hand over again",
        )

    def _send(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        headers = NO_HEADERS
        if value is not None:
            headers, value = headers_apart(value) if self._headers is None else (self._headers, value)
        self._producer.send(*self._changelog, key, value, timestamp, headers)
        self._sent += 1
        limit = self._producer.transaction_records_max
        if limit is not None and self._sent % limit == 0:
            # Readers may see only a part of the records, because the hand-over is complete only when the log says so
            # later.
            self._producer.commit()
