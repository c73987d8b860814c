"""Windows below the cache: in which order they lie, which of them have expired, and their bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct
from typing import Any, Protocol

from pystreams.state.formats import (
    SEQUENCE_MAX,
    TIMESTAMP_BYTES,
    WINDOW_SUFFIX_BYTES,
    pack_int64,
    pack_window_suffix,
    split_window_key,
    unpack_int64,
)
from pystreams.state.layer import Layer
from pystreams.state.overlay import Overlay
from pystreams.state.spec import StoreSpec

#: Segments are no shorter than this (Stores.persistentWindowStore).
SEGMENT_INTERVAL_MIN_MS = 60_000

_SEGMENTS_REMEMBERED_MAX = 1024
_SUFFIX_MAX = b"\xff" * (WINDOW_SUFFIX_BYTES + 1)
TIME_MAX = 0x7FFFFFFFFFFFFFFF
_NO_TIMESTAMP = -1

#: What a commit keeps: the store's stream time and the sequence number of its last duplicate.
_MARK = Struct(">qi")


class Layout(Protocol):
    """How (record key, window start, sequence number) becomes the physical key that a table sorts by."""

    def physical(self, key: bytes, start: int, sequence: int) -> Any:
        """The physical key."""
        ...

    def of_changelog(self, key: bytes, start: int) -> Any:
        """The physical key of a changelog key whose window starts at ``start``."""
        ...

    def split(self, physical: Any) -> tuple[bytes, int, int]:
        """Record key, window start and sequence number of a physical key."""
        ...

    def expired(self, start: int, observed: int) -> bool:
        """True if a window that starts then is too old to be written."""
        ...

    def expiry_bound(self, observed: int) -> Any:
        """Physical keys below this one may be deleted."""
        ...

    def spans(self, time_from: int, time_to: int, segments: Iterable[int]) -> list[tuple[int, int, int]]:
        """(segment, first and last window start) of the pieces that a span of time is read in, in order."""
        ...

    def bounds(
        self, piece: tuple[int, int, int], key_from: bytes | None, key_to: bytes | None
    ) -> tuple[Any, Any]:
        """Physical keys between which a piece's windows of keys from ``key_from`` to ``key_to`` lie, among others."""
        ...


