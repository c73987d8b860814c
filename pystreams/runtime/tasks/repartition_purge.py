"""Deletes from the application's own topics between sub-topologies what is processed and committed.

The brokers are asked and not waited for: how it went is looked at when it is time to ask again. A refusal costs disk
space and no results, so it is a warning, once until it works again. Source: TaskManager.maybePurgeCommittedRecords.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping

from pystreams.broker.port import Admin, Deletion
from pystreams.clock import Clock
from pystreams.errors import StreamsError
from pystreams.ids import TopicPartition
from pystreams.runtime.tasks.active_task import ActiveTask

log = logging.getLogger(__name__)


class Purge:
    """The purge of one thread's inputs among ``topics``, every ``interval_ms``."""

    def __init__(self, admin: Admin, topics: Collection[str], interval_ms: float, clock: Clock) -> None:
        self._admin = admin
        self._topics = topics
        self._interval_ms = interval_ms
        self._clock = clock
        self._next_ms = clock.monotonic_ms() + interval_ms
        self._deletion: Deletion | None = None
        self._refused = False

    def now_and_then(self, tasks: Iterable[ActiveTask]) -> None:
        """Ask, if it is time to and the last answer has come."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._next_ms or not (self._deletion is None or self._deletion.done):
            return
        self._next_ms = now_ms + self._interval_ms
        done = {
            partition: committed.offset
            for task in tasks
            for partition, committed in task.committed.items()
            if partition.topic in self._topics
        }
        if self._deletion is not None and self._works(self._deletion.wait):
            self._refused = False
        self._deletion = None
        if done:
            self._works(lambda: self._ask(done))

    def _ask(self, done: Mapping[TopicPartition, int]) -> None:
        self._deletion = self._admin.delete_records(done)

    def _works(self, step: Callable[[], None]) -> bool:
        try:
            step()
        except StreamsError as error:
            if not self._refused:
                log.warning("repartition topics keep what is processed: %s", error)
            self._refused = True
            return False
        return True
