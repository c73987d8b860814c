"""Entries that belong to a time and expire: what the layers of window and session stores have in common.

The *time* of a window is its start, that of a session its end. It stands in the changelog's key, first of what follows
the record key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct
from typing import Any, Protocol

from pystreams.state.formats import TIMESTAMP_BYTES, pack_int64, unpack_int64
from pystreams.state.layers.layer import Layer
from pystreams.state.overlay import Overlay
from pystreams.state.spec import StoreSpec

#: Segments are no shorter than this (Stores.persistentWindowStore, persistentSessionStore).
SEGMENT_INTERVAL_MIN_MS = 60_000
TIME_MAX = 0x7FFFFFFFFFFFFFFF
NO_TIMESTAMP = -1

_SEGMENTS_REMEMBERED_MAX = 1024

#: How often stores in memory delete what has expired, while time passes by their retention.
_SWEEPS = 8

#: Behind the segment, in stores that are read in the order of time: entries by key, then the same by time.
_BY_KEY, _BY_TIME, _BEHIND_BOTH = b"\x00", b"\x01", b"\x02"

#: What a commit keeps: the store's stream time and the sequence number of its last duplicate.
_MARK = Struct(">qi")


class TimeLayout(Protocol):
    """How entries lie in a table so that they expire by their time. ``interval_ms`` is the length of a segment."""

    interval_ms: int

    def of_changelog(self, key: bytes, time: int) -> Any:
        """The physical key of a changelog's key."""
        ...

    def index_of(self, physical: Any) -> Any:
        """The key by which the entry is also found in the order of time; None where there is no such index."""
        ...

    def expired(self, time: int, observed: int) -> bool:
        """True if an entry of that time is too old to be written."""
        ...

    def expiry_bound(self, observed: int) -> Any:
        """Physical keys below this one may be deleted."""
        ...

    def spans(self, time_from: int, time_to: int, segments: Iterable[int]) -> list[tuple[int, int, int]]:
        """(segment, first and last time) of the pieces that a span of time is read in, in order."""
        ...

    def bounds(
        self, piece: tuple[int, int, int], key_from: bytes | None, key_to: bytes | None
    ) -> tuple[Any, Any]:
        """Physical keys between which a piece's entries of keys from ``key_from`` to ``key_to`` lie, among others."""
        ...


