"""Hands a computed backfill over to the live application: its stores as changelogs, then its offsets.

    check      no member in the group, topics as the topology needs them, retention long enough, offsets that are there
    tell       that a hand-over has begun; from now on the application refuses to start
    publish    each store partition where the executor works, in fenced transactions of its own (publishing.py)
    commit     one last transaction: the offsets with their metadata, and that the hand-over is complete

Whatever is killed at whatever moment, the application finds all of it or refuses to start, and handing over again makes
it whole. What was handed over completely is never handed over again: the application may have gone on since.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import TypeGuard
from uuid import uuid4

from pystreams.backfill.checks import checked_topics
from pystreams.backfill.manifest import Manifest, Stage
from pystreams.backfill.publishing import Published, PublishStore
from pystreams.backfill.result import BackfillResult
from pystreams.broker.port import Admin, Broker, CommittedOffset, GroupCommitter, TopicSpec, Write
from pystreams.clock import Clock, SystemClock
from pystreams.errors import StateError
from pystreams.ids import TopicPartition
from pystreams.runtime.hand_over_check import MANIFEST_KEY, HandOverRecord, manifest_topic, read_record
from pystreams.topology.fingerprint import shape

log = logging.getLogger(__name__)

_MANIFEST_TOPIC = {"cleanup.policy": "compact", "retention.ms": "-1"}


@dataclass(frozen=True, slots=True)
class HandedOver:
    """What a hand-over did. ``stores`` is empty if it was ``complete_before``: then nothing was done."""

    manifest: Manifest
    attempt: str
    complete_before: bool = False
    stores: Mapping[str, Published] = field(default_factory=dict)


def hand_over(
    result: BackfillResult,
    broker: Broker,
    clock: Clock | None = None,
    *,
    before_commit: Callable[[Admin, str], None] | None = None,
) -> HandedOver:
    """Publish and commit; the same backfill a second time changes nothing.

    ``before_commit`` is called with the name of the attempt once the changelogs hold the result, and nobody can start.

    Raises ``BrokerError`` while the group has members, or if another hand-over takes over; ``TopicError`` for topics
    that do not fit, ``RetentionError`` where a changelog would delete what it is given, ``OffsetOutOfRangeError`` for a
    cut that the log does not hold, ``StateError`` for a backfill that is not computed, or whose offsets are made up.
    """
    return _HandOver(result, broker, clock or SystemClock()).run(before_commit)


class _HandOver:
    def __init__(self, result: BackfillResult, broker: Broker, clock: Clock) -> None:
        self._result = result
        self._broker = broker
        self._clock = clock
        self._application_id = result.plan.application_id
        self._attempt = uuid4().hex

    def run(self, before_commit: Callable[[Admin, str], None] | None) -> HandedOver:
        manifest = self._result.manifest
        _check_computed(manifest)
        with ExitStack() as stack:
            admin, committer, told = self._taken_over(stack)
            if self._was_complete(told):
                log.info("backfill %s was handed over before", manifest.backfill_id)
                return HandedOver(_of(told), told.attempt, complete_before=True)
            topics = checked_topics(self._result, self._broker, admin, self._clock)
            own_topic = TopicSpec(manifest_topic(self._application_id), 1, _MANIFEST_TOPIC)
            admin.create_topics([*topics.missing, own_topic])
            manifest = manifest.advanced(Stage.PUBLISHING)
            self._commit(committer, manifest, {})
            stores = self._publish()
            if before_commit is not None:
                before_commit(admin, self._attempt)
            manifest = manifest.advanced(Stage.COMMITTED)
            internal = [
                TopicPartition(name, partition)
                for name, count in topics.partitioning.repartition_topics.items()
                for partition in range(count)
            ]
            self._commit(committer, manifest, self._result.offsets(admin.end_offsets(internal)))
        return HandedOver(manifest, self._attempt, stores=stores)

    def _taken_over(self, stack: ExitStack) -> tuple[Admin, GroupCommitter, HandOverRecord | None]:
        """What a hand-over needs, and what the last one told. Whoever was handing over can commit nothing any more."""
        admin = stack.enter_context(closing(self._broker.admin()))
        committer = stack.enter_context(
            closing(
                self._broker.group_committer(
                    "backfill", self._application_id, f"{self._application_id}-backfill-manifest"
                )
            )
        )
        return admin, committer, read_record(self._broker, admin, self._application_id, self._clock)

    def _was_complete(self, told: HandOverRecord | None) -> TypeGuard[HandOverRecord]:
        backfill_id = self._result.manifest.backfill_id
        return told is not None and told.complete and told.backfill_id == backfill_id

    # Writing

    def _publish(self) -> dict[str, Published]:
        published: dict[str, Published] = {}
        for store, changelog in self._result.stores().items():
            if changelog is None:
                continue
            work = PublishStore(
                self._broker.opener(),
                self._application_id,
                store,
                changelog,
                self._attempt,
                self._result.manifest.cut_time_ms,
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

    def _commit(
        self,
        committer: GroupCommitter,
        manifest: Manifest,
        offsets: Mapping[TopicPartition, CommittedOffset],
    ) -> None:
        record = HandOverRecord(
            backfill_id=manifest.backfill_id,
            attempt=self._attempt,
            complete=manifest.stage is Stage.COMMITTED,
            fingerprint=manifest.fingerprint,
            shape=shape(self._result.loaded.built.subtopologies),
            offsets={partition: at.offset for partition, at in offsets.items()},
            manifest=manifest.to_json(),
        )
        topic = manifest_topic(self._application_id)
        write = Write(topic, 0, MANIFEST_KEY, record.to_json(), self._clock.now_ms())
        committer.commit([write], offsets)


def _check_computed(manifest: Manifest) -> None:
    if manifest.stage is Stage.CUT:
        raise StateError("the backfill is not computed yet", hint="run it again with resume")


def _of(record: HandOverRecord) -> Manifest:
    return Manifest.from_json(record.manifest, f"backfill {record.backfill_id}")


def published_manifest(broker: Broker, application_id: str, clock: Clock | None = None) -> Manifest | None:
    """The manifest of the last hand-over to an application, None if there was none.

    Raises ``StateError`` while the last step of one is under way.
    """
    with closing(broker.admin()) as admin:
        record = read_record(broker, admin, application_id, clock or SystemClock())
    return None if record is None else _of(record)
