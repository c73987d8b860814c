"""The only place that commits.

One commit covers all running tasks of a thread, because they share a producer:

    member.confirm        nothing is written by whoever was replaced, as far as that can be known
    flush caches          dirty entries are forwarded and logged, in the order of their last update
    producer.commit       outputs, changelogs and input offsets become durable; the one step that decides
    state.commit          stores, with the changelog offsets that the log gave
    guard.check           changelogs that hold more than the tasks wrote are set right

A failure before the second step has ended means that nothing happened: the caller drops what the tasks did since their
last commit and starts them again from there. A crash after it leaves stores behind their changelogs, and the next
restore reads the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pystreams.broker.port import CommittedOffset, Consumer, Member, Producer
from pystreams.ids import TopicPartition
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.changelog_guard import ChangelogGuard

#: How long the ends of changelogs are asked for before tasks are given up.
_LEAVE_TIMEOUT_MS: Final = 5_000.0

#: Tells which task is at work, so that a failure can be blamed on it.
Working = Callable[[ActiveTask | None], None]


class Committer:
    """Commits the tasks of one thread."""

    def __init__(
        self,
        producer: Producer,
        member: Member,
        consumer: Consumer,
        working: Working,
        guard: ChangelogGuard | None = None,
    ) -> None:
        """Without ``guard`` nobody else can write to the changelogs."""
        self._producer = producer
        self._member = member
        self._consumer = consumer
        self._working = working
        self._guard = guard

    def commit(self, tasks: Sequence[ActiveTask]) -> None:
        """Commit all that ``tasks``, the running tasks of the thread, have done since the last time.

        Raises what the broker raises: ``BrokerUnavailableError`` (nothing is lost, try again), ``TaskMigratedError``,
        ``ProductionError``; and what flushing runs into.
        """
        self._member.confirm()
        for task in tasks:
            self._working(task)
            task.stream.flush()
        self._working(None)
        offsets = {task.task_id: task.offsets_to_commit(self._consumer.position) for task in tasks}
        merged: dict[TopicPartition, CommittedOffset] = {}
        for of_task in offsets.values():
            merged.update(of_task)
        end_offsets = self._producer.commit(merged, self._member)
        for task in tasks:
            self._working(task)
            task.committed.update(offsets[task.task_id])
            task.state.commit(task.restore_offsets(end_offsets))
            task.stream.committed()
        self._working(None)
        if self._guard is not None:
            self._guard.commit_needed = False
            self._guard.check(tasks, end_offsets)

    def leave_in_order(self, tasks: Sequence[ActiveTask]) -> None:
        """After a commit, before tasks are given up: all changelogs are left as they should be."""
        if self._guard is not None and self._guard.check_all(tasks, _LEAVE_TIMEOUT_MS):
            self.commit(tasks)
