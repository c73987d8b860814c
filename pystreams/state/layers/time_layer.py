"""Entries that have a time and expire: the common part of the layers of window and session stores.

The *time* of a window is its start, the time of a session its end. In the changelog's key it directly follows the
record key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from struct import Struct
from typing import Any, Protocol

from pystreams.state.formats import TIMESTAMP_BYTES, pack_int64, unpack_int64
from pystreams.state.layers.layer import Layer
from pystreams.state.layers.restored_time import RestoredTime, packed_time, unpacked_time
from pystreams.state.overlay import Overlay
from pystreams.state.spec import StoreSpec
from pystreams.state.table import Table
from pystreams.stream_time import NO_TIME, TIME_MAX, Observed

#: The minimum length of segments (Stores.persistentWindowStore, persistentSessionStore).
SEGMENT_INTERVAL_MIN_MS = 60_000

_SEGMENTS_REMEMBERED_MAX = 1024

#: How many times per retention period stores in memory delete expired entries.
_SWEEPS = 8

#: Follows the segment in stores with an index by time: first all entries by key, then all by time.
_BY_KEY, _BY_TIME, _BEHIND_BOTH = b"\x00", b"\x01", b"\x02"

#: The state that a commit saves: the store's stream time, and the sequence number of its last duplicate.
_MARK = Struct(">qi")


class TimeLayout(Protocol):
    """The arrangement of entries that expire by time. ``interval_ms`` is the length of a segment."""

    interval_ms: int

    def of_changelog(self, key: bytes, time: int) -> Any:
        """The physical key for a key of the changelog."""
        ...

    def index_of(self, physical: Any) -> Any:
        """The key of the entry in the index by time; None if there is no index."""
        ...

    def expired(self, time: int, observed: int) -> bool:
        """Whether an entry with this time is too old to be written."""
        ...

    def expiry_bound(self, observed: int) -> Any:
        """The physical key below which all keys may be deleted."""
        ...

    def spans(self, time_from: int, time_to: int, segments: Iterable[int]) -> list[tuple[int, int, int]]:
        """A span of time as (segment, first and last time) pieces, which are read in this order."""
        ...

    def bounds(
        self, piece: tuple[int, int, int], key_from: bytes | None, key_to: bytes | None
    ) -> tuple[Any, Any]:
        """The range of physical keys with a piece's entries of keys ``key_from`` to ``key_to``, and perhaps others."""
        ...


