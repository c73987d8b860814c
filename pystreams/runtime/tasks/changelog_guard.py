"""Keeps the last records of a changelog equal to the stores of its task, even if another process writes to it.

A process that was frozen or cut off for longer than its session timeout is replaced by a successor. When it wakes up,
its client still sends the records that were waiting, before it learns of the successor: an old value then stands behind
newer ones, and the next restore would take it for the last one. With at-least-once guarantees the log cannot refuse
such records. (Kafka Streams has this gap, too.) But a task counts the records that it writes: if a changelog has grown
by more, another process has written to it. The task then reads the new part of the changelog, and logs again every key
whose last record differs from the store.

The process that finds foreign records may itself be the one that was frozen; then they are records of its successor,
and correct. So, after reading and before logging, the task commits its last offsets once more: the group refuses this
to a member that was replaced. Logs with atomic commits need none of this.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from typing import Final, NamedTuple

from pystreams.broker.port import ANSWER_TIMEOUT_MS, Admin, Consumer, Member, Producer
from pystreams.clock import Clock, Deadline
from pystreams.engine.commit import commit
from pystreams.errors import BrokerUnavailableError, StreamsError
from pystreams.ids import TaskId, TopicPartition
from pystreams.record import NO_HEADERS, Headers, RecordBatch
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.client_context import ClientContext
from pystreams.runtime.tasks.last_commits import LastCommits

log = logging.getLogger(__name__)

#: How often changelogs are checked to which the task has written nothing meanwhile.
CHECK_INTERVAL_MS: Final = 30_000.0
#: A short wait for a broker that does not answer, because the thread has other work: the next check comes soon enough.
_CHECK_TIMEOUT_MS: Final = 2_000.0
_READ_TIMEOUT_MS: Final = 10_000.0
_READ_POLL_MS: Final = 100.0
#: Added to the timeout of a request for each of its partitions, because there may be thousands.
_ANSWER_MS: Final = 1.0
#: Takes the place of the time in ``Found`` where the last record of a key counts, whatever its time.
_ANY_TIME: Final = -1

#: Value, timestamp (None: the store keeps none) and headers of a record, as a changelog holds them.
Logged = tuple[bytes | None, int | None, Headers]

#: The last record of each key in a stretch of a changelog; for a versioned store, of each key and time.
Found = dict[tuple[bytes, int], Logged]


class _Stretch(NamedTuple):
    """Consecutive records of a changelog. ``versions``: a record replaces an earlier one only if both have the same key
    and the same time, as in the changelog of a versioned store."""

    partition: TopicPartition
    start_offset: int
    end_offset: int
    versions: bool


class _Read(NamedTuple):
    """The content of a stretch of a store's changelog."""

    store: str
    stretch: _Stretch
    found: Found


class Undone(NamedTuple):
    """A stretch of a versioned store's changelog that holds only undone records of this task.

    A version cannot be removed from such a changelog, and a new record for its time would conflict with the versions
    that are written when the work is repeated. So the store is restored without the stretch.
    """

    partition: TopicPartition
    start_offset: int
    end_offset: int


