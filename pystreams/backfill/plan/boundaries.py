"""What a plan says of the boundaries between tables and the log, and what it refuses there."""

from __future__ import annotations

import logging

from pystreams.backfill.plan.moments import Moment, moment_ms
from pystreams.backfill.sources import Bounded, Remark, Source, TopicSources
from pystreams.clock import SystemClock
from pystreams.errors import ConfigError
from pystreams.times import show_time

log = logging.getLogger(__name__)


def boundary_of(given: Moment) -> int:
    """The boundary in ms. Raises ``ConfigError`` for what is not a time, and for one that is yet to come."""
    boundary_ms, now_ms = moment_ms(given, "boundary"), SystemClock().now_ms()
    if boundary_ms > now_ms:
        raise ConfigError(
            f"the boundary {show_time(boundary_ms)} is in the future",
            why=f"it is {show_time(now_ms)}; the table cannot have all records before the boundary",
            hint="choose a time up to which the table has all records",
        )
    return boundary_ms


def bounded(source: Source) -> list[Bounded]:
    """The sources that are tables up to a boundary, by the names of their topics."""
    by_topic = source.by_topic if isinstance(source, TopicSources) else {}
    return [one for _, one in sorted(by_topic.items()) if isinstance(one, Bounded)]


def remarks_of(source: Source) -> tuple[Remark, ...]:
    """What is at the boundary of each topic that has one; warnings are logged.

    Raises ``OffsetOutOfRangeError`` where records would be lost for certain.
    """
    now_ms, found = SystemClock().now_ms(), list[Remark]()
    for one in bounded(source):
        seam = one.seam()
        seam.check()
        found += seam.remarks(now_ms)
    for remark in found:
        if remark.kind == "warning":
            log.warning("topic %s: %s", remark.topic, remark.text)
    return tuple(found)
