"""How the entries of a kind of store are identified, and which part of them is compared.

Each entry has a *place*. In most stores this is its key; of a version it is key and time. Some stores put a number at
the end of keys, so that they can hold several records of one key and time. This number depends on how many records
came before, so there the place is the key without it, and has all of these records in their order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from struct import error
from typing import Final

from pystreams.backfill.compute.backfill_result import ChangelogEntry
from pystreams.backfill.exchange.bounded_map import BoundedMap
from pystreams.backfill.exchange.store_entries import StoreEntry
from pystreams.errors import StateCorruptedError
from pystreams.serde import BYTES
from pystreams.state.formats import TIMESTAMP_BYTES, pack_int64, unpack_int64
from pystreams.state.sorted_files import TableFormat
from pystreams.state.spec import EXPIRING_KINDS, StoreSpec
from pystreams.state.stores.buffer_value import unpacked
from pystreams.state.value_forms import headers_apart

#: The number at the end of keys in stores that hold several records of one key and time.
_NUMBER_BYTES: Final = 4
_LENGTH_BYTES: Final = 4
#: Before a version's value: there is one, or none.
_VALUE, _DELETED = b"\x01", b"\x00"
#: The number of changes that are gathered before they are stored.
_GATHERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class EntryForm:
    """The form of a store's entries. ``internal`` are the application's repartition topics: the offsets that a buffer
    keeps of their records are not promised."""

    spec: StoreSpec
    internal: Collection[str] = frozenset()

    @property
    def versioned(self) -> bool:
        return self.spec.kind == "versioned"

    @property
    def numbered(self) -> bool:
        """Whether keys end in a number."""
        return self.spec.kind == "join_buffer" or self.spec.retain_duplicates

    @property
    def by_key(self) -> bool:
        """Whether the place of an entry is its key."""
        return not (self.versioned or self.numbered)

    @property
    def timed(self) -> bool:
        """Whether the store keeps timestamps; others only have those of their changelog's records."""
        return self.spec.form.timestamped

    @property
    def expires(self) -> bool:
        """Whether entries expire with the store's time."""
        return self.spec.kind in EXPIRING_KINDS and self.spec.retention_ms > 0

    @property
    def of_bytes(self) -> StoreSpec:
        """The store with keys and values as they are written."""
        return replace(self.spec, key_serde=BYTES, value_serde=BYTES)

    def time_of(self, key: bytes) -> int | None:
        """The time by which an entry expires (ms); None for a key without a time, which is not the application's."""
        try:
            return TableFormat.of(self.spec).time_of(key)
        except error:
            return None

    def place(self, key: bytes, timestamp: int) -> bytes:
        """The place of an entry. In the order of places, all versions of a key are together, by time."""
        if self.versioned:
            return len(key).to_bytes(_LENGTH_BYTES, "big") + key + pack_int64(timestamp)
        return key[:-_NUMBER_BYTES] if self.numbered else key

    def key_of(self, place: bytes) -> bytes:
        """The key of the entries at a place."""
        if self.versioned:
            return place[_LENGTH_BYTES:-TIMESTAMP_BYTES]
        return place + bytes(_NUMBER_BYTES) if self.numbered else place

    def content(self, value: bytes | None, timestamp: int) -> bytes:
        """An entry at its place: timestamp and value; of a version the value, or that there is none."""
        if self.versioned:
            return _DELETED if value is None else _VALUE + value
        assert value is not None, "only a versioned store keeps deletions"
        packed = pack_int64(timestamp) + self._without_internal_offset(value)
        return len(packed).to_bytes(_LENGTH_BYTES, "big") + packed if self.numbered else packed

    def joined(self, before: bytes | None, content: bytes) -> bytes | None:
        """The content of a place at which there is something already."""
        if before is None or self.by_key:
            return content
        if self.numbered:
            return before + content
        # The versioned store has no version here: it has logged both records only to keep its stream time.
        return None if content == _DELETED else content

    def equal(self, one: bytes, other: bytes) -> bool:
        """Whether two contents are the same to the store: times count where it keeps them."""
        if one == other or self.versioned or self.timed:
            return one == other
        return self.same_values(one, other)

    def same_values(self, one: bytes, other: bytes) -> bool:
        """Whether two contents are the same but for timestamps."""
        if self.versioned:
            return one == other
        return [packed[TIMESTAMP_BYTES:] for packed in self._packed(one)] == [
            packed[TIMESTAMP_BYTES:] for packed in self._packed(other)
        ]

    def is_deletion(self, content: bytes) -> bool:
        """Whether it is the end of a version."""
        return self.versioned and content == _DELETED

    def written_ms(self, content: bytes) -> int:
        """The greatest timestamp of what was written to a changelog, but for versions."""
        return max(int(unpack_int64(packed)[0]) for packed in self._packed(content))

    def entries(self, place: bytes, content: bytes | None) -> tuple[ChangelogEntry, ...]:
        """The entries of a content; none without one."""
        if content is None:
            return ()
        key = self.key_of(place)
        if self.versioned:
            since = int(unpack_int64(place, len(place) - TIMESTAMP_BYTES)[0])
            value = None if content == _DELETED else content[len(_VALUE) :]
            return (self._entry(key, value, since),)
        return tuple(
            self._entry(key, packed[TIMESTAMP_BYTES:], int(unpack_int64(packed)[0]))
            for packed in self._packed(content)
        )

    def _packed(self, content: bytes) -> list[bytes]:
        """Timestamp and value of each entry of a content."""
        return _parts(content) if self.numbered else [content]

    def _entry(self, key: bytes, value: bytes | None, timestamp: int) -> ChangelogEntry:
        if value is None or not self.spec.headers:
            return ChangelogEntry(key, value, timestamp)
        headers, value = headers_apart(value)
        return ChangelogEntry(key, value, timestamp, headers)

    def _without_internal_offset(self, value: bytes) -> bytes:
        if self.spec.kind not in ("buffer", "join_buffer"):
            return value
        try:
            held = unpacked(value)
        except StateCorruptedError:
            return value
        topic, partition, _, timestamp, headers = held.context
        if topic not in self.internal:
            return value
        return held._replace(context=(topic, partition, 0, timestamp, headers)).packed()


def gather(form: EntryForm, entries: Iterable[StoreEntry], into: BoundedMap) -> None:
    """Put entries at their places."""
    changes: dict[bytes, bytes | None] = {}
    for key, value, timestamp in entries:
        place = form.place(key, timestamp)
        before = changes[place] if place in changes else into.get(place)
        changes[place] = form.joined(before, form.content(value, timestamp))
        if len(changes) == _GATHERED:
            into.update(changes)
            changes = {}
    into.update(changes)


def _parts(content: bytes) -> list[bytes]:
    found: list[bytes] = []
    position = 0
    while position < len(content):
        start = position + _LENGTH_BYTES
        position = start + int.from_bytes(content[position:start], "big")
        found.append(content[start:position])
    return found