class ChangelogGuard:
    """Guards the changelogs of one thread's tasks."""

    def __init__(
        self,
        consumer: Callable[[], Consumer],
        admin: Admin,
        confirm: Callable[[ActiveTask], object],
        clock: Clock,
    ) -> None:
        """``consumer`` makes a consumer for the rare case that a changelog must be read. ``confirm`` has the log
        confirm a task's last commit: it raises ``TaskMigratedError`` if the task is not this member's any more."""
        self._consumer = consumer
        self._admin = admin
        self._confirm = confirm
        self._clock = clock
        self._next_check_ms = clock.monotonic_ms() + CHECK_INTERVAL_MS
        #: Something was logged once more and is not part of a commit yet.
        self.commit_needed = False

    def check(self, tasks: Collection[ActiveTask], end_offsets: Mapping[TopicPartition, int]) -> int:
        """Compare the end offsets after a commit with the number of records that the tasks have written. Returns the
        number of records that were logged again; they are part of the next commit.

        Raises ``TaskMigratedError`` if this member was replaced.
        """
        repaired = 0
        for task in tasks:
            for store, partition in task.changelogs.items():
                end = end_offsets.get(partition)
                if end is None:
                    continue
                strangers = end - task.log_ends[store] - task.logged[store]
                # Without a commit, the group cannot confirm who has the task; and there is hardly any state yet.
                if strangers > 0 and not task.last_commit:
                    continue
                if strangers > 0:
                    try:
                        repaired += self._repair(task, store, partition, end, strangers)
                    except BrokerUnavailableError as error:
                        log.warning(
                            "task %s: changelog %s cannot be checked now and is checked later: %s",
                            task.task_id,
                            partition,
                            error,
                        )
                        return repaired
                else:
                    task.logged[store] = 0
                task.log_ends[store] = end
        return repaired

    def check_all(self, tasks: Collection[ActiveTask], timeout_ms: float = ANSWER_TIMEOUT_MS) -> int:
        """Like ``check``, for all changelogs, including those without new records. Also raises
        ``BrokerUnavailableError``."""
        partitions = [partition for task in tasks for partition in task.changelogs.values()]
        return self.check(tasks, self._admin.end_offsets(partitions, timeout_ms)) if partitions else 0

    def now_and_then(self, tasks: Collection[ActiveTask]) -> None:
        """Call ``check_all`` if it is due. If the broker does not answer, the next call is soon enough."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._next_check_ms:
            return
        self._next_check_ms = now_ms + CHECK_INTERVAL_MS
        try:
            self.check_all(tasks, _CHECK_TIMEOUT_MS)
        except BrokerUnavailableError as error:
            log.info("changelogs cannot be checked now and are checked later: %s", error)

    def take_back(self, tasks: Sequence[ActiveTask]) -> list[Undone]:
        """Undo the uncommitted changes of tasks before these start again from their last commit: abort the changes of
        their stores, and log again the committed entries of all keys that were logged since. Otherwise a restore would
        include the uncommitted changes, and records that are processed again would count twice. Returns the stretches
        that restores of versioned stores must leave out.

        If this fails for one task, it is logged, and the others are still taken back. Flush the producer afterwards.
        Raises ``BrokerUnavailableError`` at once, because every other task would have to wait for the log, too.
        """
        try:
            read = self._read_logged(tasks)
        except BrokerUnavailableError:
            raise
        except StreamsError as error:
            if len(tasks) > 1:
                # The changelog of one task cannot be read: try each task by itself.
                return [one for task in tasks for one in self.take_back([task])]
            _warn_of(tasks[0], error)
            return []
        undone = []
        for task, logged in read:
            try:
                undone += self._take_back(task, logged)
            except BrokerUnavailableError:
                raise
            except StreamsError as error:
                _warn_of(task, error)
        return undone

    def _read_logged(self, tasks: Collection[ActiveTask]) -> list[tuple[ActiveTask, list[_Read]]]:
        """The records that the tasks have logged since their last commits, without the stores that have logged nothing.
        All changelogs are read at the same time: thousands of them would take minutes one after the other."""
        logged = [
            (task, store, task.changelogs[store])
            for task in tasks
            for store, count in task.logged.items()
            if count
        ]
        if not logged:
            return []
        ends = self._admin.end_offsets(
            [partition for _, _, partition in logged], _CHECK_TIMEOUT_MS + len(logged) * _ANSWER_MS
        )
        stretches = [_stretch(task, store, ends[partition]) for task, store, partition in logged]
        found = self._read(stretches)
        of_task: dict[TaskId, tuple[ActiveTask, list[_Read]]] = {}
        for (task, store, _), stretch in zip(logged, stretches, strict=True):
            of_task.setdefault(task.task_id, (task, []))[1].append(
                _Read(store, stretch, found[stretch.partition])
            )
        return list(of_task.values())

    def _take_back(self, task: ActiveTask, logged: Collection[_Read]) -> list[Undone]:
        undone = [
            Undone(*one.stretch[:3])
            for one in logged
            if one.found and one.stretch.versions and not _others(task, one.store, one.found)
        ]
        task.state.abort()
        for one in logged:
            _log_again(task, one.store, one.found)
        return undone

    def _repair(
        self, task: ActiveTask, store: str, partition: TopicPartition, end: int, strangers: int
    ) -> int:
        found = self._read([_stretch(task, store, end)])[partition]
        self._confirm(task)
        task.logged[store] = 0
        repaired = _log_again(task, store, found)
        self.commit_needed |= repaired > 0
        log.warning(
            "task %s: %d records of changelog %s are not this task's: a former owner, frozen or cut off for a time, "
            "has written them late; %d of %d keys are logged again",
            task.task_id,
            strangers,
            partition,
            repaired,
            len(found),
        )
        return repaired

    def _read(self, stretches: Collection[_Stretch]) -> dict[TopicPartition, Found]:
        """The last record of every key in stretches of changelogs. Raises ``BrokerUnavailableError`` if nothing
        arrives for some time."""
        found: dict[TopicPartition, Found] = {one.partition: {} for one in stretches}
        # Retention may have deleted the first of these records.
        beginnings = self._admin.beginning_offsets(list(found))
        left = {one.partition: one for one in stretches if beginnings[one.partition] < one.end_offset}
        with closing(self._consumer()) as consumer:
            consumer.assign({p: max(one.start_offset, beginnings[p]) for p, one in left.items()})
            deadline = Deadline(self._clock, _READ_TIMEOUT_MS)
            while True:
                done = [p for p, one in left.items() if consumer.position(p) >= one.end_offset]
                for partition in done:
                    del left[partition]
                consumer.unassign(done)
                if not left:
                    return found
                if deadline.expired():
                    raise _not_read(left.values(), consumer)
                batches = consumer.poll(_READ_POLL_MS)
                for batch in batches:
                    partition = TopicPartition(batch.topic, batch.partition)
                    _add(found[partition], batch, versions=left[partition].versions)
                if batches:
                    deadline = Deadline(self._clock, _READ_TIMEOUT_MS)


def _stretch(task: ActiveTask, store: str, end_offset: int) -> _Stretch:
    """The stretch of a store's changelog from ``log_ends``, up to which it is known to match the store, to its end."""
    return _Stretch(
        task.changelogs[store], task.log_ends[store], end_offset, task.state.keeps_versions(store)
    )