class SegmentedLayout:
    """Segments of time, in each the windows by key and start: as Kafka Streams' RocksDB stores, where a segment is a
    database of its own. Here it is an 8-byte prefix, so that expiry is one deleted range.

    Source: AbstractRocksDBSegmentedBytesStore, AbstractSegments.
    """

    def __init__(self, retention_ms: int) -> None:
        self._retention_ms = retention_ms
        self.interval_ms = max(retention_ms // 2, SEGMENT_INTERVAL_MIN_MS)
        self._prefixes: dict[int, bytes] = {}

    def prefix(self, segment: int) -> bytes:
        """The first bytes of all keys of a segment."""
        prefix = self._prefixes.get(segment)
        if prefix is None:
            if len(self._prefixes) >= _SEGMENTS_REMEMBERED_MAX:
                self._prefixes.clear()
            prefix = self._prefixes[segment] = pack_int64(segment)
        return prefix

    def physical(self, key: bytes, start: int, sequence: int) -> bytes:
        segment = start // self.interval_ms
        prefix = self._prefixes.get(segment)
        return (
            (self.prefix(segment) if prefix is None else prefix) + key + pack_window_suffix(start, sequence)
        )

    def of_changelog(self, key: bytes, start: int) -> bytes:
        segment = start // self.interval_ms
        prefix = self._prefixes.get(segment)
        return (self.prefix(segment) if prefix is None else prefix) + key

    def split(self, physical: bytes) -> tuple[bytes, int, int]:
        return split_window_key(physical[TIMESTAMP_BYTES:])

    def expired(self, start: int, observed: int) -> bool:
        return start // self.interval_ms < (observed - self._retention_ms) // self.interval_ms

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

    def bounds(
        self, piece: tuple[int, int, int], key_from: bytes | None, key_to: bytes | None
    ) -> tuple[bytes, bytes]:
        segment, time_from, time_to = piece
        prefix = self.prefix(segment)
        if key_from is not None and key_from == key_to:
            # Negative times have no windows; as an int64 they would sort behind all others.
            lower = prefix + key_from + pack_window_suffix(max(0, time_from), 0)
            return lower, prefix + key_from + pack_window_suffix(max(0, time_to), SEQUENCE_MAX)
        lower = prefix if key_from is None else prefix + key_from
        upper = self.prefix(segment + 1) if key_to is None else prefix + key_to + _SUFFIX_MAX
        return lower, upper


class TimeOrderedLayout:
    """Windows by start, then key: as Kafka Streams' InMemoryWindowStore."""

    interval_ms = 1

    def __init__(self, retention_ms: int) -> None:
        self._retention_ms = retention_ms

    def physical(self, key: bytes, start: int, sequence: int) -> tuple[int, bytes, int]:
        return start, key, sequence

    def of_changelog(self, key: bytes, start: int) -> tuple[int, bytes, int]:
        return self.physical(*split_window_key(key))

    def split(self, physical: tuple[int, bytes, int]) -> tuple[bytes, int, int]:
        start, key, sequence = physical
        return key, start, sequence

    def expired(self, start: int, observed: int) -> bool:
        return start <= observed - self._retention_ms

    def expiry_bound(self, observed: int) -> tuple[int]:
        return (observed - self._retention_ms + 1,)

    def spans(self, time_from: int, time_to: int, segments: Iterable[int]) -> list[tuple[int, int, int]]:
        return [(0, time_from, time_to)]

    def bounds(
        self, piece: tuple[int, int, int], key_from: bytes | None, key_to: bytes | None
    ) -> tuple[tuple[int], tuple[int]]:
        _, time_from, time_to = piece
        return (time_from,), (time_to + 1,)


def layout_of(spec: StoreSpec) -> Layout:
    """The layout that gives a store its order, whether or not it is kept on disk."""
    kind = SegmentedLayout if spec.persistent else TimeOrderedLayout
    return kind(spec.retention_ms)


class WindowLayer(Layer):
    """Bytes of windows by (record key, window start), with their retention.

    The store's stream time is the greatest window start that was written. A fetch hides windows that start
    ``retention_ms`` or more before it; a write is dropped if its whole segment (in memory: its window) is older.
    """

    __slots__ = (
        "_committed",
        "_duplicates",
        "_expired",
        "_interval_ms",
        "_retention_ms",
        "_time_limit_ms",
        "layout",
        "observed_ms",
        "segments",
        "sequence",
    )

    def __init__(
        self, spec: StoreSpec, overlay: Overlay, layout: Layout, expired: Callable[[], None]
    ) -> None:
        super().__init__(spec, overlay)
        self.layout = layout
        #: Segments that hold entries, or did.
        self.segments: set[int] = set()
        self.observed_ms = _NO_TIMESTAMP
        self.sequence = 0
        self._committed = (self.observed_ms, self.sequence)
        self._time_limit_ms = TIME_MAX
        self._duplicates = spec.retain_duplicates
        self._retention_ms = spec.retention_ms
        self._interval_ms: int = layout.interval_ms if isinstance(layout, SegmentedLayout) else 0
        self._expired = expired

    @property
    def arrangement(self) -> str:
        return f"{self.spec.kind}/{self._interval_ms}/{self.spec.retain_duplicates}"

    def get(self, window: tuple[bytes, int]) -> bytes | None:
        """The window's bytes, None if there are none or it is past retention."""
        key, start = window
        if start <= self.observed_ms - self._retention_ms:
            return None
        return self.overlay.get(self.layout.physical(key, start, self.sequence))

    def physical(self, changelog_key: bytes) -> Any:
        start = unpack_int64(changelog_key, len(changelog_key) - WINDOW_SUFFIX_BYTES)[0]
        if self.layout.expired(start, self.observed_ms):
            return None
        return self.layout.of_changelog(changelog_key, start)

    def put(self, window: tuple[bytes, int], value: bytes | None) -> bytes:
        """Write a window's bytes, None deletes; gives the changelog's key. Late windows are dropped, but logged."""
        key, start = window
        if self._duplicates:
            self.sequence = (self.sequence + 1) & SEQUENCE_MAX
        changelog_key = key + pack_window_suffix(start, self.sequence)
        nothing_to_delete = self._duplicates and value is None
        if nothing_to_delete and self._interval_ms:
            return changelog_key
        observed = self.observed_ms
        if start > observed:
            self.observed_ms = start
        elif start <= observed - self._retention_ms and self.layout.expired(start, observed):
            self._expired()
            return changelog_key
        if nothing_to_delete:
            # Java's store in memory looks at the time before it finds that there is nothing to do.
            return changelog_key
        if self._interval_ms:
            self.segments.add(start // self._interval_ms)
        self.overlay.put(self.layout.of_changelog(changelog_key, start), value)
        return changelog_key

    def fetch(
        self, key: bytes, time_from: int, time_to: int, *, reverse: bool = False
    ) -> Iterator[tuple[int, bytes]]:
        """(window start, bytes) of one key's windows that start in a span, both ends included, in time order."""
        first = self._first_visible(time_from)
        if time_to < first:
            return iter(())
        layout = self.layout
        pieces = layout.spans(first, time_to, self.segments)
        if reverse:
            pieces.reverse()
        scans = [
            self.overlay.windows(key, *layout.bounds(piece, key, key), piece[1:], reverse=reverse)
            for piece in pieces
        ]
        return self._one_key(scans, key, first, time_to)

    def _one_key(
        self, scans: list[Iterator[tuple[Any, bytes]]], wanted: bytes, time_from: int, time_to: int
    ) -> Iterator[tuple[int, bytes]]:
        split = self.layout.split
        for scan in scans:
            for physical, value in scan:
                # Between two physical keys of one record key may lie those of a longer one.
                key, start, _ = split(physical)
                if key == wanted and time_from <= start <= time_to:
                    yield start, value

    def fetch_range(
        self,
        key_from: bytes | None,
        key_to: bytes | None,
        time_from: int,
        time_to: int,
        *,
        reverse: bool = False,
    ) -> Iterator[tuple[tuple[bytes, int], bytes]]:
        """((key, window start), bytes) of the windows of a range of keys in a span of time; None: open."""
        first = self._first_visible(time_from)
        if time_to < first:
            return iter(())
        layout = self.layout
        pieces = layout.spans(first, time_to, self.segments)
        if reverse:
            pieces.reverse()
        scans = []
        for piece in pieces:
            lower, upper = layout.bounds(piece, key_from, key_to)
            if key_from is not None and key_from == key_to:
                scans.append(self.overlay.windows(key_from, lower, upper, piece[1:], reverse=reverse))
            else:
                scans.append(self.overlay.scan(lower, upper, upper_inclusive=False, reverse=reverse))
        return self._many_keys(scans, key_from, key_to, first, time_to)

    def _many_keys(
        self,
        scans: list[Iterator[tuple[Any, bytes]]],
        key_from: bytes | None,
        key_to: bytes | None,
        time_from: int,
        time_to: int,
    ) -> Iterator[tuple[tuple[bytes, int], bytes]]:
        split = self.layout.split
        for scan in scans:
            for physical, value in scan:
                key, start, _ = split(physical)
                if (
                    time_from <= start <= time_to
                    and (key_from is None or key >= key_from)
                    and (key_to is None or key <= key_to)
                ):
                    yield (key, start), value

    def logged(self) -> Iterator[tuple[bytes, bytes]]:
        """All windows that are not past their retention, by their keys of the changelog."""
        first, split = self._first_visible(0), self.layout.split
        for physical, value in self.overlay.scan(None, None):
            key, start, sequence = split(physical)
            if start >= first:
                yield key + pack_window_suffix(start, sequence), value

    def _first_visible(self, time_from: int) -> int:
        return max(time_from, self.observed_ms - self._retention_ms + 1)

    def limit_time(self, time_ms: int) -> None:
        self._time_limit_ms = time_ms

    def restored(self, records: Sequence[tuple[bytes, bytes | None]]) -> dict[Any, bytes | None]:
        """Moves stream time and sequence number on."""
        starts = [unpack_int64(key, len(key) - WINDOW_SUFFIX_BYTES)[0] for key, _ in records]
        latest = min(max(starts, default=_NO_TIMESTAMP), self._time_limit_ms)
        observed = self.observed_ms = max(self.observed_ms, latest)
        if self._duplicates:
            for key, _ in records:
                self.sequence = max(self.sequence, split_window_key(key)[2])
        self._committed = (observed, self.sequence)
        of_changelog, expired, interval = self.layout.of_changelog, self.layout.expired, self._interval_ms
        maybe_late_ms = observed - self._retention_ms
        changes: dict[Any, bytes | None] = {}
        for (key, value), start in zip(records, starts, strict=True):
            if start > maybe_late_ms or not expired(start, observed):
                changes[of_changelog(key, start)] = value
        if interval:
            self.segments.update(start // interval for start in starts)
        return changes

    def mark(self) -> bytes:
        return _MARK.pack(self.observed_ms, self.sequence)

    def load(self, mark: bytes | None) -> None:
        self.observed_ms, self.sequence = self._committed = (
            (_NO_TIMESTAMP, 0) if mark is None else _MARK.unpack(mark)
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

    def expiry(self) -> Any:
        if not self._interval_ms:
            return self.layout.expiry_bound(self.observed_ms)
        bound: bytes = self.layout.expiry_bound(self.observed_ms)
        first_live = unpack_int64(bound)[0]
        return bound if any(segment < first_live for segment in self.segments) else None

    def committed(self) -> None:
        self._committed = (self.observed_ms, self.sequence)
        if self._interval_ms:
            first_live = unpack_int64(self.layout.expiry_bound(self.observed_ms))[0]
            self.segments = {segment for segment in self.segments if segment >= first_live}

    def abort(self) -> None:
        self.overlay.clear()
        self.observed_ms, self.sequence = self._committed
