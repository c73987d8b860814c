"""Windows of event time, and when their results are emitted. All durations are timedeltas or milliseconds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pystreams.dsl.durations import Duration, check_milliseconds, milliseconds
from pystreams.errors import TopologyError
from pystreams.state.layers.time_layer import TIME_MAX


class EmitStrategy(Enum):
    """When windowed aggregations emit. Source: org.apache.kafka.streams.kstream.EmitStrategy (KIP-825)."""

    ON_WINDOW_UPDATE = "on_window_update"
    ON_WINDOW_CLOSE = "on_window_close"

    @staticmethod
    def on_window_update() -> EmitStrategy:
        """Each change of a window's aggregate, or those that the cache lets through: the default."""
        return EmitStrategy.ON_WINDOW_UPDATE

    @staticmethod
    def on_window_close() -> EmitStrategy:
        """The last aggregate of each window, once, when a record arrives behind its end and grace."""
        return EmitStrategy.ON_WINDOW_CLOSE


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Windows of a fixed size, aligned to the epoch: ``tumbling`` or ``hopping``.

    A window takes records until stream time reaches its end plus ``grace``; later ones are dropped and counted.
    Its start is within, its end is not. Source: org.apache.kafka.streams.kstream.TimeWindows.
    """

    size_ms: int
    advance_ms: int
    grace_ms: int

    def __post_init__(self) -> None:
        check_milliseconds(self, size_ms=1, advance_ms=1, grace_ms=0)
        if self.advance_ms > self.size_ms:
            raise TopologyError(
                f"windows of {self.size_ms} ms cannot advance by {self.advance_ms} ms",
                why="records between two windows would be in none",
            )

    @classmethod
    def tumbling(cls, size: Duration, *, grace: Duration = 0) -> TimeWindows:
        """Windows one after the other: every record is in exactly one."""
        return cls.hopping(size, advance=size, grace=grace)

    @classmethod
    def hopping(cls, size: Duration, *, advance: Duration, grace: Duration = 0) -> TimeWindows:
        """A new window every ``advance``: they overlap if that is less than ``size``, and a record is in several."""
        size_ms = milliseconds(size, "size", least=1)
        advance_ms = milliseconds(advance, "advance", least=1)
        return cls(size_ms, advance_ms, milliseconds(grace, "grace"))

    @property
    def retention_ms(self) -> int:
        """How long windows have to be kept."""
        return self.size_ms + self.grace_ms


@dataclass(frozen=True, slots=True)
class UnlimitedWindows:
    """One window for each key, which begins at ``start_ms`` and never ends; earlier records are in none.

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
        """Up to the end of time."""
        return TIME_MAX - self.start_ms

    @property
    def grace_ms(self) -> int:
        """Nothing is ever late."""
        return 0

    @property
    def retention_ms(self) -> int:
        """How long the window has to be kept: for ever."""
        return TIME_MAX


@dataclass(frozen=True, slots=True)
class SlidingWindows:
    """Windows of records that are no further apart than a time difference: there is one that ends with each record, and
    one that begins right behind each, as far as their records differ. Start and end are both within.

    A window takes records until stream time is past its end plus ``grace``; later ones are dropped and counted. Records
    with timestamps below the difference share the window that starts at 0.
    Source: org.apache.kafka.streams.kstream.SlidingWindows.
    """

    difference_ms: int
    grace_ms: int

    def __post_init__(self) -> None:
        check_milliseconds(self, difference_ms=0, grace_ms=0)

    @classmethod
    def of(cls, time_difference: Duration, *, grace: Duration = 0) -> SlidingWindows:
        """Windows in which no two records are further apart than ``time_difference``."""
        return cls(milliseconds(time_difference, "time_difference"), milliseconds(grace, "grace"))

    @property
    def size_ms(self) -> int:
        """From start to end."""
        return self.difference_ms

    @property
    def retention_ms(self) -> int:
        """How long windows have to be kept: a record may need those that ended ``difference`` before it."""
        return 2 * self.difference_ms + self.grace_ms


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Sessions: records of a key that follow each other within a gap of inactivity. Start and end are those of the
    first and the last record, both within.

    A record that lies between two sessions makes them one. A session takes records until stream time is past its end
    plus gap and ``grace``; later ones are dropped and counted.
    Source: org.apache.kafka.streams.kstream.SessionWindows.
    """

    gap_ms: int
    grace_ms: int

    def __post_init__(self) -> None:
        check_milliseconds(self, gap_ms=1, grace_ms=0)

    @classmethod
    def of(cls, inactivity_gap: Duration, *, grace: Duration = 0) -> SessionWindows:
        """Sessions that end where nothing happens for longer than ``inactivity_gap``."""
        return cls(milliseconds(inactivity_gap, "inactivity_gap", least=1), milliseconds(grace, "grace"))

    @property
    def retention_ms(self) -> int:
        """How long sessions have to be kept."""
        return self.gap_ms + self.grace_ms


def checked_windows(windows: object) -> None:
    """Raises ``TopologyError`` for what is not a definition of windows of one stream."""
    if not isinstance(windows, TimeWindows | UnlimitedWindows | SlidingWindows | SessionWindows):
        raise TopologyError(
            f"windowed_by takes windows, not {windows!r}",
            hint="give TimeWindows.tumbling(size), TimeWindows.hopping(size, advance=...), SlidingWindows.of(...), "
            "SessionWindows.of(...) or UnlimitedWindows.of()",
        )


def emits_on_close(strategy: object) -> bool:
    """Whether results are emitted when their windows have closed. Raises ``TopologyError`` for no strategy."""
    if not isinstance(strategy, EmitStrategy):
        raise TopologyError(
            f"emit_strategy takes a strategy, not {strategy!r}",
            hint="give EmitStrategy.on_window_close() or EmitStrategy.on_window_update()",
        )
    return strategy is EmitStrategy.ON_WINDOW_CLOSE