def _add(found: Found, batch: RecordBatch, *, versions: bool) -> None:
    headers = batch.headers or [NO_HEADERS] * len(batch)
    logged = zip(batch.values, batch.timestamps, headers, strict=True)
    found.update(
        ((key, last[1] if versions else _ANY_TIME), last)
        for key, last in zip(batch.keys, logged, strict=True)
        if key is not None
    )


def _not_read(left: Collection[_Stretch], consumer: Consumer) -> BrokerUnavailableError:
    one, *others = left
    return BrokerUnavailableError(
        "A changelog cannot be read in time",
        where=f"topic-partition {one.partition}, offsets {one.start_offset} to {one.end_offset}"
        + (f" (and {len(others)} more)" if others else ""),
        why=f"the position is {consumer.position(one.partition)},"
        f" and nothing has arrived for {_READ_TIMEOUT_MS / 1000:g} s",
    )


def _warn_of(task: ActiveTask, error: StreamsError) -> None:
    log.warning(
        "task %s: its changelogs could not be corrected, so repeated records may count twice in its stores: %s",
        task.task_id,
        error,
    )


def _others(task: ActiveTask, store: str, found: Found) -> list[tuple[bytes, Logged]]:
    """The keys whose ``found`` record differs from the store, each with the store's entry."""
    others: list[tuple[bytes, Logged]] = []
    for (key, time), last in found.items():
        current = task.state.as_logged(store, key, time)
        if current is None:
            continue
        value, timestamp, headers = current
        # A timestamp or headers that the store does not keep may have any value.
        held = (value, last[1] if timestamp is None else timestamp, last[2] if headers is None else headers)
        if held != last:
            others.append((key, (value, timestamp, headers or NO_HEADERS)))
    return others


def _log_again(task: ActiveTask, store: str, found: Found) -> int:
    """Log the store's entries of the keys whose ``found`` record differs; returns their number. Nothing is logged for a
    versioned store, because a new record does not replace a version with another time."""
    others = [] if task.state.keeps_versions(store) else _others(task, store, found)
    for key, (value, timestamp, headers) in others:
        task.log_changes[store](key, value, timestamp, headers)
    return len(others)


def guard_of(
    context: ClientContext, member: Member, producer: Producer, last_commits: LastCommits, thread: str
) -> ChangelogGuard | None:
    """The guard of a thread's changelogs; None if the log's commits are atomic."""
    broker = context.broker
    if broker.transactional:
        return None

    def confirm(task: ActiveTask) -> None:
        last_commits.require([task])
        commit(list[ActiveTask](), producer, member, again=task.last_commit)

    return ChangelogGuard(
        lambda: broker.consumer(f"{thread}-guard", "restore"), context.admin, confirm, context.clock
    )
