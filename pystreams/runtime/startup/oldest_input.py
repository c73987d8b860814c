"""The oldest records that an application has still to read from its inputs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial

from pystreams.broker.port import Admin, Consumer
from pystreams.clock import Clock, Deadline
from pystreams.config import StreamsConfig
from pystreams.engine.node_defaults import extractor_of, serdes_of
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS, RecordBatch
from pystreams.runtime.tasks.start_positions import offset_ago, reset_position
from pystreams.serde.base import AnySerde
from pystreams.timestamps import (
    ConsumedRecord,
    RecordTimestamp,
    WallClockTimestamp,
    extracted_ms,
)
from pystreams.topics.oldest_output import Oldest
from pystreams.topics.topic_plan import TopicPlan
from pystreams.topology.built import BuiltTopology
from pystreams.topology.nodes import SourceNode

log = logging.getLogger(__name__)

_SAMPLE_TIMEOUT_MS = 5_000
_SAMPLE_RECORDS = 100


def oldest_inputs(
    plan: TopicPlan,
    built: BuiltTopology,
    config: StreamsConfig,
    admin: Admin,
    consumer: Consumer,
    clock: Clock,
) -> dict[str, Oldest]:
    """The least timestamp among the next records of each external topic. Topics without such records, and topics whose
    times are only known after processing, are left out."""
    internal = built.internal_topics
    inputs = {
        partition: built.subtopologies[task.subtopology].source_for(partition.topic)
        for task, partitions in plan.partitioning.tasks.items()
        for partition in partitions
        if partition.topic not in internal
    }
    beginnings, ends = admin.beginning_offsets(list(inputs)), admin.end_offsets(list(inputs))
    # Do not wait for open transactions: that of a dead member stays open for long, until the member is fenced.
    committed = admin.group_offsets(built.application_id, stable=False)
    waiting: dict[TopicPartition, int] = {}
    for partition, source in inputs.items():
        if partition in committed:
            start = max(beginnings[partition], committed[partition].offset)
        else:
            reset = (source.auto_offset_reset if source is not None else None) or config.auto_offset_reset
            start = reset_position(
                partition, reset, beginnings[partition], ends[partition], partial(offset_ago, admin, clock)
            )
        if start < ends[partition]:
            waiting[partition] = start
    oldest: dict[str, Oldest] = {}
    for batch in _first_batches(consumer, waiting, ends, clock):
        partition = TopicPartition(batch.topic, batch.partition)
        source = inputs[partition]
        timestamps = _timestamps(batch, source, config) if source is not None else []
        least = min((t for t in timestamps if t >= 0), default=None)
        if least is not None:
            found = least, partition
            oldest[batch.topic] = min(found, oldest.get(batch.topic, found))
    return oldest


def _first_batches(
    consumer: Consumer, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], clock: Clock
) -> list[RecordBatch]:
    """The first batch of each partition that answers in time."""
    waiting = set(starts)
    batches: list[RecordBatch] = []
    consumer.assign(starts)
    deadline = Deadline(clock, _SAMPLE_TIMEOUT_MS)
    while waiting and not deadline.expired():
        for batch in consumer.poll(100):
            partition = TopicPartition(batch.topic, batch.partition)
            waiting.remove(partition)
            consumer.unassign([partition])
            batches.append(batch)
        # These partitions have only gaps up to their ends.
        for partition in [p for p in waiting if consumer.position(p) >= ends[p]]:
            waiting.remove(partition)
            consumer.unassign([partition])
    consumer.unassign(list(waiting))
    return batches


def _timestamps(batch: RecordBatch, source: SourceNode, config: StreamsConfig) -> list[int]:
    """The timestamps that a task would give the records of a batch, if they can be computed without a task."""
    extractor = extractor_of(source, config)
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
            extracted.append(extracted_ms(extractor(record, -1)))
        except Exception as error:  # noqa: BLE001 - the task's handlers will meet the same record and decide
            log.debug("the retention check skips %s-%d: %s", batch.topic, batch.partition, error)
    return extracted


def _reader(serde: AnySerde, topic: str) -> Callable[[bytes | None], object]:
    deserialize = serde.deserializer(topic)
    return lambda data: None if data is None else deserialize(data)
