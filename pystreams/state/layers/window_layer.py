"""Windows below the cache: their order, their expiry and their bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from pystreams.state.formats import (
    SEQUENCE_MAX,
    TIMESTAMP_BYTES,
    WINDOW_SUFFIX_BYTES,
    pack_window_suffix,
    split_window_key,
)
from pystreams.state.layers.time_layer import Segments, TimeLayer, TimeLayout, TimeOrdered
from pystreams.state.overlay import Overlay
from pystreams.state.spec import StoreSpec
from pystreams.state.window_reads import WindowRead
from pystreams.stream_time import TIME_MAX, Observed

__all__ = ["Layout", "SegmentedLayout", "TimeOrderedLayout", "WindowLayer", "layout_of"]

_SUFFIX_MAX = b"\xff" * (WINDOW_SUFFIX_BYTES + 1)


class Layout(TimeLayout, Protocol):
    """Converts (record key, window start, sequence number) to the physical key by which a table sorts, and back."""

    def physical(self, key: bytes, start: int, sequence: int) -> Any:
        """The physical key."""
        ...

    def split(self, physical: Any) -> tuple[bytes, int, int]:
        """Record key, window start and sequence number of a physical key."""
        ...


class SegmentedLayout(Segments):
    """Segments of time; within one, windows by key and start, as in Kafka Streams' RocksDB window stores."""

    suffix_bytes = WINDOW_SUFFIX_BYTES

    def physical(self, key: bytes, start: int, sequence: int) -> bytes:
        segment = start // self.interval_ms
        prefix = self._prefixes.get(segment)
        return (
            (self.prefix(segment) if prefix is None else prefix) + key + pack_window_suffix(start, sequence)
        )

    def split(self, physical: bytes) -> tuple[bytes, int, int]:
        return split_window_key(physical[self._prefix_bytes :])

    def _time_first(self, key: bytes, suffix: bytes) -> bytes:
        return suffix[:TIMESTAMP_BYTES] + key + suffix[TIMESTAMP_BYTES:]

    def key_of_index(self, index: bytes) -> bytes:
        time_at = TIMESTAMP_BYTES + 1
        key_at, sequence_at = time_at + TIMESTAMP_BYTES, len(index) - WINDOW_SUFFIX_BYTES + TIMESTAMP_BYTES
        return index[key_at:sequence_at] + index[time_at:key_at] + index[sequence_at:]

    def bounds(
        self, piece: tuple[int, int, int], key_from: bytes | None, key_to: bytes | None
    ) -> tuple[bytes, bytes]:
        segment, time_from, time_to = piece
        prefix = self.prefix(segment)
        if key_from is not None and key_from == key_to:
            # There are no windows with negative times; as an int64 they would sort after all others.
            lower = prefix + key_from + pack_window_suffix(max(0, time_from), 0)
            return lower, prefix + key_from + pack_window_suffix(max(0, time_to), SEQUENCE_MAX)
        lower = prefix if key_from is None else prefix + key_from
        upper = self.end_of(segment) if key_to is None else prefix + key_to + _SUFFIX_MAX
        return lower, upper


class TimeOrderedLayout(TimeOrdered):
    """Windows by start, then key, as in Kafka Streams' InMemoryWindowStore."""

    def physical(self, key: bytes, start: int, sequence: int) -> tuple[int, bytes, int]:
        return start, key, sequence

    def of_changelog(self, key: bytes, time: int) -> tuple[int, bytes, int]:
        return self.physical(*split_window_key(key))

    def split(self, physical: tuple[int, bytes, int]) -> tuple[bytes, int, int]:
        start, key, sequence = physical
        return key, start, sequence


def layout_of(spec: StoreSpec) -> Layout:
    """The layout that determines a store's order, whether it is persistent or not."""
    if spec.persistent:
        return SegmentedLayout(spec.retention_ms, by_time=spec.by_time)
    return TimeOrderedLayout(spec.retention_ms)


def split_of_windows(spec: StoreSpec) -> Callable[[Any], tuple[bytes, int, int] | None]:
    """A function that splits any key of a window store's table; it returns None for index entries."""
    layout = layout_of(spec)
    if not isinstance(layout, SegmentedLayout) or not layout.by_time:
        return layout.split
    to_changelog = layout.to_changelog

    def split(physical: bytes) -> tuple[bytes, int, int] | None:
        key = to_changelog(physical)
        return None if key is None else split_window_key(key)

    return split


