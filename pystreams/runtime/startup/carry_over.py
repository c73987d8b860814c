"""Changes topics for a take-over: deletes the content of stores, or copies it to another name. No member runs
meanwhile.

    record        write that it has begun; a later start of any version cleans up first
    create again  the changelogs of stores that start empty, and of those that get the content of a former name
    copy          the former changelogs, record by record
    commit        in one transaction: the record of the last run, and the offsets, whose metadata name stores
    delete        the changelogs that are not needed any more

A start that is killed before the commit has no effect: the next start repeats everything from the beginning.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Final
from uuid import uuid4

from pystreams.broker.port import Admin, Broker, CommittedOffset, TopicSpec, TransactionalProducer, Write
from pystreams.clock import Clock, Deadline
from pystreams.engine.dense_numbers import pack_numbers
from pystreams.engine.offset_metadata import OffsetMetadata
from pystreams.engine.overflow import OverflowReference, digest_of
from pystreams.errors import (
    BrokerError,
    BrokerUnavailableError,
    StreamsError,
    SupersededError,
    TopicError,
)
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS
from pystreams.runtime.tasks.overflow_reading import read_overflow
from pystreams.state.begun import Begun
from pystreams.take_over.last_run import KeptTopology, LastRun, Unfinished
from pystreams.take_over.take_over_plan import TakeOver, without_unfinished
from pystreams.topics.committed_batches import SilentPartitionError, committed_batches
from pystreams.topology.built import BuiltTopology

log = logging.getLogger(__name__)

#: The number of records copied in one transaction if the log has no limit, to limit memory.
_RECORDS_MAX: Final = 20_000
_SILENCE_MS: Final = 60_000.0
#: How long a start tries without progress. Another member's take-over counts as dead after the same time without
#: progress.
_PATIENCE_MS: Final = 120_000.0
_BY_ANOTHER_MS: Final = 10_000.0
_PAUSE_S: Final = 0.2


class CarryOver:
    """Carries out take-overs of one application. ``specs`` are the topics that its topology needs, by name."""

    def __init__(
        self,
        broker: Broker,
        admin: Admin,
        kept: KeptTopology,
        built: BuiltTopology,
        specs: Mapping[str, TopicSpec],
        clock: Clock,
    ) -> None:
        self._broker = broker
        self._admin = admin
        self._kept = kept
        self._built = built
        self._application_id = built.application_id
        self._specs = specs
        self._clock = clock
        self._deadline = Deadline(clock, _PATIENCE_MS)
        self._begun: Unfinished | None = None

    def run(self, last_run: Callable[[], LastRun | None], plan: Callable[[LastRun], TakeOver]) -> LastRun:
        """Carry out the take-over that ``plan`` returns for the ``last_run``, and return the new record. If another
        member is doing so, wait until it has finished: members of one application often start together.

        Raises ``BrokerError`` while the group has members, and for changes that fail; also the errors of ``plan``.
        """
        self._deadline = Deadline(self._clock, _PATIENCE_MS)
        failure: StreamsError | None = None
        while True:
            done = self._by_another(last_run, plan, failure)
            if done is not None:
                return done
            try:
                return self._alone(last_run, plan)
            except BrokerError as error:
                if self._is_own(error, last_run()):
                    raise
                failure = error
                log.info("the stored data cannot be taken over now: %s", error)

    def _is_own(self, error: StreamsError, last: LastRun | None) -> bool:
        """Whether a failure cannot be due to another member, so that a retry is useless."""
        mine = last is not None and last.unfinished is not None and last.unfinished == self._begun
        return mine and not isinstance(error, (BrokerUnavailableError, SupersededError))

    def _by_another(
        self,
        last_run: Callable[[], LastRun | None],
        plan: Callable[[LastRun], TakeOver],
        failure: StreamsError | None,
    ) -> LastRun | None:
        """The record after another member has finished; None if no other member is carrying out the take-over, or if it
        makes no progress.

        A new attempt aborts the attempts of others, so a slow attempt must not be disturbed. ``failure`` is the error
        of this member's own attempt: it means that another member may have begun without having recorded it yet. It is
        raised if no member can finish, because the old version runs or no time is left.
        """
        pause, patience = threading.Event(), Deadline(self._clock, _BY_ANOTHER_MS)
        seen: object = None
        while True:
            # Before the record of the last run, because a member joins the group after it has finished.
            members = self._admin.group_members(self._application_id)
            last = last_run()
            if last is None or not (todo := plan(last)).changes_data:
                return last
            if failure is not None and (members or self._deadline.expired()):
                raise failure
            if last.unfinished is None and failure is None:
                return None
            if (found := self._progress(last, todo)) != seen:
                if seen is not None:
                    self._deadline = Deadline(self._clock, _PATIENCE_MS)
                seen, patience = found, Deadline(self._clock, _BY_ANOTHER_MS)
            if members or patience.expired():
                return None
            pause.wait(_PAUSE_S)

    def _progress(self, last: LastRun, todo: TakeOver) -> object:
        """A value that changes whenever another member's take-over makes progress."""
        there = self._admin.partition_counts()
        names = map(self._built.changelog, (*todo.dropped, *todo.carried))
        partitions = [TopicPartition(name, number) for name in names for number in range(there.get(name, 0))]
        try:
            return last.unfinished, self._admin.end_offsets(partitions)
        except TopicError:
            # The other member is deleting these topics, or has just created them and not all brokers know them yet.
            return last.unfinished, None

    def _alone(self, last_run: Callable[[], LastRun | None], plan: Callable[[LastRun], TakeOver]) -> LastRun:
        committer = self._broker.group_committer(
            "take-over", self._application_id, f"{self._application_id}-take-over"
        )
        with closing(committer):
            # By now, earlier attempts have ended, or cannot commit any more.
            last = last_run()
            assert last is not None, "there is something to take over"
            todo = plan(last)
            if not todo.changes_data:
                return last
            begun = self._begun = Unfinished(uuid4().hex, todo.dropped, todo.carried)
            committer.commit([self._kept.record(replace(without_unfinished(last), unfinished=begun))], {})
            self._require(begun)
            self._make_anew(todo, [] if last.unfinished is None else self._spoilt(last.unfinished))
            for new, old in todo.carried.items():
                self._copy(old, new, begun)
            then = self._with_beginnings(todo)
            offsets, overflow = self._offsets(todo.carried)
            committer.commit([self._kept.record(then), *overflow], offsets)
        self._kept.remember(then)
        self.clean_up(then)
        return then

    def _require(self, begun: Unfinished) -> None:
        """Raise ``BrokerError`` if another member has begun since: changes of topics are not fenced."""
        last = self._kept.read()
        if last is None or last.unfinished != begun:
            raise BrokerError(
                f"another member is taking over the stored data of {self._application_id}",
                where=self._broker.description,
                hint="start again when the other member has started",
            )

    def _spoilt(self, unfinished: Unfinished) -> list[str]:
        return [self._built.changelog(store) for store in (*unfinished.dropped, *unfinished.carried)]

    def _delete(self, topics: Collection[str]) -> None:
        there = self._admin.partition_counts()
        found = [topic for topic in topics if topic in there]
        if found:
            self._admin.delete_topics(found)

    def _make_anew(self, todo: TakeOver, spoilt: Collection[str]) -> None:
        topics = [self._built.changelog(store) for store in (*todo.dropped, *todo.carried)]
        used = {*topics, *spoilt}
        there = self._admin.partition_counts()
        self._admin.require_remaking([topic for topic in used if topic in there])
        self._delete(used)
        self._admin.create_topics([self._specs[topic] for topic in sorted(used) if topic in self._specs])

    def _copy(self, old: str, new: str, begun: Unfinished) -> None:
        was, now = self._built.changelog(old), self._built.changelog(new)
        there = self._admin.partition_counts()
        if was not in there or now not in there:
            log.info("store %s takes over the content of %s: there is no changelog to copy", new, old)
            return
        if there[was] != there[now]:
            raise TopicError(
                f"the content of store {old} cannot be carried over to {new}",
                where=f"application {self._application_id}, {self._broker.description}",
                why=f"{was} has {there[was]} partitions, {now} needs {there[now]}",
                hint="create the inputs with their former number of partitions, or reset the application (pystreams "
                "reset)",
            )
        copied = 0
        id = f"{self._application_id}-take-over-copy"
        with closing(self._broker.transactional_producer("take-over", id)) as producer:
            # Only now, because this producer may have fenced the producer of a member that began later.
            self._require(begun)
            for partition in range(there[was]):
                copied += self._copy_partition(TopicPartition(was, partition), now, producer)
        log.info(
            "store %s takes over the content of %s: %d records were copied from %s to %s",
            new,
            old,
            copied,
            was,
            now,
        )

    def _copy_partition(self, was: TopicPartition, topic: str, producer: TransactionalProducer) -> int:
        limit = producer.transaction_records_max or _RECORDS_MAX
        sent = 0
        try:
            for batch in committed_batches(self._broker, self._admin, was, self._clock, _SILENCE_MS):
                headers = batch.headers or [NO_HEADERS] * len(batch)
                for record in zip(batch.keys, batch.values, batch.timestamps, headers, strict=True):
                    producer.send(topic, was.partition, *record)
                    sent += 1
                    if sent % limit == 0:
                        producer.commit()
        except SilentPartitionError as error:
            raise BrokerUnavailableError(
                f"changelog {was} cannot be read to its end",
                where=f"{self._broker.description}, {error}",
                why=f"nothing arrived for {_SILENCE_MS / 1000:g} s: a transaction is open, or a broker is down",
                hint="start again: the open transaction of a killed writer ends after its transaction.timeout.ms",
            ) from error
        producer.commit()
        return sent

    def _with_beginnings(self, todo: TakeOver) -> LastRun:
        then = todo.then()
        begun = dict(then.begun)
        begun |= {store: Begun(uuid4().hex) for store in (*todo.dropped, *todo.carried.values())}
        begun |= {new: Begun(uuid4().hex, old) for new, old in todo.carried.items()}
        left_over = {*then.left_over, *todo.dropped, *todo.carried.values()}
        needed = {store for store in left_over if self._built.changelog(store) in self._specs}
        return replace(then, begun=begun, left_over=tuple(sorted(left_over - needed)))

    def _offsets(
        self, carried: Mapping[str, str]
    ) -> tuple[dict[TopicPartition, CommittedOffset], list[Write]]:
        """The offsets whose metadata refer to a store by its former name, with the new name instead; and the overflow
        records of such metadata."""
        names = {old: new for new, old in carried.items()}
        offsets = self._admin.group_offsets(self._application_id) if names else {}
        renamed: dict[TopicPartition, CommittedOffset] = {}
        overflow: dict[OverflowReference, Write] = {}
        for partition, at in offsets.items():
            metadata = OffsetMetadata.decode(at.metadata)
            entries = {names.get(name, name): value for name, value in metadata.entries.items()}
            reference = OverflowReference.of(entries, partition.partition)
            if reference is not None and reference.has_emitted:
                in_record, write = self._overflow(reference, names)
                entries |= in_record.entries()
                overflow[in_record] = write
            if entries != metadata.entries:
                renamed[partition] = CommittedOffset(at.offset, replace(metadata, entries=entries).encode())
        return renamed, list(overflow.values())

    def _overflow(
        self, reference: OverflowReference, names: Mapping[str, str]
    ) -> tuple[OverflowReference, Write]:
        """The overflow record of a commit with the new names of stores."""
        found = read_overflow(self._broker, self._admin, self._application_id, [reference], self._clock)
        value = pack_numbers({names.get(name, name): number for name, number in found[reference].items()})
        place, key = reference.place(self._application_id), b"take-over"
        return replace(reference, digest=digest_of(value)), Write(*place, key, value, self._clock.now_ms())

    def clean_up(self, last: LastRun) -> None:
        """Delete the changelogs that are not needed any more. If a start is killed before this, the next start does it.

        Raises nothing: if deletion is not permitted, a later store of such a name gets a new changelog before it
        starts.
        """
        topics = [topic for topic in map(self._built.changelog, last.left_over) if topic not in self._specs]
        try:
            self._delete(topics)
        except BrokerError as error:
            log.warning("%s is not needed any more, but it cannot be deleted: %s", ", ".join(topics), error)
