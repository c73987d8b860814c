"""Windows of event time, and the time when their results are emitted. Durations are timedeltas or milliseconds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pystreams.dsl.durations import Duration, check_milliseconds, milliseconds
from pystreams.errors import TopologyError
from pystreams.misspelt import answers_misspelt
from pystreams.stream_time import TIME_MAX


class EmitStrategy(Enum):
    """When windowed aggregations emit. Source: org.apache.kafka.streams.kstream.EmitStrategy (KIP-825)."""

    ON_WINDOW_UPDATE = "on_window_update"
    ON_WINDOW_CLOSE = "on_window_close"

    @staticmethod
    def on_window_update() -> EmitStrategy:
        """Emit each change of a window's aggregate, or those that the cache lets through. The default."""
        return EmitStrategy.ON_WINDOW_UPDATE

    @staticmethod
    def on_window_close() -> EmitStrategy:
        """Emit only the final aggregate of each window, once, when a record arrives later than its end and grace."""
        return EmitStrategy.ON_WINDOW_CLOSE


@answers_misspelt
@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Windows of a fixed size, aligned to the epoch: ``tumbling`` or ``hopping``.

    A window accepts records until stream time reaches its end plus ``grace``; later ones are dropped and counted. The
    start is inclusive, the end exclusive. Source: org.apache.kafka.streams.kstream.TimeWindows.
    """

    size_ms: int
    advance_ms: int
    grace_ms: int

    def __post_init__(self) -> None:
        check_milliseconds(self, size_ms=1, advance_ms=1, grace_ms=0)
        if self.advance_ms > self.size_ms:
            raise TopologyError(
                f"windows of {self.size_ms} ms cannot advance by {self.advance_ms} ms",
                why="records between two windows would be in no window",
            )

    @classmethod
    def tumbling(cls, size: Duration, *, grace: Duration = 0) -> TimeWindows:
        """Consecutive windows without gaps: every record is in exactly one."""
        return cls.hopping(size, advance=size, grace=grace)

    @classmethod
    def hopping(cls, size: Duration, *, advance: Duration, grace: Duration = 0) -> TimeWindows:
        """A new window every ``advance``: they overlap if that is less than ``size``, and a record is in several."""
        size_ms = milliseconds(size, "size", least=1)
        advance_ms = milliseconds(advance, "advance", least=1)
        return cls(size_ms, advance_ms, milliseconds(grace, "grace"))

    @property
    def retention_ms(self) -> int:
        """How long windows must be kept, in ms."""
        return self.size_ms + self.grace_ms


@answers_misspelt
@dataclass(frozen=True, slots=True)
class UnlimitedWindows:
    """One window for each key, which starts at ``start_ms`` and never ends; earlier records are in no window.

    Source: org.apache.kafka.streams.kstream.UnlimitedWindows.
    """

    start_ms: int

    def __post_init__(self) -> None:
        check_milliseconds(self, start_ms=0)

    @classmethod
    def of(cls, *, start: int = 0) -> UnlimitedWindows:
        """The window from ``start`` (milliseconds since the epoch) on."""
        return cls(milliseconds(start, "start"))

    @property
    def size_ms(self) -> int:
        """The size, in ms: to the greatest timestamp."""
        return TIME_MAX - self.start_ms

    @property
    def grace_ms(self) -> int:
        """The grace period: 0, because no record is late."""
        return 0

    @property
    def retention_ms(self) -> int:
        """How long the window must be kept: for ever."""
        return TIME_MAX


@answers_misspelt
@dataclass(frozen=True, slots=True)
class SlidingWindows:
    """Windows of records whose times differ by at most the time difference: one window ends with each record, and one
    starts directly after each record, unless it would have the same records. Start and end are inclusive.

    A window accepts records until stream time is past its end plus ``grace``; later ones are dropped and counted.
    Records with timestamps below the difference share the window that starts at 0.
    Source: org.apache.kafka.streams.kstream.SlidingWindows.
    """

    difference_ms: int
    grace_ms: int

    def __post_init__(self) -> None:
        check_milliseconds(self, difference_ms=0, grace_ms=0)

    @classmethod
    def of(cls, time_difference: Duration, *, grace: Duration = 0) -> SlidingWindows:
        """Windows in which the times of any two records differ by at most ``time_difference``."""
        return cls(milliseconds(time_difference, "time_difference"), milliseconds(grace, "grace"))

    @property
    def size_ms(self) -> int:
        """The time from start to end, in ms."""
        return self.difference_ms

    @property
    def retention_ms(self) -> int:
        """How long windows must be kept, in ms: a record may need those that ended ``difference`` before it."""
        return 2 * self.difference_ms + self.grace_ms


@answers_misspelt
@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Sessions: records of a key with no longer pause between them than the gap. A session starts with its first record
    and ends with its last, both inclusive.

    A record between two sessions merges them. A session accepts records until stream time is past its end plus gap and
    ``grace``; later ones are dropped and counted.
    Source: org.apache.kafka.streams.kstream.SessionWindows.
    """

    gap_ms: int
    grace_ms: int

    def __post_init__(self) -> None:
        check_milliseconds(self, gap_ms=1, grace_ms=0)

    @classmethod
    def of(cls, inactivity_gap: Duration, *, grace: Duration = 0) -> SessionWindows:
        """Sessions that end after a time without records that is longer than ``inactivity_gap``."""
        return cls(milliseconds(inactivity_gap, "inactivity_gap", least=1), milliseconds(grace, "grace"))

    @property
    def retention_ms(self) -> int:
        """How long sessions must be kept, in ms."""
        return self.gap_ms + self.grace_ms


def checked_windows(windows: object) -> None:
    """Raise ``TopologyError`` if ``windows`` does not define windows of a stream."""
    if not isinstance(windows, TimeWindows | UnlimitedWindows | SlidingWindows | SessionWindows):
        raise TopologyError(
            f"windowed_by takes windows, not {windows!r}",
            hint="give TimeWindows.tumbling(size), TimeWindows.hopping(size, advance=...), SlidingWindows.of(...), "
            "SessionWindows.of(...) or UnlimitedWindows.of()",
        )


def emits_on_close(strategy: object) -> bool:
    """Whether results are emitted on close. Raises ``TopologyError`` if ``strategy`` is not an ``EmitStrategy``."""
    if not isinstance(strategy, EmitStrategy):
        raise TopologyError(
            f"emit_strategy takes a strategy, not {strategy!r}",
            hint="give EmitStrategy.on_window_close() or EmitStrategy.on_window_update()",
        )
    return strategy is EmitStrategy.ON_WINDOW_CLOSE
