"""The same applications on an embedded log: prefix and rest of a history, and all that a run leaves there, in bytes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from pystreams.app import App
from pystreams.backfill.application import loaded
from pystreams.backfill.compute.backfill_result import BackfillResult, ChangelogEntry, SinkRecord
from pystreams.backfill.plan.manifest import Manifest
from pystreams.broker.port import Broker
from pystreams.clock import SystemClock
from pystreams.engine.offset_metadata import OffsetMetadata
from pystreams.ids import TopicPartition
from pystreams.state.sorted_files import TableFormat
from pystreams.state.spec import StoreSpec
from pystreams.state.stores.buffer_value import unpacked
from pystreams.take_over.hand_over_record import read_record
from tests.backfill.kit import History
from tests.backfill.versions import shown_versions
from tests.live.support import Line, Log

#: Of live runs that a backfill is to equal.
SETTINGS: dict[str, Any] = {
    "statestore_cache_max_bytes": 0,
    "max_task_idle_ms": 0,
    "commit_interval_ms": 20,
    "poll_ms": 10,
}
#: At the end of a window store's changelog key.
_SEQUENCE_BYTES = 4


class Left(NamedTuple):
    """What stands on the log: sinks as sequences, changelogs compacted and without expired windows, and of every
    external input its committed offset, time and entries."""

    sinks: dict[TopicPartition, list[SinkRecord]]
    changelogs: dict[TopicPartition, list[ChangelogEntry]]
    offsets: dict[TopicPartition, tuple[int, OffsetMetadata]]


def create(log: Log, history: History, outputs: Sequence[str]) -> None:
    """The topics of a history, and outputs that are as wide."""
    width = max(len(partitions) for partitions in history.values())
    log.create(*history, *outputs, partitions=width)


def append(log: Log, history: History) -> None:
    """Write records behind what the log has."""
    append_lines(
        log,
        {
            TopicPartition(topic, number): records
            for topic, partitions in history.items()
            for number, records in enumerate(partitions)
        },
    )


def append_lines(log: Log, lines: Mapping[TopicPartition, Iterable[Line]]) -> None:
    """The same by partition."""
    with closing(log.broker.producer("history", "history")) as producer:
        for partition, of_partition in lines.items():
            for line in of_partition:
                producer.send(*partition, *line)
        producer.commit({}, None)


def random_cut(history: History, chance: random.Random) -> dict[TopicPartition, int]:
    """An end for each partition, anywhere in it."""
    return {
        TopicPartition(topic, number): chance.randint(0, len(records))
        for topic, partitions in history.items()
        for number, records in enumerate(partitions)
    }


def split(history: History, ends: Mapping[TopicPartition, int]) -> tuple[History, History]:
    """The records before the ends, and the others."""
    prefix: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for topic, partitions in history.items():
        at = [ends[TopicPartition(topic, number)] for number in range(len(partitions))]
        prefix[topic] = [records[:end] for records, end in zip(partitions, at, strict=True)]
        rest[topic] = [records[end:] for records, end in zip(partitions, at, strict=True)]
    return prefix, rest


def left_on(log: Log, app: App, outputs: Sequence[str]) -> Left:
    """What an application that has stopped left on the log."""
    built = loaded(app, {}).built
    specs = {spec.name: spec for spec in built.stores}
    changelogs = {
        topic: specs[store] for sub in built.subtopologies for store, topic in sub.changelogs.items()
    }
    committed = log.committed(app.name)
    return Left(
        {p: [sink_record(line) for line in raw(log, p)] for topic in outputs for p in log.partitions(topic)},
        {
            p: visible(raw(log, p), spec, all_said=True)
            for topic, spec in changelogs.items()
            for p in log.partitions(topic)
        },
        {
            p: (offset.offset, OffsetMetadata.decode(offset.metadata))
            for p, offset in committed.items()
            if p.topic not in built.internal_topics
        },
    )


def with_sinks_before(result: BackfillResult, left: Left) -> Left:
    """Sinks as a reader sees them who got the backfill's first."""
    sinks = {
        partition: result.sink(partition.topic).get(partition.partition, []) + records
        for partition, records in left.sinks.items()
    }
    return left._replace(sinks=sinks)


#: Kinds of stores that hold records back.
BUFFERS = frozenset({"buffer", "join_buffer"})


#: How the names of an application's own topics end.
_INTERNAL = ("-repartition", "-registration-topic", "-response-topic", "-registration", "-response")


def visible(changes: Sequence[Line], spec: StoreSpec, *, all_said: bool = False) -> list[ChangelogEntry]:
    """The last change of each key that was not deleted; of windows those that a store still shows, of versions, too.
    ``all_said``: there are all changes, and by deletions, too, time goes on."""
    if spec.kind == "versioned":
        records = ((change.key, change.value, change.timestamp) for change in changes)
        return [
            ChangelogEntry(key, value + b" until %d" % (-1 if until is None else until), since)
            for key, since, value, until in shown_versions(spec, records)
        ]
    last: dict[bytes, Line] = {}
    for change in changes:
        assert change.key is not None
        last[change.key] = change
    # The log gives the records of buffers the time at which it got them, as Java leaves it to do.
    timed = spec.kind not in BUFFERS
    entries = sorted(
        ChangelogEntry(k, c.value, c.timestamp if timed else 0)
        for k, c in last.items()
        if c.value is not None
    )
    if not timed:
        entries = [entry._replace(value=_without_internal_offset(entry.value or b"")) for entry in entries]
    if spec.kind == "join_buffer":
        # The number that tells equal records apart begins anew with each process.
        return sorted((e._replace(key=e.key[:-_SEQUENCE_BYTES]) for e in entries), key=repr)
    if not spec.retention_ms:
        return entries
    time_of = TableFormat.of(spec).time_of
    if all_said:
        # What is not a write moves no time: on disk, a null among duplicates is logged all the same.
        no_writes = spec.retain_duplicates and spec.persistent
        keys = [key for key, change in last.items() if not no_writes or change.value is not None]
    else:
        keys = [entry.key for entry in entries]
    observed = max(map(time_of, keys), default=0)
    found = [entry for entry in entries if time_of(entry.key) > observed - spec.retention_ms]
    if spec.retain_duplicates:
        # The number that tells duplicates apart goes on by whatever was counted before: only their order counts.
        return [entry._replace(key=entry.key[:-_SEQUENCE_BYTES]) for entry in found]
    return found


def _without_internal_offset(packed: bytes) -> bytes:
    """What a buffer holds back; where its record came from an internal topic, no offset is promised."""
    held = unpacked(packed)
    topic, partition, _, timestamp, headers = held.context
    if topic is None or not topic.endswith(_INTERNAL):
        return packed
    return held._replace(context=(topic, partition, 0, timestamp, headers)).packed()


def sink_record(line: Line) -> SinkRecord:
    return SinkRecord(line.key, line.value, line.timestamp, line.headers)


def raw(log: Log, partition: TopicPartition) -> list[Line]:
    """All records of a partition, in bytes."""
    return list(log.lines(partition).values())


def published_manifest(broker: Broker, application_id: str) -> Manifest | None:
    """The manifest of the last hand-over to an application, None if there was none."""
    with closing(broker.admin()) as admin:
        record = read_record(broker, admin, application_id, SystemClock())
    return None if record is None else Manifest.from_json(record.manifest, f"backfill {record.backfill_id}")
