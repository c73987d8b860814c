"""Makes the data that a thread sends the group, with a pure function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from pystreams.ids import TaskId
from pystreams.runtime.group.membership_data import (
    AssignmentInfo,
    Subscription,
    pack_offsets,
    pack_reached,
    pack_tasks,
    unpack_tasks,
)

#: The most bytes that the topologies of all members may have together: Kafka keeps what a group sends and gets in one
#: record of 1 MB.
TOPOLOGIES_BYTES_MAX: Final = 65_536


@dataclass(frozen=True, slots=True)
class OwnTasks:
    """The tasks of a thread: its standbys, the assigned tasks that do not run yet, and the progress of the tasks whose
    stores it fills."""

    standbys: frozenset[TaskId] = frozenset()
    restoring: frozenset[TaskId] = frozenset()
    reached: Mapping[TaskId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OfProcess:
    """The data that one thread sends for all threads of its process: the progress of all state on the disk, and the
    topology (``pack_topology``). It is empty for the other threads."""

    on_disk: Mapping[TaskId, int] = field(default_factory=dict)
    topology: bytes = b""


def subscription_now(
    base: Subscription, received: AssignmentInfo, own: OwnTasks, of_process: OfProcess, task_count: int
) -> Subscription:
    """The subscription that a thread sends now. ``base`` has the fields that do not depend on tasks, such as the
    thread's name; ``received`` is the data of its last assignment; ``task_count`` is the number of tasks of the
    application."""
    others = {task: of_process.on_disk[task] for task in of_process.on_disk.keys() - own.reached}
    # Before a thread knows the group, there may be a member for each task.
    members = received.members or task_count
    small = len(of_process.topology) * members <= TOPOLOGIES_BYTES_MAX
    return msgspec.structs.replace(
        base,
        reached=pack_reached(own.reached),
        on_disk=pack_offsets(others),
        standbys=pack_tasks(own.standbys),
        coming=pack_tasks(own.standbys & unpack_tasks(received.coming)),
        restoring=pack_tasks(own.restoring),
        topology=of_process.topology if small else b"",
    )
