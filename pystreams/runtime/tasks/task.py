r"""A task as its thread sees it, and the states of its life, as data: each with those that may follow.

    CREATED -> RESTORING -> RESTORED -> STARTING -> RUNNING
         \________\____________\___________\___________\-> CLOSED

A task that is to begin anew is closed, and another one takes its place.

Source: org.apache.kafka.streams.processor.internals.Task.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Protocol

from pystreams.ids import TaskId, TopicPartition


class TaskStatus(Enum):
    """CREATED: assigned; its stores are not open, perhaps because somebody else still has its directory. RESTORING: its
    stores are being filled. RESTORED: they are complete. STARTING: its operators and processors are being opened.
    RUNNING: processes records. CLOSED: the end."""

    CREATED = "created"
    RESTORING = "restoring"
    RESTORED = "restored"
    STARTING = "starting"
    RUNNING = "running"
    CLOSED = "closed"


_S = TaskStatus

TASK_SUCCESSORS: Mapping[TaskStatus, frozenset[TaskStatus]] = {
    _S.CREATED: frozenset({_S.RESTORING, _S.CLOSED}),
    _S.RESTORING: frozenset({_S.RESTORED, _S.CLOSED}),
    _S.RESTORED: frozenset({_S.STARTING, _S.CLOSED}),
    _S.STARTING: frozenset({_S.RUNNING, _S.CLOSED}),
    _S.RUNNING: frozenset({_S.CLOSED}),
    _S.CLOSED: frozenset(),
}


class Task(Protocol):
    """A task that a thread has. An ``ActiveTask`` processes records; one that stands by would only have its stores
    filled again and again."""

    @property
    def task_id(self) -> TaskId: ...

    @property
    def status(self) -> TaskStatus: ...

    @property
    def stores(self) -> Mapping[str, Any]:
        """The stores by their names; none before they are open."""
        ...

    @property
    def changelogs(self) -> Mapping[str, TopicPartition]:
        """The changelog partition of every logged store."""
        ...

    def become(self, status: TaskStatus) -> None:
        """Go over to a state. Raises ``IllegalTransitionError``. ``TaskSet`` calls it, and nobody else."""
        ...
