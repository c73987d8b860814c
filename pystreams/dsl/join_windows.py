"""The windows of a join of two streams."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pystreams.dsl.durations import Duration, check_milliseconds, milliseconds
from pystreams.errors import TopologyError
from pystreams.misspelt import answers_misspelt

_INT64_MIN = -(1 << 63)


@answers_misspelt
@dataclass(frozen=True, slots=True)
class JoinWindows:
    """The largest difference in time of two records that are joined: the right record may be from ``before_ms`` earlier
    to ``after_ms`` later than the left one, both inclusive.

    ``grace_ms`` is how much longer a window stays open for late records. In ``left_join`` and ``outer_join`` a record
    without a match is emitted when its window has closed.
    All durations are timedeltas or milliseconds. Source: org.apache.kafka.streams.kstream.JoinWindows.
    """

    before_ms: int
    after_ms: int
    grace_ms: int = 0

    def __post_init__(self) -> None:
        check_milliseconds(self, before_ms=_INT64_MIN, after_ms=_INT64_MIN, grace_ms=0)
        if self.size_ms < 0:
            raise TopologyError(
                f"a join window from {-self.before_ms} ms to {self.after_ms} ms ends before it starts",
                why="the sum of before and after must not be negative; one of them may be",
            )

    @classmethod
    def of(cls, time_difference: Duration, *, grace: Duration = 0) -> JoinWindows:
        """Join records whose times differ by at most ``time_difference``, in either direction."""
        difference_ms = milliseconds(time_difference, "time_difference")
        return cls(difference_ms, difference_ms, milliseconds(grace, "grace"))

    def before(self, time_difference: Duration) -> JoinWindows:
        """The same windows, but the right record may be earlier by this much; negative: it must be later by as much."""
        return replace(self, before_ms=milliseconds(time_difference, "before", least=_INT64_MIN))

    def after(self, time_difference: Duration) -> JoinWindows:
        """The same windows, but the right record may be later by this much; negative: it must be earlier by as much."""
        return replace(self, after_ms=milliseconds(time_difference, "after", least=_INT64_MIN))

    @property
    def size_ms(self) -> int:
        """The size of the window: the time from the earliest to the latest record that a record can be joined with."""
        return self.before_ms + self.after_ms

    @property
    def retention_ms(self) -> int:
        """How long the records of each stream are kept, in ms."""
        return self.size_ms + self.grace_ms
