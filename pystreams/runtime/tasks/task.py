r"""The interface of a task for its thread, and the states of a task, each with the states that may follow.

    CREATED -> OPENED -> RESTORING -> RESTORED -> STARTING -> RUNNING
        |\________\_________\____________\___________\___________\-> CLOSED
        \-> STANDBY ----------------------------------------------/

To start a task anew, its thread closes it and creates another one with the same id.

Source: org.apache.kafka.streams.processor.internals.Task.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Protocol

from pystreams.ids import TaskId, TopicPartition


class TaskStatus(Enum):
    """CREATED: assigned, but its stores are not open yet, for example because another process has its directory.
    OPENED: its stores are open, but its last commit is not known yet. RESTORING: its stores are being filled. RESTORED:
    its stores are complete. STARTING: its operators and processors are being opened. RUNNING: it processes records.
    STANDBY: its stores are kept up to date while another member runs it. CLOSED: it is closed for good, or another task
    with its id has taken over its stores."""

    CREATED = "created"
    OPENED = "opened"
    RESTORING = "restoring"
    RESTORED = "restored"
    STARTING = "starting"
    RUNNING = "running"
    STANDBY = "standby"
    CLOSED = "closed"


_S = TaskStatus

TASK_SUCCESSORS: Mapping[TaskStatus, frozenset[TaskStatus]] = {
    _S.CREATED: frozenset({_S.OPENED, _S.STANDBY, _S.CLOSED}),
    _S.OPENED: frozenset({_S.RESTORING, _S.CLOSED}),
    _S.RESTORING: frozenset({_S.RESTORED, _S.CLOSED}),
    _S.RESTORED: frozenset({_S.STARTING, _S.CLOSED}),
    _S.STARTING: frozenset({_S.RUNNING, _S.CLOSED}),
    _S.RUNNING: frozenset({_S.CLOSED}),
    _S.STANDBY: frozenset({_S.CLOSED}),
    _S.CLOSED: frozenset(),
}


class Task(Protocol):
    """A task of a thread. An ``ActiveTask`` processes records, a ``StandbyTask`` keeps its stores up to date."""

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
        """Change the state. Only ``TaskSet`` calls this. Raises ``IllegalTransitionError``."""
        ...
