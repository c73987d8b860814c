"""The life of a task, as data.

    CREATED ──► RESTORING ──► RUNNING ──► SUSPENDED ──► CLOSED
       │            │            ▲            │            ▲
       │            │            └────────────┤            │
       └────────────┴─────────────────────────┴────────────┘

Source: org.apache.kafka.streams.processor.internals.Task.State.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from pystreams.ids import TaskId


class TaskStatus(Enum):
    """CREATED: nothing opened. RESTORING: stores are being filled. RUNNING: processes records. SUSPENDED: finished
    processing, to be committed and closed. CLOSED: the end."""

    CREATED = "created"
    RESTORING = "restoring"
    RUNNING = "running"
    SUSPENDED = "suspended"
    CLOSED = "closed"


SUCCESSORS: Mapping[TaskStatus, frozenset[TaskStatus]] = {
    TaskStatus.CREATED: frozenset({TaskStatus.RESTORING, TaskStatus.CLOSED}),
    TaskStatus.RESTORING: frozenset({TaskStatus.RUNNING, TaskStatus.SUSPENDED, TaskStatus.CLOSED}),
    TaskStatus.RUNNING: frozenset({TaskStatus.SUSPENDED, TaskStatus.CLOSED}),
    TaskStatus.SUSPENDED: frozenset({TaskStatus.RUNNING, TaskStatus.CLOSED}),
    TaskStatus.CLOSED: frozenset(),
}


def check_status(task: TaskId, old: TaskStatus, new: TaskStatus) -> TaskStatus:
    """``new``, if it may follow ``old``. Raises ``RuntimeError``: that would be a defect of pystreams."""
    if new not in SUCCESSORS[old]:
        raise RuntimeError(f"task {task} cannot go from {old.name} to {new.name}")
    return new
