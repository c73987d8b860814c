"""Refuses to write records that their topics would delete at once.

A topic with a time limit deletes by the records' own timestamps, so what an application makes of records of 2013 is
gone minutes after it is written: outputs look empty, and a window store restores nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from pystreams.broker.port import Admin, Consumer
from pystreams.clock import Clock, Deadline
from pystreams.config import StreamsConfig
from pystreams.errors import RetentionError
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS, RecordBatch
from pystreams.runtime.linking import serdes_of
from pystreams.runtime.topic_setup import TopicPlan
from pystreams.serde.base import AnySerde
from pystreams.timestamps import ConsumedRecord, RecordTimestamp, WallClockTimestamp, resolve_extractor
from pystreams.topology.built import BuiltTopology
from pystreams.topology.nodes import SourceNode

log = logging.getLogger(__name__)

_SAMPLE_TIMEOUT_MS = 5_000
_SAMPLE_RECORDS = 100


def check_retention(
    plan: TopicPlan,
    built: BuiltTopology,
    config: StreamsConfig,
    admin: Admin,
    consumer: Consumer,
    clock: Clock,
) -> None:
    """Compare the oldest input record that is still to be processed with the retention of outputs and changelogs.

    Raises ``RetentionError`` unless ``allow_expired``. Only the first records of each input partition are looked at.
    """
    limits = time_limits(plan, built, config.errors_dead_letter_queue_topic_name)
    if not limits:
        return
    oldest = _oldest_input(plan, built, config, admin, consumer, clock)
    if oldest is None:
        return
    partition, timestamp = oldest
    age_ms = clock.now_ms() - timestamp
    expired = {topic: limit for topic, limit in limits.items() if limit < age_ms}
    if not expired:
        return
    error = _expired(plan, expired, partition, timestamp)
    if not config.allow_expired:
        raise error
    log.warning("%s", error)


def time_limits(plan: TopicPlan, built: BuiltTopology, dead_letter_topic: str | None) -> dict[str, int]:
    """The retention in ms of every output and changelog that deletes by the records' timestamps. Dead letters have
    their records' timestamps, too."""
    written = {topic for sub in built.subtopologies for topic in (*sub.sink_topics, *sub.changelogs.values())}
    if dead_letter_topic is not None:
        written.add(dead_letter_topic)
    limits: dict[str, int] = {}
    for topic in sorted(written):
        limit = retention_of(plan.config(topic))
        if limit is not None:
            limits[topic] = limit
    return limits


def retention_of(config: Mapping[str, str]) -> int | None:
    """The age in ms past which a topic with these settings deletes records by their timestamps; None: it does not."""
    retention_ms = int(config.get("retention.ms", -1))
    by_timestamp = config.get("message.timestamp.type", "CreateTime") == "CreateTime"
    deletes = "delete" in config.get("cleanup.policy", "delete")
    return retention_ms if deletes and retention_ms >= 0 and by_timestamp else None


def _oldest_input(
    plan: TopicPlan,
    built: BuiltTopology,
    config: StreamsConfig,
    admin: Admin,
    consumer: Consumer,
    clock: Clock,
) -> tuple[TopicPartition, int] | None:
    """The least timestamp among the first records that each external input still has to offer."""
    internal = built.internal_topics
    inputs = {
        partition: built.subtopologies[task.subtopology].source_for(partition.topic)
        for task, partitions in plan.partitioning.tasks.items()
        for partition in partitions
        if partition.topic not in internal
    }
    beginnings, ends = admin.beginning_offsets(list(inputs)), admin.end_offsets(list(inputs))
    committed = admin.group_offsets(built.application_id)
    starts = {p: max(beginnings[p], committed[p].offset if p in committed else 0) for p in inputs}
    waiting = {p: start for p, start in starts.items() if start < ends[p]}
    consumer.assign(waiting)
    deadline = Deadline(clock, _SAMPLE_TIMEOUT_MS)
    oldest: tuple[TopicPartition, int] | None = None
    while waiting and not deadline.expired():
        for batch in consumer.poll(100):
            partition = TopicPartition(batch.topic, batch.partition)
            del waiting[partition]
            consumer.unassign([partition])
            source = inputs[partition]
            timestamps = _timestamps(batch, source, config) if source is not None else []
            least = min((t for t in timestamps if t >= 0), default=None)
            if least is not None and (oldest is None or least < oldest[1]):
                oldest = partition, least
        # Nothing but holes up to the end.
        for partition in [p for p in waiting if consumer.position(p) >= ends[p]]:
            del waiting[partition]
            consumer.unassign([partition])
    consumer.unassign(list(waiting))
    return oldest


def _timestamps(batch: RecordBatch, source: SourceNode, config: StreamsConfig) -> list[int]:
    """The times that a task would give to the records of a batch, as far as they can be told without one."""
    extractor = resolve_extractor(source.timestamp_extractor or config.default_timestamp_extractor)
    if isinstance(extractor, WallClockTimestamp):
        return []
    if isinstance(extractor, RecordTimestamp):
        return batch.timestamps
    key_serde, value_serde = serdes_of(source, config)
    read_key, read_value = _reader(key_serde, batch.topic), _reader(value_serde, batch.topic)
    extracted: list[int] = []
    for i in range(min(_SAMPLE_RECORDS, len(batch))):
        headers = batch.headers[i] if batch.headers is not None else NO_HEADERS
        try:
            key, value = read_key(batch.keys[i]), read_value(batch.values[i])
            record = ConsumedRecord(
                batch.topic, batch.partition, batch.offsets[i], batch.timestamps[i], key, value, headers
            )
            extracted.append(extractor(record, -1))
        except Exception as error:  # noqa: BLE001 - the task's handlers will meet the same record and decide
            log.debug("the retention check leaves %s-%d out: %s", batch.topic, batch.partition, error)
    return extracted


def _reader(serde: AnySerde, topic: str) -> Callable[[bytes | None], object]:
    deserialize = serde.deserializer(topic)
    return lambda data: None if data is None else deserialize(data)


def _expired(
    plan: TopicPlan, expired: Mapping[str, int], partition: TopicPartition, timestamp: int
) -> RetentionError:
    existing = [topic for topic in expired if topic in plan.found]
    mends = [f"pystreams topics alter {topic} --config retention.ms=-1" for topic in existing]
    if len(existing) < len(expired):
        mends.append("set window_changelog_retention_ms=-1 (for changelogs that do not exist yet)")
    date = datetime.fromtimestamp(timestamp / 1000, UTC)
    limits = ", ".join(f"{topic} (retention.ms={limit})" for topic, limit in expired.items())
    return RetentionError(
        "what this application writes would be deleted right after it is written",
        where=limits,
        why=f"the oldest record of {partition} is of {date:%Y-%m-%d %H:%M} UTC, older than their retention",
        hint="; ".join(mends) + "; or start with allow_expired",
    )
