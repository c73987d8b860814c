"""Windows of event time."""

from __future__ import annotations

from dataclasses import dataclass

from pystreams.dsl.durations import Duration, milliseconds
from pystreams.errors import TopologyError


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Windows of a fixed size, aligned to the epoch: ``tumbling`` or ``hopping``.

    A window takes records until stream time reaches its end plus ``grace``; later ones are dropped and counted.
    All durations are timedeltas or milliseconds. Source: org.apache.kafka.streams.kstream.TimeWindows.
    """

    size_ms: int
    advance_ms: int
    grace_ms: int

    @classmethod
    def tumbling(cls, size: Duration, *, grace: Duration = 0) -> TimeWindows:
        """Windows one after the other: every record is in exactly one."""
        return cls.hopping(size, advance=size, grace=grace)

    @classmethod
    def hopping(cls, size: Duration, *, advance: Duration, grace: Duration = 0) -> TimeWindows:
        """A new window every ``advance``: they overlap if that is less than ``size``, and a record is in several."""
        size_ms = milliseconds(size, "size", least=1)
        advance_ms = milliseconds(advance, "advance", least=1)
        if advance_ms > size_ms:
            raise TopologyError(
                f"windows of {size_ms} ms cannot advance by {advance_ms} ms",
                why="records between two windows would be in none",
            )
        return cls(size_ms, advance_ms, milliseconds(grace, "grace"))
