"""Sessions below the cache: their order, their expiry and their bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any, Protocol

from pystreams.errors import StateError
from pystreams.state.formats import TIMESTAMP_BYTES
from pystreams.state.layers.time_layer import Segments, TimeLayer, TimeLayout, TimeOrdered
from pystreams.state.overlay import Overlay
from pystreams.state.spec import StoreSpec
from pystreams.stream_time import TIME_MAX, Observed

#: Size of the suffix of the record key in the changelog: int64 end, int64 start (SessionKeySchema).
SESSION_SUFFIX_BYTES = 16

_SUFFIX = Struct(">qq")
_SUFFIX_MAX = b"\xff" * (SESSION_SUFFIX_BYTES + 1)


def session_key(key: bytes, start: int, end: int) -> bytes:
    """The key of a session in the changelog."""
    return key + _SUFFIX.pack(end, start)


def split_session_key(changelog_key: bytes) -> tuple[bytes, int, int]:
    """Record key, start and end of a session."""
    end, start = _SUFFIX.unpack_from(changelog_key, len(changelog_key) - SESSION_SUFFIX_BYTES)
    return changelog_key[:-SESSION_SUFFIX_BYTES], start, end


class SessionLayout(TimeLayout, Protocol):
    """Converts the changelog's key of a session to the physical key by which a table sorts, and back."""

    def to_changelog(self, physical: Any) -> bytes | None:
        """The changelog's key; None if the key is not a session's."""
        ...

    def split(self, physical: Any) -> tuple[bytes, int, int] | None:
        """Record key, end, and the sort key among sessions of equal ends; None if the key is not a session's."""
        ...


class SegmentedSessions(Segments):
    """Segments by end; within one, sessions by key, end and start, as in Kafka Streams' RocksDB session stores."""

    suffix_bytes = SESSION_SUFFIX_BYTES

    def split(self, physical: bytes) -> tuple[bytes, int, int] | None:
        changelog_key = self.to_changelog(physical)
        if changelog_key is None:
            return None
        key, start, end = split_session_key(changelog_key)
        return key, end, start

    def _time_first(self, key: bytes, suffix: bytes) -> bytes:
        return suffix + key

    def key_of_index(self, index: bytes) -> bytes:
        time_at = TIMESTAMP_BYTES + 1
        key_at = time_at + SESSION_SUFFIX_BYTES
        return index[key_at:] + index[time_at:key_at]

    def bounds(
        self, piece: tuple[int, int, int], key_from: bytes | None, key_to: bytes | None
    ) -> tuple[bytes, bytes]:
        segment, first, _ = piece
        prefix = self.prefix(segment)
        if key_from is not None and key_from == key_to:
            return prefix + session_key(key_from, 0, max(0, first)), prefix + key_from + _SUFFIX_MAX
        lower = prefix if key_from is None else prefix + key_from
        return lower, self.end_of(segment) if key_to is None else prefix + key_to + _SUFFIX_MAX


class SessionsInMemory(TimeOrdered):
    """Sessions by end, then key, the latest start first, as in Kafka Streams' InMemorySessionStore."""

    def of_changelog(self, key: bytes, time: int) -> tuple[int, bytes, int]:
        record_key, start, end = split_session_key(key)
        return end, record_key, -start

    def to_changelog(self, physical: tuple[int, bytes, int]) -> bytes | None:
        end, key, start = physical
        return session_key(key, -start, end)

    def split(self, physical: tuple[int, bytes, int]) -> tuple[bytes, int, int] | None:
        end, key, start = physical
        return key, end, start


def session_layout(spec: StoreSpec) -> SessionLayout:
    """The layout that determines a store's order, whether it is persistent or not."""
    if spec.persistent:
        return SegmentedSessions(spec.retention_ms, by_time=spec.by_time)
    return SessionsInMemory(spec.retention_ms)


