"""The one function that commits tasks; every host calls it.

    flush caches          dirty entries are forwarded and logged, in the order of their last update
    producer.commit       outputs, changelogs and input offsets become durable; this step decides
    after_commit          stores are written, with the changelog offsets that the log has returned

After a failure before the end of the second step, the caller discards the work of the tasks since their last commit,
and starts them again from there. If the log is transactional, the failed commit has no effect; otherwise records that
were sent stay in their topics, and are written again (at least once). After a crash behind the second step, the stores
are older than their changelogs, and the next restore reads the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from pystreams.broker.port import CommittedOffset, Member, Producer
from pystreams.ids import TopicPartition


class Committable(Protocol):
    """The interface of a task for its commit."""

    def flush(self) -> None:
        """Forward and log the dirty entries in the caches of the stores."""
        ...

    def offsets_to_commit(self) -> Mapping[TopicPartition, CommittedOffset]:
        """The input offsets that differ from the last commit. Called after ``flush``."""
        ...

    def after_commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset], end_offsets: Mapping[TopicPartition, int]
    ) -> None:
        """The log has committed the task's ``offsets``: write the stores. ``end_offsets`` are those of all changelogs
        that were written."""
        ...


Task = TypeVar("Task", bound=Committable)


def _nobody(_: object) -> None:
    """The default of ``working``: does nothing."""


def commit(
    tasks: Sequence[Task],
    producer: Producer,
    member: Member | None = None,
    *,
    again: Mapping[TopicPartition, CommittedOffset] | None = None,
    working: Callable[[Task | None], None] = _nobody,
) -> dict[TopicPartition, int]:
    """Commit the work of ``tasks`` since their last commit, and everything else that was sent with ``producer``: tasks
    that share a producer commit together. Returns the end offsets of the changelogs that were written.

    ``member`` None: no group is checked. ``again``: offsets to commit once more. ``working`` is called with the task
    at work, so that the caller knows which task a failure belongs to. Raises the errors of the producer and the flush.
    """
    for task in tasks:
        working(task)
        task.flush()
    working(None)
    offsets = [task.offsets_to_commit() for task in tasks]
    merged = dict(again or {})
    for of_task in offsets:
        merged.update(of_task)
    end_offsets = producer.commit(merged, member)
    for task, of_task in zip(tasks, offsets, strict=True):
        working(task)
        task.after_commit(of_task, end_offsets)
    working(None)
    return end_offsets
