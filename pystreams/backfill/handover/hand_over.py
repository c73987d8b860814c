"""Hands a computed backfill over to the live application: its stores as changelogs, then its offsets.

    check      no member in the group, topics as the topology needs them, retention long enough, offsets that are there,
               the right to write everything
    announce   write to the log that a hand-over has begun; from now on the application refuses to start
    publish    each store partition where the executor works, in fenced transactions of its own (publishing.py)
    emit       the records for output topics, if that is asked for (emit.py)
    commit     one last transaction: the offsets with their metadata, and that the hand-over is complete

If it is killed at any moment, the application either finds the whole result or refuses to start, and another hand-over
completes it. A complete hand-over is not repeated, because the application may have continued since; except if its
offsets are lost, because then no application could continue from it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from uuid import uuid4

from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.compute.summary import ResultSummary, Summarised, topic_rows
from pystreams.backfill.handover.checks import (
    checked_topics,
    handed_over_before,
    processed_beyond,
    was_complete,
)
from pystreams.backfill.handover.emit import check_emit, emit_to_topics
from pystreams.backfill.handover.emit_to_topics import emitter_id
from pystreams.backfill.handover.publishing import Published, PublishStore, StoreTimes, transactional_id
from pystreams.backfill.handover.retention import expired_changelogs, expired_outputs, refuse
from pystreams.backfill.handover.version_topics import VersionTopics
from pystreams.backfill.plan.manifest import Manifest, Status
from pystreams.broker.port import (
    Admin,
    Broker,
    CommittedOffset,
    GroupCommitter,
    TopicDescription,
    TopicSpec,
    Write,
)
from pystreams.clock import Clock, SystemClock
from pystreams.engine.offset_metadata import Overflow
from pystreams.engine.overflow_writer import OverflowTopics, OverflowWriter
from pystreams.errors import StateError, StreamsError
from pystreams.ids import TaskId, TopicPartition
from pystreams.record import Headers
from pystreams.state.sorted_files import TableFormat
from pystreams.state.spec import StoreSpec
from pystreams.take_over.hand_over_record import MANIFEST_KEY, HandOverRecord, manifest_topic, read_record
from pystreams.take_over.last_run import LastRun, record_of, topology_topic, topology_topic_spec
from pystreams.take_over.take_over_plan import topology_as_kept
from pystreams.times import show_time
from pystreams.topics.topic_plan import TopicPlan
from pystreams.topology.fingerprint import shape

log = logging.getLogger(__name__)

_MANIFEST_TOPIC = {"cleanup.policy": "compact", "retention.ms": "-1"}
#: Transactional producers that are tried out at a time: each waits for an answer or two.
_PROBES = 8


class HandOverInterrupted(KeyboardInterrupt):
    """The user stopped a hand-over. The text says what the application can do now, and which command to run next."""


@dataclass(frozen=True, slots=True, repr=False)
class HandedOver(Summarised):
    """The result of a hand-over. ``stores`` is empty if it was ``complete_before``: then nothing was done. ``emitted``
    counts the records that were written to output topics, now or then; None if that was not asked for. ``again`` is a
    sentence about records that the application will process again; empty if there are none. A notebook shows it as a
    table of what was written."""

    manifest: Manifest
    attempt: str
    complete_before: bool = False
    stores: Mapping[str, Published] = field(default_factory=dict)
    emitted: Mapping[str, int] | None = None
    again: str = ""

    def _summary(self) -> ResultSummary:
        application_id, until = self.manifest.application_id, show_time(self.manifest.cut_time_ms)
        before = " before, so nothing was changed" if self.complete_before else ""
        rows = [
            ("store", name, f"{one.written:,} written, {one.unchanged:,} unchanged, {one.deleted:,} deleted")
            for name, one in sorted(self.stores.items())
        ]
        return ResultSummary(
            f"Handed over{before}: {application_id} continues at {until}",
            [*rows, *topic_rows(self.emitted or {})],
            [f"{self.again}."] if self.again else [],
        )


def hand_over(
    result: BackfillResult,
    broker: Broker,
    clock: Clock | None = None,
    *,
    emit: bool = False,
    before_commit: Callable[[Admin, str], None] | None = None,
) -> HandedOver:
    """Publish and commit; the same backfill a second time changes nothing. With ``emit`` the records for output topics
    are written to them, before the application can start.

    ``before_commit`` is called with the name of the attempt once the changelogs hold the result, while the application
    cannot start.

    Raises ``BrokerError`` while the group has members, if another hand-over takes over, and for what the cluster does
    not permit; ``TopicError`` for topics that do not fit or are another log's, ``RetentionError`` where one would
    delete what it is given, ``OffsetOutOfRangeError`` for a cut that the log does not hold, ``StateError`` for a
    backfill that is not computed, or whose offsets are made up, and for records that come too late to be emitted. All
    of that before anything is written; ``HandOverInterrupted`` for a Ctrl-C after that.
    """
    return _HandOver(result, broker, clock or SystemClock(), emit=emit).run(before_commit)


class _HandOver:
    def __init__(self, result: BackfillResult, broker: Broker, clock: Clock, *, emit: bool) -> None:
        self._result = result
        self._broker = broker
        self._clock = clock
        self._emit = emit
        self._application_id = result.plan.application_id
        self._attempt = uuid4().hex

    def run(self, before_commit: Callable[[Admin, str], None] | None) -> HandedOver:
        manifest = self._result.manifest
        _check_computed(manifest)
        with ExitStack() as stack:
            admin = stack.enter_context(closing(self._broker.admin()))
            former = handed_over_before(manifest, self._broker, admin, self._clock)
            if former is not None:
                return self._before(former)
            topics = checked_topics(self._result, self._broker, admin)
            versions = VersionTopics(self._result, self._broker, topics, self._clock.now_ms())
            admin.require_remaking(versions.unfit(admin))
            outputs = check_emit(self._result, self._broker, admin) if self._emit else {}
            self._check_retention(topics, outputs)
            self._probe_writers()
            # From here on another hand-over cannot commit any more. If it has completed before, its result counts.
            committer = stack.enter_context(closing(self._committer()))
            former = read_record(self._broker, admin, self._application_id, self._clock)
            if former is not None and was_complete(former, manifest, admin):
                return self._before(former)
            own_topic = TopicSpec(manifest_topic(self._application_id), 1, _MANIFEST_TOPIC)
            record_topics = [own_topic, topology_topic_spec(self._application_id)]
            admin.create_topics([*versions.of(topics.missing), *record_topics])
            committer.probe(self._written())
            if again := processed_beyond(self._result, admin):
                log.warning("%s", again)
            with self._state_in_errors():
                done = self._write(admin, committer, topics, versions, before_commit)
            return replace(done, again=again)

    def _before(self, former: HandOverRecord) -> HandedOver:
        """The result if the backfill was handed over before. Raises ``StateError`` if its records must also be emitted
        and were not."""
        log.info("backfill %s was already handed over", former.backfill_id)
        if self._emit and former.emitted is None:
            raise StateError(
                "the backfill was handed over before, without its records for output topics",
                where=f"application {self._application_id}, {self._broker.description}",
                why="the application may have written to these topics since: the backfill's records would come too "
                "late",
                hint="write them to files: emit(result, FOLDER), on the command line --emit parquet:FOLDER",
            )
        return HandedOver(_of(former), former.attempt, complete_before=True, emitted=former.emitted)

    # Before anything is written

    def _committer(self) -> GroupCommitter:
        id = f"{self._application_id}-backfill-manifest"
        return self._broker.group_committer("backfill", self._application_id, id)

    def _check_retention(self, topics: TopicPlan, outputs: Mapping[str, TopicDescription]) -> None:
        now_ms = self._clock.now_ms()
        expired = [
            *expired_changelogs(self._result, topics, now_ms),
            *expired_outputs(self._result, outputs, now_ms),
        ]
        refuse(expired, self._result, self._broker)

    def _probe_writers(self) -> None:
        """Check that the cluster permits all writes, before the log records that the hand-over has begun: from then on
        the application cannot start until it is complete. It also ends transactions of a former attempt."""
        ids = [
            transactional_id(self._application_id, store, partition)
            for store, _, partitions in self._logged()
            for partition in range(partitions)
        ]
        ids += [emitter_id(self._application_id, partition) for partition in self._emitted()]
        with ThreadPoolExecutor(_PROBES) as pool:
            for _ in pool.map(self._probe_writer, ids):
                pass

    def _written(self) -> list[TopicPartition]:
        changelogs = [TopicPartition(topic, p) for _, topic, count in self._logged() for p in range(count)]
        topology = TopicPartition(topology_topic(self._application_id), 0)
        return [*changelogs, *self._emitted(), topology]

    def _emitted(self) -> list[TopicPartition]:
        return [*self._result.written()] if self._emit else []

    def _logged(self) -> list[tuple[str, str, int]]:
        """The stores that have a changelog, with its name and number of partitions."""
        stores = self._result.stores().items()
        return [(name, topic, self._result.store_rows(name).partitions) for name, topic in stores if topic]

    def _probe_writer(self, id: str) -> None:
        self._broker.transactional_producer("backfill", id).close()

    # Writing

    def _write(
        self,
        admin: Admin,
        committer: GroupCommitter,
        topics: TopicPlan,
        versions: VersionTopics,
        before_commit: Callable[[Admin, str], None] | None,
    ) -> HandedOver:
        manifest = self._result.manifest.advanced(Status.PUBLISHING)
        self._commit(committer, manifest, {}, None)
        versions.make_anew(admin)
        stores = self._publish()
        emitted = emit_to_topics(self._result, self._broker, attempt=self._attempt) if self._emit else None
        if before_commit is not None:
            before_commit(admin, self._attempt)
        manifest = manifest.advanced(Status.COMMITTED)
        internal = [
            TopicPartition(name, partition)
            for name, count in topics.partitioning.repartition_topics.items()
            for partition in range(count)
        ]
        overflow = _OverflowWrites(self._application_id, admin, self._clock)
        offsets = self._result.offsets(admin.end_offsets(internal), overflow.of)
        self._commit(committer, manifest, offsets, emitted, overflow.writes)
        return HandedOver(manifest, self._attempt, stores=stores, emitted=emitted)

    @contextmanager
    def _state_in_errors(self) -> Iterator[None]:
        """An exception here says what the application can do now."""
        try:
            yield
        except KeyboardInterrupt:
            raise HandOverInterrupted(
                f"Stopped during the hand-over to {self._application_id} ({self._broker.description}). The application "
                "does not start from an incomplete hand-over: run the same command with --resume (in Python hand_over "
                "again), which completes it and computes nothing again; or hand over another backfill; or reset the "
                "application (pystreams reset)."
            ) from None
        except StreamsError as error:
            error.extend(
                where=f"hand-over to {self._application_id}",
                hint="the application does not start from an incomplete hand-over: the same command with --resume "
                "(in Python hand_over again) completes it",
            )
            raise

    def _publish(self) -> dict[str, Published]:
        published: dict[str, Published] = {}
        specs = {spec.name: spec for spec in self._result.loaded.built.stores}
        for store, changelog, _ in self._logged():
            work = PublishStore(
                self._broker.opener(),
                self._application_id,
                store,
                changelog,
                self._attempt,
                self._result.manifest.cut_time_ms,
                specs[store].changelog_headers,
                specs[store].kind == "versioned",
                specs[store].headers,
                self._times_of(specs[store]),
            )
            parts = self._result.for_each_partition(self._result.store_rows(store), work)
            done = sum((Published.from_json(part) for part in parts), Published())
            published[store] = done
            log.info(
                "%s: %d written, %d unchanged, %d deleted",
                changelog,
                done.written,
                done.unchanged,
                done.deleted,
            )
        return published

    def _times_of(self, spec: StoreSpec) -> StoreTimes | None:
        format = TableFormat.of(spec)
        return StoreTimes(format, self._result.store_times(spec.name)) if format.expires else None

    def _commit(
        self,
        committer: GroupCommitter,
        manifest: Manifest,
        offsets: Mapping[TopicPartition, CommittedOffset],
        emitted: Mapping[str, int] | None,
        overflow: Sequence[Write] = (),
    ) -> None:
        record = HandOverRecord(
            backfill_id=manifest.backfill_id,
            attempt=self._attempt,
            complete=manifest.status is Status.COMMITTED,
            fingerprint=manifest.fingerprint,
            shape=shape(self._result.loaded.built),
            offsets={partition: at.offset for partition, at in offsets.items()},
            manifest=manifest.to_json(),
            emitted=emitted,
        )
        topic, now_ms = manifest_topic(self._application_id), self._clock.now_ms()
        writes = [Write(topic, 0, MANIFEST_KEY, record.to_bytes(), now_ms), *overflow]
        if record.complete:
            # From now on all that is stored is the backfill's.
            last = LastRun(topology_as_kept(self._result.loaded.built))
            writes.append(record_of(self._application_id, last, now_ms))
        committer.commit(writes, offsets)


class _OverflowWrites:
    """Collects what does not fit beside the offsets of tasks, to be written in the transaction that commits these."""

    def __init__(self, application_id: str, admin: Admin, clock: Clock) -> None:
        self.writes: list[Write] = []
        self._application_id = application_id
        self._topics = OverflowTopics(admin)
        self._clock = clock

    def of(self, task: TaskId, partitions: int) -> Overflow:
        """The overflow of a task, whose sub-topology has this number of ``partitions``."""
        return OverflowWriter(
            self._application_id, task, partitions, self._topics, self._collect, self._clock
        )

    def _collect(
        self, topic: str, partition: int, key: bytes, value: bytes, timestamp: int, _headers: Headers
    ) -> None:
        self.writes.append(Write(topic, partition, key, value, timestamp))


def _check_computed(manifest: Manifest) -> None:
    if manifest.status is Status.CUT:
        raise StateError("the backfill is not computed yet", hint="run it again with resume")


def _of(record: HandOverRecord) -> Manifest:
    return Manifest.from_json(record.manifest, f"backfill {record.backfill_id}")