class SessionLayer(TimeLayer):
    """The bytes of sessions by the changelog's key, with a retention.

    Sessions that end ``retention_ms`` or more before the store's time are hidden; a write is dropped if its whole
    segment (in memory: the session) is older. Source: RocksDBSessionStore, InMemorySessionStore.
    """

    __slots__ = ("layout",)

    def __init__(
        self,
        spec: StoreSpec,
        overlay: Overlay,
        layout: SessionLayout,
        time: Observed,
        expired: Callable[[], None],
    ) -> None:
        super().__init__(spec, overlay, layout, SESSION_SUFFIX_BYTES, time, expired)
        self.layout = layout

    def get(self, changelog_key: bytes) -> bytes | None:
        """The session's bytes; None if it does not exist or is past its retention."""
        end = self._time_of(changelog_key)
        if end <= self.time.ms - self._retention_ms:
            return None
        return self.overlay.get(self.layout.of_changelog(changelog_key, end))

    def put(self, changelog_key: bytes, value: bytes | None) -> bytes:
        """Write a session's bytes, None deletes. Returns the changelog's key. Late sessions are dropped, but logged."""
        end, time = self._time_of(changelog_key), self.time
        now = time.ms
        if end > now:
            if time.unbounded:
                time.ms = now = end
            elif end > time.beyond_ms:
                now = time.see(end)
        if self.layout.expired(end, now):
            self._expired()
            return changelog_key
        if self._interval_ms:
            self.segments.add(end // self._interval_ms)
        self._store(self.layout.of_changelog(changelog_key, end), value)
        return changelog_key

    def remove(self, changelog_key: bytes) -> None:
        """Delete a session. Unlike ``put`` with None, this drops nothing, and in memory it does not advance the
        time."""
        end = self._time_of(changelog_key)
        if self._interval_ms and end > self.time.ms:
            self.time.see(end)
        self._store(self.layout.of_changelog(changelog_key, end), None)

    def find(
        self,
        key_from: bytes | None,
        key_to: bytes | None,
        earliest_end: int,
        latest_start: int,
        *,
        reverse: bool = False,
    ) -> Iterator[tuple[bytes, bytes]]:
        """(changelog key, bytes) of the sessions in a range of keys (None: open end) that end at ``earliest_end`` or
        later and start at ``latest_start`` or earlier."""
        first = self._first_visible(earliest_end)
        scans = self._scans(first, TIME_MAX, key_from, key_to, reverse=reverse)
        return self._matching(scans, key_from, key_to, first, latest_start)

    def _matching(
        self,
        scans: list[Iterator[tuple[Any, bytes]]],
        key_from: bytes | None,
        key_to: bytes | None,
        earliest_end: int,
        latest_start: int,
    ) -> Iterator[tuple[bytes, bytes]]:
        to_changelog = self.layout.to_changelog
        for scan in scans:
            for physical, value in scan:
                changelog_key = to_changelog(physical)
                if changelog_key is not None and session_matches(
                    changelog_key, key_from, key_to, earliest_end, latest_start
                ):
                    yield changelog_key, value

    def find_ended(self, earliest_end: int, latest_end: int) -> Iterator[tuple[bytes, bytes]]:
        """(changelog key, bytes) of the sessions that end in a span of time, both inclusive, in the order of their
        ends. Persistent stores also show sessions past their retention, as long as their segment exists.

        Raises ``StateError`` for a persistent store without an index by time.
        """
        if not self._interval_ms:
            return self._ended_in_memory(self._first_visible(earliest_end), latest_end)
        if not self.spec.by_time:
            raise StateError(
                f"store {self.spec.name} cannot be read by the end of its sessions",
                why="only in-memory stores, and stores of aggregations that emit on window close, keep that order",
                hint="find sessions by their key",
            )
        return self.find_held(max(0, earliest_end, self._first_live), latest_end)

    @property
    def _first_live(self) -> int:
        """The start of the first segment that has not expired."""
        return (self.time.ms - self._retention_ms) // self._interval_ms * self._interval_ms

    def find_held(self, earliest_end: int, latest_end: int) -> Iterator[tuple[bytes, bytes]]:
        """As ``find_ended``, including expired sessions that are held. For stores with that order."""
        if not self._interval_ms:
            return self._ended_in_memory(earliest_end, latest_end)
        pieces = self.layout.spans(earliest_end, latest_end, self.segments)
        return self._in_time_order(pieces, reverse=False)

    def _ended_in_memory(self, first: int, last: int) -> Iterator[tuple[bytes, bytes]]:
        entries = self.overlay.scan((first,), (last + 1,), upper_inclusive=False)
        return ((session_key(key, -start, end), value) for (end, key, start), value in entries)

    def logged(self) -> Iterator[tuple[bytes, bytes]]:
        """All sessions that are still visible, by their keys of the changelog."""
        if not self._interval_ms:
            return self.find_held(self._first_logged, TIME_MAX)
        if not self.spec.by_time:
            return self.find(None, None, 0, TIME_MAX)
        return self.find_held(max(0, min(self._first_live, self._held_ms)), TIME_MAX)


def session_matches(
    changelog_key: bytes, key_from: bytes | None, key_to: bytes | None, earliest_end: int, latest_start: int
) -> bool:
    """Whether a session is among the wanted ones (SessionKeySchema.hasNextCondition)."""
    key, start, end = split_session_key(changelog_key)
    return (
        end >= earliest_end
        and start <= latest_start
        and (key_from is None or key >= key_from)
        and (key_to is None or key <= key_to)
    )
