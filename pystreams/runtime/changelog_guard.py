"""Sees to it that a changelog ends with what its task has in its stores, whoever else has written to it.

A process that was frozen or cut off for longer than its session has a successor. When it wakes up, what it had sent
and not delivered yet still goes to the log, before it is told: an old value then stands behind newer ones, and the next
restore would take it for the truth. At least once, the log cannot refuse it. (Kafka Streams has this gap, too.) But the
owner knows how much it has written itself: a changelog that has grown by more was written to by somebody else. What
was written since is read again then, and every key whose last record is not the store's value is logged once more.

It is done after a commit, which proves that this member is the owner. Logs whose commits are atomic need none of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import closing

from pystreams.broker.port import Admin, Consumer
from pystreams.clock import Clock, Deadline
from pystreams.errors import BrokerUnavailableError
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS
from pystreams.runtime.active_task import ActiveTask

log = logging.getLogger(__name__)

_READ_TIMEOUT_MS = 10_000.0
_READ_POLL_MS = 100.0

#: Value and timestamp of a record, as a changelog holds them.
Logged = tuple[bytes | None, int]


class ChangelogGuard:
    """Guards the changelogs of one thread's tasks. ``consumer`` makes a consumer for the rare case."""

    def __init__(self, consumer: Callable[[], Consumer], admin: Admin, clock: Clock) -> None:
        self._consumer = consumer
        self._admin = admin
        self._clock = clock

    def check(self, tasks: Collection[ActiveTask], end_offsets: Mapping[TopicPartition, int]) -> int:
        """Compare end offsets after a commit with what the tasks have written. Gives the number of records that were
        logged once more; they are part of the next commit."""
        repaired = 0
        for task in tasks:
            for store, partition in task.changelogs.items():
                end = end_offsets.get(partition)
                if end is None:
                    continue
                start = task.log_ends[store]
                if end - start > task.logged[store]:
                    try:
                        repaired += self._repair(task, store, partition, start, end)
                    except BrokerUnavailableError as error:
                        log.warning(
                            "task %s: changelog %s is looked at later: %s", task.task_id, partition, error
                        )
                        continue
                else:
                    task.logged[store] = 0
                task.log_ends[store] = end
        return repaired

    def check_all(self, tasks: Collection[ActiveTask]) -> int:
        """The same for all changelogs, also for those to which nothing was written lately."""
        partitions = [partition for task in tasks for partition in task.changelogs.values()]
        return self.check(tasks, self._admin.end_offsets(partitions)) if partitions else 0

    def _repair(self, task: ActiveTask, store: str, partition: TopicPartition, start: int, end: int) -> int:
        strangers = end - start - task.logged[store]
        found = self._read(partition, start, end)
        task.logged[store] = 0
        repaired = 0
        for key, last in found.items():
            current = task.state.as_logged(store, key)
            if current is None:
                continue
            value, timestamp = current
            if (value, last[1] if timestamp is None else timestamp) != last:
                task.log_changes[store](key, value, timestamp, NO_HEADERS)
                repaired += 1
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

    def _read(self, partition: TopicPartition, start: int, end: int) -> dict[bytes, Logged]:
        """The last record of every key in a stretch of a changelog."""
        found: dict[bytes, Logged] = {}
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
                    for key, value, timestamp in zip(batch.keys, batch.values, batch.timestamps, strict=True):
                        if key is not None:
                            found[key] = value, timestamp
        return found
