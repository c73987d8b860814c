"""The wanted windows of a read, and the range of the cache that Kafka Streams walks through for it.

A walk passes more windows than the wanted ones, and makes all of them recently used. This determines which windows a
small cache evicts first, and so which results are emitted when.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from pystreams.state.formats import SEQUENCE_MAX, WINDOW_SUFFIX_BYTES, pack_window_suffix

_SUFFIX_MIN = bytes(WINDOW_SUFFIX_BYTES)


ReadOf: TypeAlias = Literal["key", "range", "all"]


class WindowRead(NamedTuple):
    """The wanted windows: a range of keys (None: open end) and of starts, all inclusive.

    ``of``: one key; a range of keys, which may be a single one; or all keys.
    """

    key_from: bytes | None
    key_to: bytes | None
    time_from: int
    time_to: int
    of: ReadOf
    reverse: bool = False

    def wants(self, window: tuple[bytes, int]) -> bool:
        """Whether a window, given by key and start, is wanted."""
        key, start = window
        return (
            self.time_from <= start <= self.time_to
            and (self.key_from is None or key >= self.key_from)
            and (self.key_to is None or key <= self.key_to)
        )

    @property
    def single(self) -> bool:
        """Whether the range is a single key."""
        return self.key_from is not None and self.key_from == self.key_to

    def segments(self, interval_ms: int, newest_ms: int) -> tuple[int, int]:
        """The first and the last segment of the cache that the walk passes, if no window is newer than
        ``newest_ms``."""
        first, last = self.time_from // interval_ms, min(self.time_to, max(0, newest_ms)) // interval_ms
        # A walk starts in the first segment of its direction, even if it has no windows.
        return (min(first, last), last) if self.reverse else (first, max(first, last))

    def times_in(self, segment: int, interval_ms: int, newest_ms: int) -> tuple[int, int]:
        """The first and the last start that a walk passes in a segment, for one key's windows or for those in the
        order of time."""
        begin = segment * interval_ms
        floor = begin if self.reverse else max(begin, self.time_from)
        ceiling = min(self.time_to, begin + interval_ms - 1)
        return floor, min(ceiling, newest_ms) if self.reverse else ceiling

    @property
    def lower(self) -> bytes | None:
        """The start of the walk in an order by key. Source: OrderedBytes.lowerRange."""
        return None if self.key_from is None else self.key_from + _SUFFIX_MIN

    @property
    def upper(self) -> bytes | None:
        """The end of the walk: longer keys may follow a key. Source: OrderedBytes.upperRange.

        If the last key ends with zero bytes, windows of its prefixes lie behind it: callers must also check ``wants``.
        """
        key = self.key_to
        if key is None:
            return None
        suffix = pack_window_suffix(self.time_to, SEQUENCE_MAX)
        kept = len(key)
        if suffix[0]:
            kept = next((i for i in range(1, len(key)) if key[i] < suffix[0]), len(key))
        return key[:kept] + suffix


def place_by_key(window: tuple[bytes, int]) -> bytes:
    """The place of a window in a segment whose windows are sorted by key."""
    key, start = window
    return key + pack_window_suffix(start, 0)


def place_by_time(window: tuple[bytes, int]) -> tuple[int, bytes]:
    """The place of a window in an order by start."""
    key, start = window
    return start, key + _SEQUENCE_MIN


_SEQUENCE_MIN = bytes(WINDOW_SUFFIX_BYTES - 8)
#: Sorts after the key of any place by time.
SEQUENCE_END = SEQUENCE_MAX.to_bytes(WINDOW_SUFFIX_BYTES - 8, "big")
