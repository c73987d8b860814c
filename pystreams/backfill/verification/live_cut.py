"""The moment at which a live application is compared with its history: what it has committed, and what its changelogs
held then.

A commit of a task moves offsets and changelogs together, in one transaction: so if its offsets are the same before and
after the ends of its changelogs were read, the changelogs up to there belong to these offsets. On Kafka a changelog may
show a transaction a little later than the offsets do; its records are behind the end then, and their keys count as
changed since. An application that does not commit so (at least once, on Kafka) has to be stopped.

All records that the application has read must have reached its stores, too: none may wait in a repartition topic, and
no step's time may wait for tasks that lag. So with repartition topics all tasks must be found at one moment; without
them, each may have a moment of its own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import Final

from pystreams.backfill.application import LoadedApplication
from pystreams.broker.port import Admin, Broker, CommittedOffset
from pystreams.clock import Clock, Deadline
from pystreams.engine.offset_metadata import merge_committed
from pystreams.errors import BrokerError, StateError, TopicError, TopologyError
from pystreams.ids import TaskId, TopicPartition
from pystreams.nearest import listing
from pystreams.plural import plural
from pystreams.state.disk.directory import StateDirectory
from pystreams.take_over.hand_over_record import read_record
from pystreams.take_over.last_run import KeptTopology
from pystreams.take_over.take_over_plan import topology_as_kept
from pystreams.topics.committed_batches import SilentPartitionError, committed_batches
from pystreams.topology.difference import Verdict, changes
from pystreams.topology.fingerprint import first_difference, without_headers
from pystreams.topology.partitions import Partitioning, resolve_partitions

#: Between two looks at the application.
_PAUSE_S: Final = 0.05
#: Records of a repartition topic that do not arrive for this time belong to an open transaction.
_SILENCE_MS: Final = 2_000.0


@dataclass(frozen=True, slots=True)
class LiveCut:
    """``offsets`` are the next ones to process, of the application's inputs that have any; ``changelog_ends`` the ends
    of its changelogs at the same moment."""

    offsets: Mapping[TopicPartition, int]
    changelog_ends: Mapping[TopicPartition, int]


def read_live_cut(broker: Broker, loaded: LoadedApplication, clock: Clock, wait_ms: float) -> LiveCut:
    """The present moment, or one within ``wait_ms`` at which all that the application has read is in its stores.

    Raises ``BrokerError`` if there is no such moment, for an application that runs without transactions, and for one
    that has committed nothing; ``TopologyError`` if another version of it ran last; ``TopicError`` if a topic of it is
    missing or has another number of partitions; ``StateError`` if the hand-over of a backfill is incomplete.
    """
    with closing(broker.admin()) as admin:
        if not admin.group_offsets(loaded.built.application_id, stable=False):
            raise _committed_nothing(loaded.built.application_id, broker.description)
        _require_last_version(broker, admin, loaded, clock)
        _require_complete_hand_over(broker, admin, loaded.built.application_id, clock)
        looking = _Looking(broker, admin, loaded, clock)
        deadline = Deadline(clock, wait_ms)
        while True:
            obstacle = looking.look()
            if not obstacle:
                return looking.found
            if deadline.expired():
                raise _not_settled(loaded.built.application_id, broker.description, obstacle)
            time.sleep(_PAUSE_S)


class _Looking:
    """Looks at one application."""

    def __init__(self, broker: Broker, admin: Admin, loaded: LoadedApplication, clock: Clock) -> None:
        self._broker = broker
        self._admin = admin
        self._clock = clock
        self._application_id = loaded.built.application_id
        existing = admin.partition_counts()
        partitioning = resolve_partitions(loaded.built, existing)
        self._inputs: Mapping[TaskId, Sequence[TopicPartition]] = partitioning.tasks
        own = loaded.built.internal_topics
        self._between = sorted(
            {
                partition
                for of_task in partitioning.tasks.values()
                for partition in of_task
                if partition.topic in own and partition.partition < existing.get(partition.topic, 0)
            }
        )
        _require_changelogs(partitioning, existing, broker.description, self._application_id)
        self._changelogs = {
            task: [
                TopicPartition(topic, task.partition)
                for topic in loaded.built.subtopologies[task.subtopology].changelogs.values()
            ]
            for task in partitioning.tasks
        }
        #: The moments of the tasks that were found.
        self._found: dict[TaskId, LiveCut] = {}

    @property
    def found(self) -> LiveCut:
        """The moments of all tasks."""
        offsets: dict[TopicPartition, int] = {}
        ends: dict[TopicPartition, int] = {}
        for of_task in self._found.values():
            offsets |= of_task.offsets
            ends |= of_task.changelog_ends
        return LiveCut(offsets, ends)

    def look(self) -> str:
        """Look for the moments of tasks. Why some cannot be compared yet; empty if all were found."""
        before = self._admin.group_offsets(self._application_id)
        ends = self._changelog_ends()
        obstacle = self._under_way(before)
        after = self._admin.group_offsets(self._application_id)
        if not self._broker.transactional:
            self._require_stopped()
        if self._between:
            self._found = {}
        if obstacle:
            return obstacle
        for task, inputs in self._inputs.items():
            if all(before.get(partition) == after.get(partition) for partition in inputs):
                offsets = {p: before[p].offset for p in inputs if p in before}
                self._found.setdefault(task, LiveCut(offsets, {p: ends[p] for p in self._changelogs[task]}))
        found_all = len(self._found) == len(self._inputs)
        return "" if found_all else "it commits while its offsets and changelogs are read"

    def _changelog_ends(self) -> Mapping[TopicPartition, int]:
        changelogs = [*chain.from_iterable(self._changelogs.values())]
        if self._broker.transactional:
            return self._admin.stable_end_offsets(changelogs)
        return self._admin.end_offsets(changelogs)

    def _under_way(self, committed: Mapping[TopicPartition, CommittedOffset]) -> str:
        """Why the stores do not hold everything that was read; empty if they do."""
        ends = self._admin.end_offsets(self._between)
        for partition in self._between:
            offset = committed[partition].offset if partition in committed else 0
            if offset < ends[partition] and self._has_records(partition, offset):
                return f"records in {partition}, from offset {offset} on, are not processed yet"
        for task, inputs in self._inputs.items():
            metadata = merge_committed({p: committed[p] for p in inputs if p in committed})
            if metadata.stream_time < metadata.time_seen:
                return f"the stream time of task {task} still waits for tasks that lag"
        return ""

    def _has_records(self, partition: TopicPartition, offset: int) -> bool:
        """Offsets alone do not show it: the marks of transactions have some, too."""
        found = committed_batches(
            self._broker, self._admin, partition, self._clock, _SILENCE_MS, start_offset=offset
        )
        with closing(found):
            try:
                return next(found, None) is not None
            except SilentPartitionError:
                return True

    def _require_stopped(self) -> None:
        members = self._admin.group_members(self._application_id)
        if members:
            raise BrokerError(
                f"{self._application_id} is running, so its offsets and its changelogs are not of one moment",
                where=self._broker.description,
                why="with processing_guarantee=at_least_once it writes changelogs before it commits offsets; its "
                f"group has {len(members)} {plural(len(members), 'member')}: {listing(members, most=3)}",
                hint="stop all its instances, when they have caught up (pystreams run ... --until-caught-up), then "
                "verify",
            )


def _committed_nothing(application_id: str, where: str) -> BrokerError:
    return BrokerError(
        f"there is nothing to compare: {application_id} has not committed any offsets",
        where=where,
        why="it has not run on this log, or it was reset; Kafka deletes the offsets of a group without members "
        "after offsets.retention.minutes (7 days)",
        hint="check the log and the application's id, or run the application first",
    )


def _not_settled(application_id: str, where: str, obstacle: str) -> BrokerError:
    return BrokerError(
        f"not everything that {application_id} has read has reached its stores",
        where=where,
        why=obstacle,
        hint="let it catch up, and stop it (pystreams run ... --until-caught-up), or wait longer for a calm moment "
        "(--wait SECONDS)",
    )


def _require_changelogs(
    partitioning: Partitioning, existing: Mapping[str, int], where: str, application_id: str
) -> None:
    """Raises ``TopicError`` for a changelog that is not there, or has another number of partitions."""
    for topic, count in sorted(partitioning.changelog_topics.items()):
        if existing.get(topic) != count:
            raise TopicError(
                f"changelog {topic} has {existing.get(topic, 0)} partitions, the application has {count} for it"
                if topic in existing
                else f"there is no changelog {topic} to compare with",
                where=f"application {application_id}, {where}",
                why="the inputs have another number of partitions than when the application began"
                if topic in existing
                else "the application has not run with this store on this log",
                hint="verify the version of the application that runs on this log",
            )


def _require_last_version(broker: Broker, admin: Admin, loaded: LoadedApplication, clock: Clock) -> None:
    """Raises ``TopologyError`` if another topology has processed records last, as far as that is known."""
    built, config = loaded.built, loaded.config
    directory = StateDirectory(config.state_dir, built.application_id)
    last = KeptTopology(broker, admin, directory, built.application_id, clock).read()
    now = topology_as_kept(built)
    if last is None or without_headers(last.topology) == without_headers(now):
        return
    found = [one for one in changes(last.topology, now) if one.why or one.verdict is not Verdict.KEPT]
    found_changes = [
        f"{one.kind} {one.name} {one.verdict.value}" + (one.why and f": {one.why}") for one in found
    ]
    raise TopologyError(
        f"this is not the version of {built.application_id} that ran last",
        where=broker.description,
        why="; ".join(found_changes) or first_difference(last.topology, now),
        hint="verify with the program that ran last; pystreams diff shows what has changed since",
    )


def _require_complete_hand_over(broker: Broker, admin: Admin, application_id: str, clock: Clock) -> None:
    record = read_record(broker, admin, application_id, clock)
    if record is not None and not record.complete:
        raise StateError(
            "the hand-over of a backfill is incomplete",
            where=f"application {application_id}, {broker.description}",
            why=f"the hand-over of backfill {record.backfill_id} has begun to write the changelogs, and has not "
            "finished",
            hint="hand it over again (pystreams backfill ... --resume), then verify",
        )
