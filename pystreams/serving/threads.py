"""The threads of an application as ``/threads`` shows them to ``pystreams threads`` and ``pystreams status``."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pystreams.clock import Clock
from pystreams.runtime.threads.activity import Activity

if TYPE_CHECKING:
    # Commands that only read what others say of themselves start without all this.
    from pystreams.runtime.streams import Streams
    from pystreams.runtime.threads.progress import ThreadProgress


class TaskState(msgspec.Struct, frozen=True):
    """A task of a thread."""

    task: str
    state: str


class RestoreState(msgspec.Struct, frozen=True):
    """A task whose stores are being restored: ``remaining`` offsets of their changelogs are left."""

    task: str
    stores: list[str]
    remaining: int


class ThreadNow(msgspec.Struct, frozen=True):
    """A thread. It has been in ``part`` of its round (``group``, ``poll``, ``process``, ``commit``; ``nothing`` before
    the first) for ``part_ms``, with ``task`` if it is known. ``polled_ms``, ``committed_ms``: the time since the end of
    its last poll and of its last commit; None: there was none yet."""

    name: str
    state: str
    tasks: list[TaskState]
    standbys: list[str]
    restoring: list[RestoreState]
    part: str
    part_ms: float
    task: str | None
    polled_ms: float | None
    committed_ms: float | None


class ClientThreads(msgspec.Struct, frozen=True, tag=True):
    """The threads of a client at the time ``at_ms``."""

    client_id: str
    at_ms: int
    threads: list[ThreadNow]


def client_threads(streams: Streams, clock: Clock) -> ClientThreads:
    """The threads of a client now, from any thread."""
    activities = streams.activities()
    return ClientThreads(
        streams.client_id,
        clock.now_ms(),
        [_thread(one, activities.get(one.name, Activity())) for one in streams.progress().threads],
    )


def _thread(progress: ThreadProgress, activity: Activity) -> ThreadNow:
    stores: dict[str, list[str]] = defaultdict(list)
    remaining: dict[str, int] = defaultdict(int)
    for one in progress.restoring:
        stores[str(one.task_id)].append(one.store)
        remaining[str(one.task_id)] += max(0, one.end_offset - one.position)
    return ThreadNow(
        progress.name,
        progress.state.value,
        [TaskState(str(task.task_id), task.status.value) for task in progress.tasks],
        [str(standby.task_id) for standby in progress.standbys],
        [RestoreState(task, sorted(of_task), remaining[task]) for task, of_task in sorted(stores.items())],
        activity.part,
        round(activity.part_ms),
        activity.task,
        activity.polled_ms,
        activity.committed_ms,
    )
