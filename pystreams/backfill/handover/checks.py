"""The checks of a hand-over before anything is written; most of them run before anything is computed."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import closing

from pystreams.backfill.handover.cut_backfill import CutBackfill
from pystreams.backfill.handover.retention import expired_changelogs, refuse, warn_of_changelogs
from pystreams.backfill.plan.manifest import Manifest, Status
from pystreams.backfill.sources.last_records import difference, last_within
from pystreams.backfill.sources.ranges import InputRange
from pystreams.broker.port import Admin, Broker, has_members
from pystreams.clock import Clock, SystemClock
from pystreams.errors import OffsetOutOfRangeError, StateError, TopicError
from pystreams.ids import TopicPartition
from pystreams.plural import counted
from pystreams.take_over.hand_over_record import HandOverRecord, UnderWayError, read_record
from pystreams.topics.topic_plan import TopicPlan, plan_topics
from pystreams.topology.partitions import resolve_partitions

log = logging.getLogger(__name__)

#: Do not wait for the last step of another hand-over: this one will abort it.
_LOOK_MS = 2_000.0


def check_target(cut: CutBackfill, broker: Broker, clock: Clock | None = None) -> None:
    """Check whether the result of a backfill can be handed over to this log, or already was. Before it is computed, the
    retention of changelogs is compared with the last records that it reads, and a warning is logged.

    Raises the errors that ``hand_over`` raises before it writes anything.
    """
    clock = clock or SystemClock()
    with closing(broker.admin()) as admin:
        if handed_over_before(cut.manifest, broker, admin, clock) is None:
            topics = checked_topics(cut, broker, admin)
            refuse([*expired_changelogs(cut, topics, clock.now_ms())], cut, broker)
            if cut.manifest.status is Status.CUT:
                if again := processed_beyond(cut, admin):
                    log.warning("%s", again)
                warn_of_changelogs(cut, topics, broker, clock.now_ms())


def handed_over_before(
    manifest: Manifest, broker: Broker, admin: Admin, clock: Clock
) -> HandOverRecord | None:
    """The record of a complete hand-over of this backfill; None if there was none, or if another one is running."""
    try:
        record = read_record(broker, admin, manifest.application_id, clock, _LOOK_MS)
    except UnderWayError:
        return None
    return record if was_complete(record, manifest, admin) else None


def was_complete(record: HandOverRecord | None, manifest: Manifest, admin: Admin) -> bool:
    """Whether the record says that this backfill was handed over completely, and the log still has its offsets."""
    if record is None or not record.complete or record.backfill_id != manifest.backfill_id:
        return False
    return not record.lost(admin.group_offsets(manifest.application_id))


def checked_topics(cut: CutBackfill, broker: Broker, admin: Admin) -> TopicPlan:
    """The topics of the application, after all checks except those of retention."""
    manifest, where = cut.manifest, broker.description
    _require_offsets(manifest)
    require_no_members(admin, cut.plan.application_id, where)
    _require_topics(admin, {input.partition: input for input in manifest.inputs}, where)
    _require_same_partitions(cut, admin, where)
    beginnings = _check_cut(cut, admin, where)
    _require_same_records(manifest, beginnings, broker)
    _require_restorable(cut, beginnings, where)
    return plan_topics(admin, cut.loaded.built, cut.loaded.config, where)


def processed_beyond(cut: CutBackfill, admin: Admin) -> str:
    """A sentence that the live application has gone on beyond the cut, so that the hand-over sets it back; empty if it
    has not. The number is that of offsets."""
    committed = admin.group_offsets(cut.plan.application_id)
    beyond = sum(
        max(0, committed[input.partition].offset - input.end)
        for input in cut.manifest.inputs
        if input.partition in committed
    )
    if not beyond:
        return ""
    one = beyond == 1
    return (
        f"{cut.plan.application_id} has processed {counted(beyond, 'record')} beyond this backfill's cut; "
        f"{'it is' if one else 'they are'} processed, and {'its' if one else 'their'} results are emitted, again"
    )


def require_no_members(admin: Admin, application_id: str, where: str) -> None:
    """Raises ``BrokerError`` while an application runs."""
    members = admin.group_members(application_id)
    if members:
        raise has_members(application_id, members, where)


def _require_offsets(manifest: Manifest) -> None:
    if manifest.approximate:
        earlier = (
            f", or of backfill {manifest.previous_id}, which it continues," if manifest.previous_id else ""
        )
        raise StateError(
            f"the sources of this backfill{earlier} have no offsets",
            where=f"application {manifest.application_id}, backfill {manifest.backfill_id}",
            why="without them a live application does not know where to continue",
            hint="backfill from the log, or from an archive or a table that has the offsets of its records; or name a "
            "boundary between a table and the log",
        )


# Whether it is the log that was backfilled


def _require_topics(admin: Admin, inputs: Mapping[TopicPartition, InputRange], where: str) -> None:
    counts = admin.partition_counts()
    for partition in inputs:
        count = counts.get(partition.topic, 0)
        if partition.partition >= count:
            raise TopicError(
                f"{partition}, which was backfilled, does not exist where the live application would continue",
                where=where,
                why=f"topic {partition.topic} has {count} partitions there"
                if count
                else "there is no such topic",
                hint="hand over to the log that the history comes from",
            )


def _require_same_partitions(cut: CutBackfill, admin: Admin, where: str) -> None:
    """Tasks and changelogs follow from the inputs: with the same numbers of partitions, the live application finds all
    keys in the same partitions."""
    planned = {
        (one.subtopology, input.topic): input.partitions for one in cut.plan.slices for input in one.inputs
    }
    there: dict[tuple[int, str], int] = {}
    for task, partitions in resolve_partitions(cut.loaded.built, admin.partition_counts()).tasks.items():
        for topic, _ in partitions:
            there[task.subtopology, topic] = there.get((task.subtopology, topic), 0) + 1
    for read in sorted(planned.keys() | there.keys()):
        was, now = planned.get(read, 0), there.get(read, 0)
        if was == now:
            continue
        subtopology, topic = read
        raise TopicError(
            f"topic {topic} has {now} partitions there, it was backfilled with {was}"
            if was
            else f"topic {topic}, which the live application would read, was not backfilled",
            where=f"{where}, sub-topology {subtopology}",
            why="keys would be in other partitions than those in which the live application looks for them"
            if was
            else "the topic did not exist, or did not match a pattern, when the backfill was planned",
            hint="hand over to the log that the history comes from, or begin the backfill again (overwrite)",
        )


def _check_cut(cut: CutBackfill, admin: Admin, where: str) -> dict[TopicPartition, int]:
    """The first offset of each input."""
    partitions = [input.partition for input in cut.manifest.inputs]
    beginnings, ends = admin.beginning_offsets(partitions), admin.end_offsets(partitions)
    for input in cut.manifest.inputs:
        partition = input.partition
        if partition.topic in cut.plan.global_topics:
            # The live application will read it from its beginning at that time.
            _require_read(input, ends[partition], where)
        elif not beginnings[partition] <= input.end <= ends[partition]:
            raise OffsetOutOfRangeError(
                f"the cut of {partition} is at offset {input.end}, where the live application cannot continue",
                where=where,
                why=f"the log holds offsets {beginnings[partition]} to {ends[partition]} (exclusive)",
                hint="end the backfill at an offset that the log still holds",
            )
    return beginnings


def _require_read(input: InputRange, end: int, where: str) -> None:
    if input.end > end:
        raise OffsetOutOfRangeError(
            f"the topic of a global store is not the one that was backfilled: {input.partition}",
            where=where,
            why=f"the backfill read offsets up to {input.end} (exclusive), but the log ends at {end}",
            hint="hand over to the log that the history comes from",
        )


def _require_same_records(
    manifest: Manifest, beginnings: Mapping[TopicPartition, int], broker: Broker
) -> None:
    """Raises ``TopicError`` if the log has other records than those that the backfill read. It compares the last record
    before the cut in each partition. It does not check partitions where retention or compaction has deleted this
    record, or whose source did not give it."""
    lasts = {input.partition: input.last for input in manifest.inputs if input.last is not None}
    spans = {p: (o.offset, o.offset + 1) for p, o in lasts.items() if beginnings[p] <= o.offset}
    found = last_within(broker, spans)
    for partition, now in found.items():
        last = lasts[partition]
        if now != last:
            raise TopicError(
                f"topic {partition.topic} is not the one that was backfilled",
                where=broker.description,
                why=f"{partition} has another record at offset {last.offset}: {difference(last, now)}",
                hint="hand over to the log that the history comes from, or backfill from this one",
            )
    # It is no error if an archive has records that the log has deleted.
    gone = [str(partition) for partition in lasts if partition not in found]
    unknown = [str(input.partition) for input in manifest.inputs if input.end > 0 and input.last is None]
    for level, why, partitions in (
        (logging.INFO, "the log no longer has the last record before the cut", gone),
        (logging.WARNING, "the source cannot give the last record before the cut", unknown),
    ):
        if partitions:
            more = f" and {len(partitions) - 3} more" if len(partitions) > 3 else ""
            log.log(
                level,
                "%s: cannot check whether this is the log that was backfilled, for %s%s: %s",
                broker.description,
                ", ".join(partitions[:3]),
                more,
                why,
            )


def _require_restorable(cut: CutBackfill, beginnings: Mapping[TopicPartition, int], where: str) -> None:
    """A table without a changelog is restored from its topic. If an archive has more records than the topic, the
    restored table would lack them."""
    stores = {spec.source_topic: spec.name for spec in cut.loaded.built.stores if spec.source_topic}
    for input in cut.manifest.inputs:
        # If this backfill continues others, it is not known where the first of them began to read.
        first = input.start if cut.manifest.previous_id is None else 0
        if input.partition.topic in stores and beginnings[input.partition] > first:
            raise OffsetOutOfRangeError(
                f"store {stores[input.partition.topic]} would be restored without what was backfilled",
                where=where,
                why=f"it is restored from topic {input.partition.topic} instead of a changelog, and {input.partition} "
                f"begins at offset {beginnings[input.partition]} there; the backfill began at {first}",
                hint="leave reuse.ktable.source.topics out of topology_optimization, and begin the backfill again",
            )
