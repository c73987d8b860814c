"""The stream time of a store while it is restored: that of its records, up to a limit."""

from __future__ import annotations

from pystreams.state.formats import pack_int64, unpack_int64
from pystreams.stream_time import NO_TIME, TIME_MAX, Observed


def packed_time(time_ms: int | None) -> bytes:
    """A time (ms), empty if there is none, for a layer's marks."""
    return b"" if time_ms is None else pack_int64(time_ms)


def unpacked_time(mark: bytes) -> int:
    """The time (ms) of a mark, -1 if it is empty."""
    return unpack_int64(mark)[0] if mark else NO_TIME


class RestoredTime:
    """Advances the ``time`` of a store to the times of restored records, up to a limit. It advances further when the
    limit is raised, also after a restart."""

    __slots__ = ("_latest_ms", "_seen_limit_ms", "_time", "_time_limit_ms")

    def __init__(self, time: Observed) -> None:
        self._time = time
        self._time_limit_ms = self._seen_limit_ms = TIME_MAX
        #: The latest time of the restored records, which may be later than the store's time because of the limit.
        self._latest_ms = NO_TIME

    def limit(self, time_ms: int, seen_ms: int) -> bool:
        """Set the limits for the time in force and for the time that was seen (ms). Returns whether the time may have
        moved."""
        self._time_limit_ms, self._seen_limit_ms = time_ms, seen_ms
        if self._latest_ms == NO_TIME:
            return False
        self.restored(self._latest_ms)
        return True

    def restored(self, time_ms: int) -> None:
        """A record with this time was restored."""
        self._latest_ms = max(self._latest_ms, time_ms)
        self._time.go_on(min(time_ms, self._time_limit_ms), min(time_ms, self._seen_limit_ms))
        # Entries later than the time seen at the commit come from records that were not committed: the task will
        # process these records again.
        self._time.repeat(self._latest_ms if self._latest_ms > self._seen_limit_ms else NO_TIME)

    def mark(self) -> bytes:
        """For ``load``: the latest time that was restored, empty unless a limit keeps the time in force below it."""
        return packed_time(self._latest_ms if self._latest_ms > self._time.ms else None)

    def load(self, mark: bytes) -> None:
        """Continue after a restart."""
        self._latest_ms = unpacked_time(mark)
