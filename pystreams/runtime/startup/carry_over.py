"""Does to topics what a take-over asks for: content goes, or gets another name. Nobody else is at work meanwhile.

    tell       that it has begun; who starts from now on cleans up first, whichever version it is
    make anew  the changelogs of stores that begin anew, and of those that get content from a former name
    copy       the former changelogs, record by record
    commit     in one transaction: what is stored now, and the offsets with what they remember of stores by name
    clean up   the changelogs that nobody needs any more

Whoever is killed in between has changed nothing that counts: the next start does it again, from the beginning.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Final
from uuid import uuid4

from pystreams.broker.port import Admin, Broker, CommittedOffset, TopicSpec, TransactionalProducer
from pystreams.clock import Clock, Deadline
from pystreams.engine.offset_metadata import OffsetMetadata
from pystreams.errors import (
    BrokerError,
    BrokerUnavailableError,
    ProductionError,
    StreamsError,
    TopicError,
)
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS
from pystreams.state.begun import Begun
from pystreams.take_over.last_run import KeptTopology, LastRun, Unfinished
from pystreams.take_over.take_over_plan import TakeOver, without_unfinished
from pystreams.topics.committed_batches import SilentPartitionError, committed_batches
from pystreams.topology.built import BuiltTopology

log = logging.getLogger(__name__)

#: How many records are copied in one transaction where the log sets no bound: memory does.
_RECORDS_MAX: Final = 20_000
_SILENCE_MS: Final = 60_000.0
#: How long a start tries while nothing moves, and how long others that are at it may stand still before they are taken
#: for dead.
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
        """Do what ``plan`` makes of the ``last_run``, and give what holds then. If somebody else is at it, wait until
        that is done: members of one application start together.

        Raises ``BrokerError`` while the group has members, and for what cannot be done; what ``plan`` raises.
        """
        self._deadline = Deadline(self._clock, _PATIENCE_MS)
        failure: StreamsError | None = None
        while True:
            done = self._by_another(last_run, plan, failure)
            if done is not None:
                return done
            try:
                return self._alone(last_run, plan)
            # Sending fails with the second of them when somebody else takes over.
            except (BrokerError, ProductionError) as error:
                if self._is_own(error, last_run()):
                    raise
                failure = error
                log.info("what is stored cannot be taken over now: %s", error)

    def _is_own(self, error: StreamsError, last: LastRun | None) -> bool:
        """Whether nobody else can be the reason of a failure, and nothing is gained by another attempt."""
        mine = last is not None and last.unfinished is not None and last.unfinished == self._begun
        return mine and not isinstance(error, BrokerUnavailableError)

    def _by_another(
        self,
        last_run: Callable[[], LastRun | None],
        plan: Callable[[LastRun], TakeOver],
        failure: StreamsError | None,
    ) -> LastRun | None:
        """What holds when somebody else has done it; None if nobody is at it, or nothing has moved for a few seconds.

        Whoever begins ends the attempts of others, so who is slow must be left alone. An own ``failure`` means that
        somebody may have begun who has not told it yet; it is raised if nobody will be done: the old version runs, or
        there is no time left.
        """
        pause, patience = threading.Event(), Deadline(self._clock, _BY_ANOTHER_MS)
        seen: object = None
        while True:
            # Asked first: whoever has done it joins the group after that.
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
        """Differs whenever somebody who is at it has come further."""
        there = self._admin.partition_counts()
        names = map(self._built.changelog, (*todo.dropped, *todo.carried))
        partitions = [TopicPartition(name, number) for name in names for number in range(there.get(name, 0))]
        return last.unfinished, self._admin.end_offsets(partitions)

    def _alone(self, last_run: Callable[[], LastRun | None], plan: Callable[[LastRun], TakeOver]) -> LastRun:
        committer = self._broker.group_committer(
            "take-over", self._application_id, f"{self._application_id}-take-over"
        )
        with closing(committer):
            # Whoever was at it before has ended, or can commit nothing any more.
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
                self._require(begun)
                self._copy(old, new)
            then = self._with_beginnings(todo)
            committer.commit([self._kept.record(then)], self._offsets(todo.carried))
        self._kept.remember(then)
        self.clean_up(then)
        return then

    def _require(self, begun: Unfinished) -> None:
        """Topics are not fenced: raise ``BrokerError`` if somebody else has begun since."""
        last = self._kept.read()
        if last is None or last.unfinished != begun:
            raise BrokerError(
                f"somebody else takes over what {self._application_id} has stored",
                where=self._broker.description,
                hint="start again when that one has started",
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

    def _copy(self, old: str, new: str) -> None:
        was, now = self._built.changelog(old), self._built.changelog(new)
        there = self._admin.partition_counts()
        if was not in there or now not in there:
            log.info("store %s has what %s had: no changelog is to be copied", new, old)
            return
        if there[was] != there[now]:
            raise TopicError(
                f"the content of store {old} cannot be carried over to {new}",
                where=f"application {self._application_id}, {self._broker.description}",
                why=f"{was} has {there[was]} partitions, {now} needs {there[now]}",
                hint="give the inputs their former number of partitions, or reset the application (pystreams reset)",
            )
        copied = 0
        id = f"{self._application_id}-take-over-copy"
        with closing(self._broker.transactional_producer("take-over", id)) as producer:
            for partition in range(there[was]):
                copied += self._copy_partition(TopicPartition(was, partition), now, producer)
        log.info("store %s has what %s had: %d records were copied from %s to %s", new, old, copied, was, now)

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
                why=f"nothing arrived for {_SILENCE_MS / 1000:g} s: a transaction is open, or a broker is away",
                hint="start again: what a killed writer left open ends by its transaction.timeout.ms",
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

    def _offsets(self, carried: Mapping[str, str]) -> dict[TopicPartition, CommittedOffset]:
        """Those that remember something of a store under its former name, with its name."""
        names = {old: new for new, old in carried.items()}
        told: dict[TopicPartition, CommittedOffset] = {}
        for partition, at in self._admin.group_offsets(self._application_id).items() if names else ():
            metadata = OffsetMetadata.decode(at.metadata)
            if names.keys() & metadata.entries.keys():
                entries = {names.get(name, name): value for name, value in metadata.entries.items()}
                told[partition] = CommittedOffset(at.offset, replace(metadata, entries=entries).encode())
        return told

    def clean_up(self, last: LastRun) -> None:
        """Delete the changelogs that nobody needs any more. Whoever was killed before it leaves that to the next start.
        Raises nothing: where it is not permitted, a store of such a name gets a new changelog before it begins."""
        topics = [topic for topic in map(self._built.changelog, last.left_over) if topic not in self._specs]
        try:
            self._delete(topics)
        except BrokerError as error:
            log.warning("nobody needs %s any more, but it cannot be deleted: %s", ", ".join(topics), error)
