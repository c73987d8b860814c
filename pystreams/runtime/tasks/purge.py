"""Deletes records that nobody reads any more from the application's own topics: processed and committed records from
the topics between sub-topologies, and overflow records of commits that later commits have replaced.

A request to the brokers is not waited for: its result is read when the next one is due. A failure costs disk space and
no results, so it is logged as a warning, and only once until a deletion succeeds again. Source:
TaskManager.maybePurgeCommittedRecords.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeAlias

from pystreams.broker.port import Admin, Deletion
from pystreams.clock import Clock
from pystreams.engine.offset_metadata import OffsetMetadata
from pystreams.engine.overflow import OverflowReference
from pystreams.errors import StreamsError
from pystreams.ids import TopicPartition
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.client_context import ClientContext

log = logging.getLogger(__name__)


#: Returns for the tasks of a thread the first offset to keep of each partition: the records before it are deleted.
#: Raises ``StreamsError``.
Deletable: TypeAlias = "Callable[[Iterable[ActiveTask]], Mapping[TopicPartition, int]]"


def processed(topics: Collection[str]) -> Deletable:
    """The offsets up to which tasks have processed and committed their inputs among ``topics``."""

    def deletable(tasks: Iterable[ActiveTask]) -> dict[TopicPartition, int]:
        return {
            partition: committed.offset
            for task in tasks
            for partition, committed in task.last_commit.items()
            if partition.topic in topics
        }

    return deletable


def replaced(admin: Admin, application_id: str) -> Deletable:
    """The offsets up to which no committed offset of the group refers to overflow records (``overflow_writer``) any
    more. All committed offsets of the group are read, because after a change of the program other tasks may refer to
    records in a task's topic."""

    def deletable(tasks: Iterable[ActiveTask]) -> dict[TopicPartition, int]:
        own = {task.overflow.place for task in tasks if task.overflow is not None and task.overflow.in_use}
        keep: dict[TopicPartition, int] = {}
        for partition, at in admin.group_offsets(application_id, stable=False).items() if own else ():
            reference = OverflowReference.of(OffsetMetadata.decode(at.metadata).entries, partition.partition)
            if reference is not None and (place := reference.place(application_id)) in own:
                keep[place] = min(reference.first_offset, keep.get(place, reference.first_offset))
        return keep

    return deletable


def purges_of(context: ClientContext) -> list[Purge]:
    """The purges of one thread of a client."""
    admin, clock, interval_ms = context.admin, context.clock, context.config.repartition_purge_interval_ms
    what = {
        "repartition topics": processed(context.built.internal_topics),
        "overflow topics": replaced(admin, context.built.application_id),
    }
    return [Purge(admin, topics, deletable, interval_ms, clock) for topics, deletable in what.items()]


class Purge:
    """Deletes the ``deletable`` records of one thread's tasks every ``interval_ms``. ``topics`` names the topics in log
    messages."""

    def __init__(
        self, admin: Admin, topics: str, deletable: Deletable, interval_ms: float, clock: Clock
    ) -> None:
        self._admin = admin
        self._topics = topics
        self._deletable = deletable
        self._interval_ms = interval_ms
        self._clock = clock
        self._next_ms = clock.monotonic_ms() + interval_ms
        self._deletion: Deletion | None = None
        self._refused = False

    def now_and_then(self, tasks: Iterable[ActiveTask]) -> None:
        """Request a deletion if one is due and the last one is done."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._next_ms or not (self._deletion is None or self._deletion.done):
            return
        self._next_ms = now_ms + self._interval_ms
        if self._deletion is not None and self._works(self._deletion.wait):
            self._refused = False
        self._deletion = None
        self._works(lambda: self._ask(tasks))

    def _ask(self, tasks: Iterable[ActiveTask]) -> None:
        if deletable := self._deletable(tasks):
            self._deletion = self._admin.delete_records(deletable)

    def _works(self, step: Callable[[], None]) -> bool:
        try:
            step()
        except StreamsError as error:
            if not self._refused:
                log.warning("%s keep what is not needed any more: %s", self._topics, error)
            self._refused = True
            return False
        return True
