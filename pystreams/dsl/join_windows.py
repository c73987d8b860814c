"""Which records of two streams meet."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pystreams.dsl.durations import Duration, check_milliseconds, milliseconds
from pystreams.errors import TopologyError

_INT64_MIN = -(1 << 63)


@dataclass(frozen=True, slots=True)
class JoinWindows:
    """How far apart in time two records of one key may be and still be joined; seen from the left stream's record, the
    right one's may be ``before_ms`` earlier to ``after_ms`` later, both ends included.

    ``grace_ms`` is how much longer a window stays open for records that come late. A record that waits for a match
    (``left_join``, ``outer_join``) leaves without one when its window has closed.
    All durations are timedeltas or milliseconds. Source: org.apache.kafka.streams.kstream.JoinWindows.
    """

    before_ms: int
    after_ms: int
    grace_ms: int = 0

    def __post_init__(self) -> None:
        check_milliseconds(self, before_ms=_INT64_MIN, after_ms=_INT64_MIN, grace_ms=0)
        if self.size_ms < 0:
            raise TopologyError(
                f"a join window from {-self.before_ms} ms to {self.after_ms} ms ends before it begins",
                why="before and after must not add up to less than 0; one of them may be negative",
            )

    @classmethod
    def of(cls, time_difference: Duration, *, grace: Duration = 0) -> JoinWindows:
        """Records that are at most ``time_difference`` apart, whichever of them is the earlier one."""
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
        """From the earliest to the latest record that a record can meet."""
        return self.before_ms + self.after_ms

    @property
    def retention_ms(self) -> int:
        """How long the records of each stream are kept."""
        return self.size_ms + self.grace_ms
