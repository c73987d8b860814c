"""What is read of a window store, and between which places of its cache Kafka Streams then walks.

A walk looks at more windows than those that are wanted, and whatever it looks at becomes recently used: that decides
which windows a small cache evicts first, and so what is emitted when.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from pystreams.state.formats import SEQUENCE_MAX, WINDOW_SUFFIX_BYTES, pack_window_suffix

_SUFFIX_MIN = bytes(WINDOW_SUFFIX_BYTES)


ReadOf: TypeAlias = Literal["key", "range", "all"]


class WindowRead(NamedTuple):
    """Keys (None: open) and starts of the windows that are wanted, all ends included.

    ``of``: one key's; those of a range of keys, which may be a single one; or those of all keys.
    """

    key_from: bytes | None
    key_to: bytes | None
    time_from: int
    time_to: int
    of: ReadOf
    reverse: bool = False

    def wants(self, window: tuple[bytes, int]) -> bool:
        """True if a window, by key and start, is one of them."""
        key, start = window
        return (
            self.time_from <= start <= self.time_to
            and (self.key_from is None or key >= self.key_from)
            and (self.key_to is None or key <= self.key_to)
        )

    @property
    def single(self) -> bool:
        """True for one key."""
        return self.key_from is not None and self.key_from == self.key_to

    def segments(self, interval_ms: int, newest_ms: int) -> tuple[int, int]:
        """The first and the last segment of the cache that are walked through, where no window is newer than
        ``newest_ms``."""
        first, last = self.time_from // interval_ms, min(self.time_to, max(0, newest_ms)) // interval_ms
        # A walk begins in the first one of its direction, whatever lies there.
        return (min(first, last), last) if self.reverse else (first, max(first, last))

    def times_in(self, segment: int, interval_ms: int, newest_ms: int) -> tuple[int, int]:
        """The first and the last start between which one key's windows, or those in the order of time, are walked
        through in a segment."""
        begin = segment * interval_ms
        floor = begin if self.reverse else max(begin, self.time_from)
        ceiling = min(self.time_to, begin + interval_ms - 1)
        return floor, min(ceiling, newest_ms) if self.reverse else ceiling

    @property
    def lower(self) -> bytes | None:
        """Where windows lie by key: what is walked through begins here. Source: OrderedBytes.lowerRange."""
        return None if self.key_from is None else self.key_from + _SUFFIX_MIN

    @property
    def upper(self) -> bytes | None:
        """Where it ends: keys may be followed by others that are longer. Source: OrderedBytes.upperRange.

        If zero bytes end the last key, windows of keys that it begins with lie behind: who walks asks ``wants``, too.
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
    """Where a window lies in a segment whose windows are in the order of their keys."""
    key, start = window
    return key + pack_window_suffix(start, 0)


def place_by_time(window: tuple[bytes, int]) -> tuple[int, bytes]:
    """The same in the order of their starts."""
    key, start = window
    return start, key + _SEQUENCE_MIN


_SEQUENCE_MIN = bytes(WINDOW_SUFFIX_BYTES - 8)
#: Behind the key of any place by time.
SEQUENCE_END = SEQUENCE_MAX.to_bytes(WINDOW_SUFFIX_BYTES - 8, "big")
