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
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from typing import Final, NamedTuple

from pystreams.broker.port import ANSWER_TIMEOUT_MS, Admin, Consumer, Member, Producer
from pystreams.clock import Clock, Deadline
from pystreams.engine.commit import commit
from pystreams.errors import BrokerUnavailableError, StreamsError
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS, Headers
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
#: Stands for the time where the last record of a key counts, whatever its time.
_ANY_TIME: Final = -1

#: Value, timestamp (None: the store keeps none) and headers of a record, as a changelog holds them.
Logged = tuple[bytes | None, int | None, Headers]

#: The last record of each key in a stretch of a changelog; for a versioned store, of each key and time.
Found = dict[tuple[bytes, int], Logged]


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

    def take_back(self, tasks: Collection[ActiveTask]) -> list[Undone]:
        """Before tasks start again from their last commit: forget what their stores wrote since, and have what they
        have logged of it followed by what the stores held then. Otherwise it would be restored with them, and what is
        processed once more would count twice. Gives what stores of versions are better restored without.

        If that fails for one task, it is logged, and the others are still taken back. Flush the producer after it.
        Raises ``BrokerUnavailableError``: each of the others would have to wait for the log as well.
        """
        undone = []
        for task in tasks:
            try:
                undone += self._take_back(task)
            except BrokerUnavailableError:
                raise
            except StreamsError as error:
                log.warning(
                    "task %s: its changelogs could not be corrected, so repeated records may count twice in its stores:"
                    " %s",
                    task.task_id,
                    error,
                )
        return undone

    def _take_back(self, task: ActiveTask) -> list[Undone]:
        logged = {store: task.changelogs[store] for store, count in task.logged.items() if count}
        if not logged:
            return []
        ends = self._admin.end_offsets(list(logged.values()), _CHECK_TIMEOUT_MS)
        read = {
            store: self._read(task, store, partition, ends[partition]) for store, partition in logged.items()
        }
        undone = [
            Undone(logged[store], task.log_ends[store], ends[logged[store]])
            for store, found in read.items()
            if found and task.state.keeps_versions(store) and not _others(task, store, found)
        ]
        task.state.abort()
        for store, found in read.items():
            _log_again(task, store, found)
        return undone

    def _repair(
        self, task: ActiveTask, store: str, partition: TopicPartition, end: int, strangers: int
    ) -> int:
        found = self._read(task, store, partition, end)
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

    def _read(self, task: ActiveTask, store: str, partition: TopicPartition, end: int) -> Found:
        """The last record of every key in a changelog, from the offset up to which it is known to match the store, to
        ``end``."""
        found: Found = {}
        versions = task.state.keeps_versions(store)
        # Retention may have taken the first of them.
        start = max(task.log_ends[store], self._admin.beginning_offsets([partition])[partition])
        deadline = Deadline(self._clock, _READ_TIMEOUT_MS)
        with closing(self._consumer()) as consumer:
            consumer.assign({partition: start})
            while consumer.position(partition) < end:
                if deadline.expired():
                    raise BrokerUnavailableError(
                        "A changelog cannot be read in time",
                        where=f"topic-partition {partition}, offsets {start} to {end}",
                        why=f"the position is {consumer.position(partition)} after {_READ_TIMEOUT_MS / 1000:g} s",
                    )
                for batch in consumer.poll(_READ_POLL_MS):
                    headers = batch.headers or [NO_HEADERS] * len(batch)
                    logged = zip(batch.values, batch.timestamps, headers, strict=True)
                    found.update(
                        ((key, last[1] if versions else _ANY_TIME), last)
                        for key, last in zip(batch.keys, logged, strict=True)
                        if key is not None
                    )
        return found


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