class Segments:
    """Segments of time, and in each the entries by key and time, as in Kafka Streams' RocksDB stores, where a segment
    is a database of its own. Here it is an 8-byte prefix, so that expiry deletes a single range.

    With ``by_time`` each entry also has an empty index entry, by which a span of time is read without reading others
    (AbstractRocksDBTimeOrderedSegmentedBytesStore). Source: AbstractRocksDBSegmentedBytesStore, AbstractSegments.
    """

    #: The size of the suffix after the record key in the changelog's key.
    suffix_bytes: int

    def __init__(self, retention_ms: int, *, by_time: bool = False) -> None:
        self._retention_ms = retention_ms
        self.interval_ms = max(retention_ms // 2, SEGMENT_INTERVAL_MIN_MS)
        self.by_time = by_time
        self._marker = _BY_KEY if by_time else b""
        self._prefix_bytes = TIMESTAMP_BYTES + len(self._marker)
        self._prefixes: dict[int, bytes] = {}

    def prefix(self, segment: int) -> bytes:
        """The common prefix of a segment's entries by key."""
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
        """The changelog's key; None for an index entry."""
        return None if self.by_time and physical[TIMESTAMP_BYTES] else physical[self._prefix_bytes :]

    def index_of(self, physical: bytes) -> bytes:
        place = len(physical) - self.suffix_bytes
        key, suffix = physical[self._prefix_bytes : place], physical[place:]
        return physical[:TIMESTAMP_BYTES] + _BY_TIME + self._time_first(key, suffix)

    def _time_first(self, key: bytes, suffix: bytes) -> bytes:
        """Record key and suffix, converted to sort by time."""
        raise NotImplementedError

    def key_of_index(self, index: bytes) -> bytes:
        """The changelog's key for an index entry."""
        raise NotImplementedError

    def index_bounds(self, piece: tuple[int, int, int]) -> tuple[bytes, bytes]:
        """The range of the index with a piece's entries; the end is exclusive."""
        segment, first, last = piece
        start = pack_int64(segment)
        end = _BEHIND_BOTH if last >= TIME_MAX else _BY_TIME + pack_int64(max(0, last + 1))
        return start + _BY_TIME + pack_int64(max(0, first)), start + end

    def end_of(self, segment: int) -> bytes:
        """The key after all entries by key of a segment."""
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
    """Entries by time, then key, as in Kafka Streams' in-memory stores."""

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


def existing_segments(table: Table, end: bytes | None = None) -> Iterator[int]:
    """The segments of a table that have entries below the key ``end`` (None: no limit). The first key at or after a
    segment's start shows the next existing segment."""
    lower = b""
    while True:
        key = next((key for key, _ in table.walk(lower)), None)
        if key is None or (end is not None and key >= end):
            return
        segment = unpack_int64(key)[0]
        yield segment
        lower = pack_int64(segment + 1)


def expired_segments(segments: Iterable[int], first_live: int) -> tuple[bytes, bytes] | None:
    """The range of keys of the segments before the first live one; None if there are none.

    It does not start at the lowest possible key, because the cost of overlapping deleted ranges in RocksDB is
    quadratic in their number, at the next read.
    """
    expired = [segment for segment in segments if segment < first_live]
    return (pack_int64(max(0, min(expired))), pack_int64(first_live)) if expired else None


class TimeLayer(Layer):
    """Bytes with a time and a retention. The store sees the times that are written."""

    __slots__ = (
        "_committed",
        "_expired",
        "_held_ms",
        "_interval_ms",
        "_restored_time",
        "_retention_ms",
        "_store",
        "_suffix_bytes",
        "_swept_ms",
        "_time_layout",
        "_visible_ms",
        "segments",
        "sequence",
        "time",
    )

    def __init__(
        self,
        spec: StoreSpec,
        overlay: Overlay,
        layout: TimeLayout,
        suffix_bytes: int,
        time: Observed,
        expired: Callable[[], None],
    ) -> None:
        super().__init__(spec, overlay)
        self._time_layout = layout
        self._suffix_bytes = suffix_bytes
        self._expired = expired
        #: Segments that have entries, or had some.
        self.segments: set[int] = set()
        #: The store's stream time.
        self.time = time
        #: The sequence number of the last duplicate, in stores with duplicates.
        self.sequence = 0
        self._committed = self._position
        self._restored_time = RestoredTime(time)
        self._held_ms = TIME_MAX
        self._swept_ms = NO_TIME
        self._retention_ms = spec.retention_ms
        #: Entries that are older than the store's time by more than this are hidden.
        self._visible_ms = spec.retention_ms
        self._interval_ms: int = layout.interval_ms if isinstance(layout, Segments) else 0
        indexed = isinstance(layout, Segments) and layout.by_time
        #: Sets the bytes of a physical key; None deletes.
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
        if time < self._held_ms and self._time_layout.expired(time, self.time.ms):
            return None
        return self._time_layout.of_changelog(changelog_key, time)

    @property
    def first_visible_ms(self) -> int:
        """The earliest visible time: older entries are hidden."""
        return self.time.ms - self._visible_ms + 1

    def _first_visible(self, time_from: int) -> int:
        return max(time_from, self.time.ms - self._visible_ms + 1)

    @property
    def _first_logged(self) -> int:
        """The earliest time of the state to be logged: hidden entries that are held count, because they will be
        emitted."""
        return max(0, min(self.first_visible_ms, self._held_ms))

    def _scans(
        self, first: int, last: int, key_from: bytes | None, key_to: bytes | None, *, reverse: bool
    ) -> list[Iterator[tuple[Any, bytes]]]:
        """The entries of a span of time and a range of keys (None: open end), piece by piece, and perhaps others."""
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
        """(changelog key, bytes) of pieces, in a layout with an index by time; ``wanted`` selects entries by key (None:
        all)."""
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

    def limit_time(self, time_ms: int, seen_ms: int) -> None:
        if self._restored_time.limit(time_ms, seen_ms):
            self._committed = self._position

    @property
    def _position(self) -> tuple[int, int, int]:
        """The time in force, the time that was seen, and the sequence number."""
        return self.time.ms, self.time.seen_ms, self.sequence

    def go_on(self, time_ms: int) -> None:
        """Continue at the store's time of an earlier run, before anything is restored."""
        self.time.go_on(time_ms)
        self._committed = self._position

    def hold(self, time_ms: int) -> None:
        self._held_ms = time_ms

    def restored(self, records: Iterable[tuple[bytes, bytes | None]]) -> dict[Any, bytes | None]:
        """Also advances stream time."""
        records = [*records]
        times = [self._time_of(key) for key, _ in records]
        written: Iterable[int] = times
        if self.spec.retain_duplicates and self._interval_ms:
            # On disk, a null in a store with duplicates is logged but not written, so it did not advance stream time.
            written = (time for (_, value), time in zip(records, times, strict=True) if value is not None)
        self._restored_time.restored(max(written, default=NO_TIME))
        self._committed = self._position
        observed = self.time.ms
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

    def marks(self) -> dict[str, bytes]:
        return {
            "layer": _MARK.pack(self.time.ms, self.sequence),
            "seen": packed_time(self.time.held_ms),
            "restored": self._restored_time.mark(),
        }

    def load(self, marks: Mapping[str, bytes]) -> None:
        if marks["layer"]:
            time_ms, self.sequence = _MARK.unpack(marks["layer"])
            self.time.reset(time_ms, unpacked_time(marks["seen"]))
        self._restored_time.load(marks["restored"])
        self._committed = self._position
        if self._interval_ms:
            self.segments.update(existing_segments(self.overlay.table))

    def continue_as(self, other: Layer) -> None:
        assert isinstance(other, TimeLayer), "it is the same store"
        time_ms, seen_ms, self.sequence = self._committed = other._committed
        self.time.reset(time_ms, seen_ms)
        self._held_ms = other._held_ms
        self.segments = set(other.segments)

    @property
    def _sweeps(self) -> bool:
        """Whether to delete now. In memory a deletion scans all entries, so expired ones are only hidden for a
        while."""
        return self.time.ms - self._swept_ms >= self._retention_ms // _SWEEPS

    def _expiry_bound(self) -> Any:
        return self._time_layout.expiry_bound(min(self.time.ms, self._held_ms + self._retention_ms - 1))

    def expiry(self) -> tuple[Any, Any] | None:
        bound = self._expiry_bound()
        if not self._interval_ms:
            return (None, bound) if self._sweeps else None
        return expired_segments(self.segments, unpack_int64(bound)[0])

    def after_commit(self) -> None:
        self._committed = self._position
        if not self._interval_ms:
            if self._sweeps:
                self._swept_ms = self.time.ms
        else:
            first_live = unpack_int64(self._expiry_bound())[0]
            self.segments = {segment for segment in self.segments if segment >= first_live}

    def abort(self) -> None:
        self.overlay.clear()
        time_ms, seen_ms, self.sequence = self._committed
        self.time.reset(time_ms, seen_ms)
