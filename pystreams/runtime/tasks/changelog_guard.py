"""Keeps the last records of a changelog equal to the stores of its task, even if another process writes to it.

A process that was frozen or cut off for longer than its session has a successor. When it wakes up, the records that it
had sent but not delivered still go to the log, before it learns of its successor: an old value then stands behind newer
ones, and the next restore would take it for the last one. At least once, the log cannot refuse such records. (Kafka
Streams has this gap, too.) But a task counts what it writes: a changelog that has grown by more was written to by
another process. The task then reads the new part of the changelog, and logs every key again whose last record differs
from the store.

The process that finds foreign records may itself be the one that was frozen; they are then those of its successor, and
right. So, after reading and before logging, the task commits its last offsets once more: the group refuses this to a
member that was replaced. Logs whose commits are atomic need none of this.
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

#: How often changelogs are looked at to which nothing was written meanwhile.
CHECK_INTERVAL_MS: Final = 30_000.0
#: The thread has better things to do than to wait for a broker that is away: there is a next time.
_CHECK_TIMEOUT_MS: Final = 2_000.0
_READ_TIMEOUT_MS: Final = 10_000.0
_READ_POLL_MS: Final = 100.0
#: What the answer for one more partition may take, where thousands are asked for.
_ANSWER_MS: Final = 1.0
#: Stands for the time where the last record of a key counts, whatever its time.
_ANY_TIME: Final = -1

#: Value, timestamp (None: the store keeps none) and headers of a record, as a changelog holds them.
Logged = tuple[bytes | None, int | None, Headers]

#: The last record of each key in a stretch of a changelog; for a versioned store, of each key and time.
Found = dict[tuple[bytes, int], Logged]


class _Stretch(NamedTuple):
    """Consecutive records of a changelog. ``versions``: no record of a key takes the place of one with another time."""

    partition: TopicPartition
    start_offset: int
    end_offset: int
    versions: bool


class _Read(NamedTuple):
    """What a stretch of a store's changelog holds."""

    store: str
    stretch: _Stretch
    found: Found


class Undone(NamedTuple):
    """A stretch of a versioned store's changelog that holds only records of this task that were undone.

    A version cannot be removed from such a changelog, and a new record for its time would come after the versions that
    are written when the work is done again. So the store is restored without the stretch.
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
        """``consumer`` makes a consumer for the rare case. ``confirm`` has the log confirm a task's last commit: raises
        ``TaskMigratedError`` if the task is not this member's any more."""
        self._consumer = consumer
        self._admin = admin
        self._confirm = confirm
        self._clock = clock
        self._next_check_ms = clock.monotonic_ms() + CHECK_INTERVAL_MS
        #: Something was logged once more and is not part of a commit yet.
        self.commit_needed = False

    def check(self, tasks: Collection[ActiveTask], end_offsets: Mapping[TopicPartition, int]) -> int:
        """Compare end offsets after a commit with what the tasks have written. Gives the number of records that were
        logged once more; they are part of the next commit.

        Raises ``TaskMigratedError`` if it is this member that was replaced.
        """
        repaired = 0
        for task in tasks:
            for store, partition in task.changelogs.items():
                end = end_offsets.get(partition)
                if end is None:
                    continue
                strangers = end - task.log_ends[store] - task.logged[store]
                # Without a commit the group cannot confirm whose the task is; and there is hardly any state.
                if strangers > 0 and not task.committed:
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
        """``check_all``, if it is time to; later, if the broker is away."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._next_check_ms:
            return
        self._next_check_ms = now_ms + CHECK_INTERVAL_MS
        try:
            self.check_all(tasks, _CHECK_TIMEOUT_MS)
        except BrokerUnavailableError as error:
            log.info("changelogs cannot be checked now and are checked later: %s", error)

    def take_back(self, tasks: Sequence[ActiveTask]) -> list[Undone]:
        """Before tasks start again from their last commit: forget what their stores wrote since, and have what they
        have logged of it followed by what the stores held then. Otherwise it would be restored with them, and what is
        processed once more would count twice. Gives what stores of versions are better restored without.

        If that fails for one task, it is logged, and the others are still taken back. Flush the producer after it.
        Raises ``BrokerUnavailableError``: each of the others would have to wait for the log as well.
        """
        try:
            read = self._read_logged(tasks)
        except BrokerUnavailableError:
            raise
        except StreamsError as error:
            if len(tasks) > 1:
                # One of them has a changelog that cannot be read.
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
        """What the tasks have logged since their last commits, without the stores that have logged nothing. All is read
        at once: with thousands of changelogs, one after the other would take minutes."""
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
        # Retention may have taken the first of them.
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
    """What the changelog of a store holds behind the offset up to which it is known to match the store."""
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
    """The keys that were ``found`` with something else than the store holds, each with what it holds."""
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
    """Log what the store holds under the keys that were ``found`` with something else; give the number of records.
    In a log of versions nothing takes the place of another."""
    others = [] if task.state.keeps_versions(store) else _others(task, store, found)
    for key, (value, timestamp, headers) in others:
        task.log_changes[store](key, value, timestamp, headers)
    return len(others)


def guard_of(
    context: ClientContext, member: Member, producer: Producer, last_commits: LastCommits, thread: str
) -> ChangelogGuard | None:
    """The guard of a thread's changelogs; None: the log's commits are atomic."""
    broker = context.broker
    if broker.transactional:
        return None

    def confirm(task: ActiveTask) -> None:
        last_commits.require([task])
        commit(list[ActiveTask](), producer, member, again=task.committed)

    return ChangelogGuard(
        lambda: broker.consumer(f"{thread}-guard", "restore"), context.admin, confirm, context.clock
    )