class Segments:
    """Segments of time, in each the entries by key and time: as Kafka Streams' RocksDB stores, where a segment is a
    database of its own. Here it is an 8-byte prefix, so that expiry is one deleted range.

    With ``by_time`` each entry has a second, empty one, by which a span of time is read without all the others
    (AbstractRocksDBTimeOrderedSegmentedBytesStore). Source: AbstractRocksDBSegmentedBytesStore, AbstractSegments.
    """

    #: What follows the record key in the changelog's.
    suffix_bytes: int

    def __init__(self, retention_ms: int, *, by_time: bool = False) -> None:
        self._retention_ms = retention_ms
        self.interval_ms = max(retention_ms // 2, SEGMENT_INTERVAL_MIN_MS)
        self.by_time = by_time
        self._marker = _BY_KEY if by_time else b""
        self._prefix_bytes = TIMESTAMP_BYTES + len(self._marker)
        self._prefixes: dict[int, bytes] = {}

    def prefix(self, segment: int) -> bytes:
        """The first bytes of a segment's entries by key."""
        prefix = self._prefixes.get(segment)
        if prefix is None:
            if len(self._prefixes) >= _SEGMENTS_REMEMBERED_MAX:
                self._prefixes.clear()
            prefix = self._prefixes[segment] = pack_int64(segment) + self._marker
        return prefix

    def of_changelog(self, key: bytes, time: int) -> bytes:
        segment = time // self.interval_ms
        prefix = self._prefixes.get(segment)
        return (self.prefix(segment) if prefix is None else prefix) + key

    def to_changelog(self, physical: bytes) -> bytes | None:
        """The changelog's key; None for an entry of the index by time."""
        return None if self.by_time and physical[TIMESTAMP_BYTES] else physical[self._prefix_bytes :]

    def index_of(self, physical: bytes) -> bytes:
        place = len(physical) - self.suffix_bytes
        key, suffix = physical[self._prefix_bytes : place], physical[place:]
        return physical[:TIMESTAMP_BYTES] + _BY_TIME + self._time_first(key, suffix)

    def _time_first(self, key: bytes, suffix: bytes) -> bytes:
        """Record key and what follows it, in an order of time."""
        raise NotImplementedError

    def key_of_index(self, index: bytes) -> bytes:
        """The changelog's key of an entry of the index by time."""
        raise NotImplementedError

    def index_bounds(self, piece: tuple[int, int, int]) -> tuple[bytes, bytes]:
        """Between which keys of the index a piece lies; the second is behind it."""
        segment, first, last = piece
        start = pack_int64(segment)
        end = _BEHIND_BOTH if last >= TIME_MAX else _BY_TIME + pack_int64(max(0, last + 1))
        return start + _BY_TIME + pack_int64(max(0, first)), start + end

    def end_of(self, segment: int) -> bytes:
        """Behind all entries by key of a segment."""
        return pack_int64(segment) + _BY_TIME if self.by_time else pack_int64(segment + 1)

    def expired(self, time: int, observed: int) -> bool:
        return time // self.interval_ms < (observed - self._retention_ms) // self.interval_ms

    def expiry_bound(self, observed: int) -> bytes:
        return pack_int64(max(0, (observed - self._retention_ms) // self.interval_ms))

    def spans(self, time_from: int, time_to: int, segments: Iterable[int]) -> list[tuple[int, int, int]]:
        interval = self.interval_ms
        first, last = time_from // interval, time_to // interval
        return [
            (segment, max(time_from, segment * interval), min(time_to, (segment + 1) * interval - 1))
            for segment in sorted(segments)
            if first <= segment <= last
        ]


class TimeOrdered:
    """Entries by time, then key: as Kafka Streams' stores in memory."""

    interval_ms = 1

    def __init__(self, retention_ms: int) -> None:
        self._retention_ms = retention_ms

    def index_of(self, physical: Any) -> Any:
        return None

    def expired(self, time: int, observed: int) -> bool:
        return time <= observed - self._retention_ms

    def expiry_bound(self, observed: int) -> tuple[int]:
        return (observed - self._retention_ms + 1,)

    def spans(self, time_from: int, time_to: int, segments: Iterable[int]) -> list[tuple[int, int, int]]:
        return [(0, time_from, time_to)]

    def bounds(
        self, piece: tuple[int, int, int], key_from: bytes | None, key_to: bytes | None
    ) -> tuple[tuple[int], tuple[int]]:
        _, first, last = piece
        return (first,), (last + 1,)


def expired_segments(segments: Iterable[int], first_live: int) -> tuple[bytes, bytes] | None:
    """The keys between which the segments before the first live one lie; None if there are none.

    Not from the first key of all on: deleted ranges that overlap cost RocksDB the square of their number, at the next
    read.
    """
    expired = [segment for segment in segments if segment < first_live]
    return (pack_int64(max(0, min(expired))), pack_int64(first_live)) if expired else None


class TimeLayer(Layer):
    """Bytes with a time and a retention. The store's stream time is the greatest time that was written."""

    __slots__ = (
        "_committed",
        "_expired",
        "_held_ms",
        "_interval_ms",
        "_retention_ms",
        "_store",
        "_suffix_bytes",
        "_swept_ms",
        "_time_layout",
        "_time_limit_ms",
        "_visible_ms",
        "observed_ms",
        "segments",
        "sequence",
    )

    def __init__(
        self,
        spec: StoreSpec,
        overlay: Overlay,
        layout: TimeLayout,
        suffix_bytes: int,
        expired: Callable[[], None],
    ) -> None:
        super().__init__(spec, overlay)
        self._time_layout = layout
        self._suffix_bytes = suffix_bytes
        self._expired = expired
        #: Segments that hold entries, or did.
        self.segments: set[int] = set()
        self.observed_ms = NO_TIMESTAMP
        #: Of the last duplicate, in stores that keep them.
        self.sequence = 0
        self._committed = (self.observed_ms, self.sequence)
        self._time_limit_ms = TIME_MAX
        self._held_ms = TIME_MAX
        self._swept_ms = NO_TIMESTAMP
        self._retention_ms = spec.retention_ms
        #: What is so much before the store's time is hidden.
        self._visible_ms = spec.retention_ms
        self._interval_ms: int = layout.interval_ms if isinstance(layout, Segments) else 0
        indexed = isinstance(layout, Segments) and layout.by_time
        #: Sets the bytes at a physical key; None deletes.
        self._store: Callable[[Any, bytes | None], None] = self._put_indexed if indexed else overlay.put

    @property
    def arrangement(self) -> str:
        by_time = "/by-time" if self._interval_ms and self.spec.by_time else ""
        return f"{self.spec.kind}/{self._interval_ms}/{self.spec.retain_duplicates}{by_time}"

    def _put_indexed(self, physical: Any, value: bytes | None) -> None:
        self.overlay.put(self._time_layout.index_of(physical), None if value is None else b"")
        self.overlay.put(physical, value)

    def _time_of(self, changelog_key: bytes) -> int:
        time: int = unpack_int64(changelog_key, len(changelog_key) - self._suffix_bytes)[0]
        return time

    def is_index(self, physical: Any) -> bool:
        layout = self._time_layout
        return isinstance(layout, Segments) and layout.to_changelog(physical) is None

    def physical(self, changelog_key: bytes) -> Any:
        time = self._time_of(changelog_key)
        if time < self._held_ms and self._time_layout.expired(time, self.observed_ms):
            return None
        return self._time_layout.of_changelog(changelog_key, time)

    @property
    def first_visible_ms(self) -> int:
        """What is of an earlier time is hidden."""
        return self.observed_ms - self._visible_ms + 1

    def _first_visible(self, time_from: int) -> int:
        return max(time_from, self.observed_ms - self._visible_ms + 1)

    @property
    def _first_logged(self) -> int:
        """What is hidden, but held, is part of the state: it will be emitted."""
        return max(0, min(self.first_visible_ms, self._held_ms))

    def _scans(
        self, first: int, last: int, key_from: bytes | None, key_to: bytes | None, *, reverse: bool
    ) -> list[Iterator[tuple[Any, bytes]]]:
        """The entries of a span of time and a range of keys (None: open), piece by piece; maybe others between them."""
        pieces = self._time_layout.spans(first, last, self.segments)
        if reverse:
            pieces.reverse()
        scans = []
        for piece in pieces:
            lower, upper = self._time_layout.bounds(piece, key_from, key_to)
            if key_from is not None and key_from == key_to:
                scans.append(self.overlay.windows(key_from, lower, upper, piece[1:], reverse=reverse))
            else:
                scans.append(self.overlay.scan(lower, upper, upper_inclusive=False, reverse=reverse))
        return scans

    def _in_time_order(
        self,
        pieces: list[tuple[int, int, int]],
        wanted: Callable[[bytes], bool] | None = None,
        *,
        reverse: bool,
    ) -> Iterator[tuple[bytes, bytes]]:
        """(changelog key, bytes) of pieces of a layout with an index by time; ``wanted`` tells by the key which ones
        (None: all)."""
        layout, get = self._time_layout, self.overlay.get
        assert isinstance(layout, Segments), "only segments have an index by time"
        for piece in reversed(pieces) if reverse else pieces:
            lower, upper = layout.index_bounds(piece)
            for index, _ in self.overlay.scan(lower, upper, upper_inclusive=False, reverse=reverse):
                key = layout.key_of_index(index)
                if wanted is not None and not wanted(key):
                    continue
                value = get(layout.prefix(piece[0]) + key)
                if value is not None:
                    yield key, value

    # Restore and commit

    def limit_time(self, time_ms: int) -> None:
        self._time_limit_ms = time_ms

    def hold(self, time_ms: int) -> None:
        self._held_ms = time_ms

    def restored(self, records: Sequence[tuple[bytes, bytes | None]]) -> dict[Any, bytes | None]:
        """Moves stream time on."""
        times = [self._time_of(key) for key, _ in records]
        written: Iterable[int] = times
        if self.spec.retain_duplicates and self._interval_ms:
            # On disk, a null among duplicates is logged, but no write: it did not move stream time either.
            written = (time for (_, value), time in zip(records, times, strict=True) if value is not None)
        latest = min(max(written, default=NO_TIMESTAMP), self._time_limit_ms)
        observed = self.observed_ms = max(self.observed_ms, latest)
        self._committed = (observed, self.sequence)
        layout, expired, interval = self._time_layout, self._time_layout.expired, self._interval_ms
        indexed = isinstance(layout, Segments) and layout.by_time
        maybe_late_ms = min(observed - self._retention_ms, self._held_ms - 1)
        changes: dict[Any, bytes | None] = {}
        for (key, value), time in zip(records, times, strict=True):
            if time > maybe_late_ms or not expired(time, observed):
                physical = layout.of_changelog(key, time)
                changes[physical] = value
                if indexed:
                    changes[layout.index_of(physical)] = None if value is None else b""
        if interval:
            self.segments.update(time // interval for time in times)
        return changes

    def mark(self) -> bytes:
        return _MARK.pack(self.observed_ms, self.sequence)

    def load(self, mark: bytes | None) -> None:
        self.observed_ms, self.sequence = self._committed = (
            (NO_TIMESTAMP, 0) if mark is None else _MARK.unpack(mark)
        )
        if not self._interval_ms:
            return
        # Hop from segment to segment: the first key at or behind each gives the next one that exists.
        lower: bytes | None = None
        while True:
            found = next(self.overlay.table.scan(lower, None, upper_inclusive=False, reverse=False), None)
            if found is None:
                return
            segment = unpack_int64(found[0])[0]
            self.segments.add(segment)
            lower = pack_int64(segment + 1)

    @property
    def _sweeps(self) -> bool:
        """In memory each deletion goes through all entries; those that have expired are hidden until there are more."""
        return self.observed_ms - self._swept_ms >= self._retention_ms // _SWEEPS

    def _expiry_bound(self) -> Any:
        return self._time_layout.expiry_bound(min(self.observed_ms, self._held_ms + self._retention_ms - 1))

    def expiry(self) -> tuple[Any, Any] | None:
        bound = self._expiry_bound()
        if not self._interval_ms:
            return (None, bound) if self._sweeps else None
        return expired_segments(self.segments, unpack_int64(bound)[0])

    def committed(self) -> None:
        self._committed = (self.observed_ms, self.sequence)
        if not self._interval_ms:
            if self._sweeps:
                self._swept_ms = self.observed_ms
        else:
            first_live = unpack_int64(self._expiry_bound())[0]
            self.segments = {segment for segment in self.segments if segment >= first_live}

    def abort(self) -> None:
        self.overlay.clear()
        self.observed_ms, self.sequence = self._committed