class WindowLayer(TimeLayer):
    """The bytes of windows by (record key, window start), with a retention.

    A fetch hides windows that start ``retention_ms`` or more before the store's time (one millisecond less if the
    store is read by time: AbstractDualSchemaRocksDBSegmentedBytesStore.getActualFrom); a write is dropped if its
    whole segment (in memory: its window) is older.
    """

    __slots__ = ("_by_time", "_duplicates", "layout")

    def __init__(
        self, spec: StoreSpec, overlay: Overlay, layout: Layout, time: Observed, expired: Callable[[], None]
    ) -> None:
        super().__init__(spec, overlay, layout, WINDOW_SUFFIX_BYTES, time, expired)
        self.layout = layout
        self._duplicates = spec.retain_duplicates
        self._by_time = spec.by_time and spec.persistent
        if self._by_time:
            self._visible_ms += 1

    def get(self, window: tuple[bytes, int]) -> bytes | None:
        """The window's bytes; None if it does not exist or is past its retention."""
        key, start = window
        if start <= self.time.ms - self._visible_ms:
            return None
        return self.overlay.get(self.layout.physical(key, start, self.sequence))

    def put(self, window: tuple[bytes, int], value: bytes | None) -> bytes:
        """Write a window's bytes, None deletes. Returns the changelog's key. Late windows are dropped, but logged."""
        key, start = window
        if self._duplicates:
            self.sequence = (self.sequence + 1) & SEQUENCE_MAX
        changelog_key = key + pack_window_suffix(start, self.sequence)
        nothing_to_delete = self._duplicates and value is None
        if nothing_to_delete and self._interval_ms:
            return changelog_key
        time = self.time
        now = time.ms
        if start > now:
            if time.unbounded:
                time.ms = now = start
            elif start > time.beyond_ms:
                now = time.see(start)
        # In memory, with a retention of 0, even the newest window has expired.
        if start <= now - self._retention_ms and self.layout.expired(start, now):
            self._expired()
            return changelog_key
        if nothing_to_delete:
            # Java's in-memory store advances its time before it finds that there is nothing to do.
            return changelog_key
        if self._interval_ms:
            self.segments.add(start // self._interval_ms)
        self._store(self.layout.of_changelog(changelog_key, start), value)
        return changelog_key

    def fetch(
        self, key: bytes, time_from: int, time_to: int, *, reverse: bool = False
    ) -> Iterator[tuple[int, bytes]]:
        """(window start, bytes) of one key's windows that start in a span, both inclusive, in the order of time."""
        first = self._first_visible(time_from)
        if time_to < first:
            return iter(())
        scans = self._scans(first, time_to, key, key, reverse=reverse)
        return self._one_key(scans, key, first, time_to)

    def fetch_visible(self, key: bytes, time_from: int, time_to: int) -> Iterator[tuple[int, bytes]]:
        """As ``fetch``, of a span that begins within the retention."""
        return self._one_key(
            self._scans(time_from, time_to, key, key, reverse=False), key, time_from, time_to
        )

    def _one_key(
        self, scans: list[Iterator[tuple[Any, bytes]]], wanted: bytes, time_from: int, time_to: int
    ) -> Iterator[tuple[int, bytes]]:
        split = self.layout.split
        for scan in scans:
            for physical, value in scan:
                # Keys of a longer record key may lie between two physical keys of this one.
                key, start, _ = split(physical)
                if key == wanted and time_from <= start <= time_to:
                    yield start, value

    def read_windows(self, read: WindowRead) -> Iterator[tuple[tuple[bytes, int], bytes]]:
        """((key, window start), bytes) of the wanted windows."""
        return self._read(read._replace(time_from=self._first_visible(read.time_from)))

    def fetch_held(self, time_from: int, time_to: int) -> Iterator[tuple[tuple[bytes, int], bytes]]:
        """``read_windows`` of all keys, including expired windows that are held."""
        return self._read(WindowRead(None, None, time_from, time_to, "all"))

    def _read(self, read: WindowRead) -> Iterator[tuple[tuple[bytes, int], bytes]]:
        if read.time_to < read.time_from:
            return iter(())
        # One key's windows are in the order of time anyway.
        if self._in_order_of_time(read.of) and not read.single:
            return self._by_start(read)
        scans = self._scans(read.time_from, read.time_to, read.key_from, read.key_to, reverse=read.reverse)
        return self._by_key(scans, read)

    def _in_order_of_time(self, of: str) -> bool:
        return self._by_time and (of == "all" or self.spec.ranges_by_time)

    def _by_key(
        self, scans: list[Iterator[tuple[Any, bytes]]], read: WindowRead
    ) -> Iterator[tuple[tuple[bytes, int], bytes]]:
        key_from, key_to, time_from, time_to, *_ = read
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

    def _by_start(self, read: WindowRead) -> Iterator[tuple[tuple[bytes, int], bytes]]:
        pieces = self.layout.spans(read.time_from, read.time_to, self.segments)

        key_from, key_to = read.key_from, read.key_to

        def wanted(changelog_key: bytes) -> bool:
            key = changelog_key[:-WINDOW_SUFFIX_BYTES]
            return (key_from is None or key >= key_from) and (key_to is None or key <= key_to)

        for changelog_key, value in self._in_time_order(
            pieces, None if read.of == "all" else wanted, reverse=read.reverse
        ):
            key, start, _ = split_window_key(changelog_key)
            yield (key, start), value

    def order(self, of: str) -> Callable[[tuple[bytes, int]], Any]:
        """A function that returns the sort key of windows in ``read_windows``; ``of``: see ``WindowRead.of``."""
        layout = self.layout
        if self._in_order_of_time(of):
            assert isinstance(layout, SegmentedLayout), "there is an index"
            physical, index_of = layout.physical, layout.index_of
            return lambda window: index_of(physical(window[0], window[1], 0))
        physical_of = layout.physical
        return lambda window: physical_of(window[0], window[1], 0)

    def logged(self) -> Iterator[tuple[bytes, bytes]]:
        """All windows that are within their retention, or held, by their keys of the changelog."""
        first = self._first_logged
        if self._by_time:
            pieces = self.layout.spans(first, TIME_MAX, self.segments)
            yield from self._in_time_order(pieces, reverse=False)
            return
        split = self.layout.split
        for physical, value in self.overlay.scan(None, None):
            key, start, sequence = split(physical)
            if start >= first:
                yield key + pack_window_suffix(start, sequence), value

    def restored(self, records: Iterable[tuple[bytes, bytes | None]]) -> dict[Any, bytes | None]:
        """Also advances stream time and sequence number."""
        if self._duplicates:
            records = [*records]
            for key, _ in records:
                self.sequence = max(self.sequence, split_window_key(key)[2])
        return super().restored(records)
