"""Refuses to write records that their topics would delete at once.

A topic with a retention time deletes by the records' own timestamps, so the results of records from 2013 are deleted
minutes after they are written: outputs look empty, and a window store restores nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime

from pystreams.broker.port import Admin, Consumer
from pystreams.clock import Clock
from pystreams.config import StreamsConfig
from pystreams.errors import RetentionError
from pystreams.runtime.startup.oldest_input import oldest_inputs
from pystreams.times import FAR_FUTURE_MS, likely_seconds, unit_remark
from pystreams.topics.oldest_output import Oldest, Reach, older_than_limits, oldest_outputs
from pystreams.topics.topic_plan import TopicPlan, time_limits
from pystreams.topology.built import BuiltTopology

log = logging.getLogger(__name__)


def check_retention(
    plan: TopicPlan,
    built: BuiltTopology,
    config: StreamsConfig,
    admin: Admin,
    consumer: Consumer,
    clock: Clock,
) -> None:
    """Compare the times of the oldest input records that are still to be processed with the retention of the outputs
    and changelogs to which these times are written.

    Raises ``RetentionError`` unless ``allow_expired``. Logs a warning for topics that may delete records. Looks only at
    the first records of each input partition.
    """
    limits = time_limits(plan, built, config.errors_dead_letter_queue_topic_name)
    if not limits:
        return
    inputs = oldest_inputs(plan, built, config, admin, consumer, clock)
    for timestamp, partition in inputs.values():
        if timestamp >= FAR_FUTURE_MS:
            log.warning("the oldest record of %s is from %s", partition, time_text(timestamp))
    written = oldest_outputs(built, inputs)
    if config.errors_dead_letter_queue_topic_name is not None:
        # Dead letters have the times of their input records, but there may be none.
        dead_letters = config.errors_dead_letter_queue_topic_name
        sure = written.get(dead_letters, Reach()).sure
        written[dead_letters] = Reach(sure, min(inputs.values(), default=None))
    now_ms = clock.now_ms()
    certain = older_than_limits({topic: reach.sure for topic, reach in written.items()}, limits, now_ms)
    possible = older_than_limits({topic: reach.possible for topic, reach in written.items()}, limits, now_ms)
    doubtful = {topic: oldest for topic, oldest in possible.items() if topic not in certain}
    if certain and not config.allow_expired:
        way_out = "start with --allow-expired (the setting allow_expired)"
        raise _error("would be deleted", plan, limits, certain, way_out)
    for fate, found in (("would be deleted", certain), ("may be deleted", doubtful)):
        if found:
            log.warning("%s", _error(fate, plan, limits, found))


def time_text(timestamp: int) -> str:
    """A time for messages, with a remark if it is implausible."""
    try:
        date = f"{datetime.fromtimestamp(timestamp / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError):
        date = "a time beyond the year 9999"
    remark = unit_remark(timestamp)
    return f"{date} ({remark})" if remark else date


def _error(
    fate: str, plan: TopicPlan, limits: Mapping[str, int], found: Mapping[str, Oldest], *way_out: str
) -> RetentionError:
    existing = [topic for topic in found if topic in plan.found]
    mends = [f"pystreams topics alter {topic} --config retention.ms=-1" for topic in existing]
    if len(existing) < len(found):
        mends.append("set window_changelog_retention_ms=-1 (for changelogs that do not exist yet)")
    timestamp, partition = min(found.values())
    if likely_seconds(timestamp):
        mends.insert(0, "write timestamps in milliseconds, or convert them in a timestamp_extractor")
    return RetentionError(
        f"records of this application {fate} right after they are written",
        where=", ".join(f"{topic} (retention.ms={limits[topic]})" for topic in found),
        why=f"the oldest record of {partition} is from {time_text(timestamp)}, and their retention is shorter",
        hint="; or ".join(["; ".join(mends), *way_out]),
    )
