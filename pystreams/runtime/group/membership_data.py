"""The data that members of a group exchange in the opaque bytes of the membership protocol.

A version byte, then a MessagePack map. Unknown entries are skipped and missing ones have defaults, so more can
join without a new version; the version changes only when an old reader would misunderstand.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from pystreams.errors import TopologyError
from pystreams.ids import TaskId

VERSION = 1


#: Tasks, as the partitions of each sub-topology.
PackedTasks: TypeAlias = dict[int, list[int]]


class Host(NamedTuple):
    """A thread that has a task, and the ``application_server`` of its process; empty: it has none."""

    thread: str
    endpoint: str = ""


class Places(NamedTuple):
    """The host that processes a partition (None: none at the moment), and those that follow it as standbys."""

    active: Host | None = None
    standbys: tuple[Host, ...] = ()


class Subscription(msgspec.Struct, frozen=True, omit_defaults=True):
    """The data that a thread sends when it joins.

    ``reached`` holds, by sub-topology and partition, the progress of tasks' state on this process' disk (the sum of
    their stores' changelog offsets): one thread of each process sends it for all tasks, the others only for those whose
    stores they fill. ``standbys`` are the standby tasks of this thread, ``coming`` those of them that it is to run when
    they are ready, ``restoring`` the assigned tasks that do not run yet. ``tags`` and ``rack`` say where the process
    is, ``endpoint`` where its queries are answered, ``pystreams`` and ``python`` the versions that it runs.
    ``shutdown`` asks the whole application to stop. One thread of each process sends its ``topology``
    (``pack_topology``), so that a leader with another one can name the differences.
    """

    fingerprint: str
    process_id: str
    thread: str
    reached: dict[int, dict[int, int]] = {}  # msgspec gives each one its own
    standbys: PackedTasks = {}
    coming: PackedTasks = {}
    restoring: PackedTasks = {}
    tags: dict[str, str] = {}
    rack: str = ""
    shutdown: bool = False
    topology: bytes = b""
    endpoint: str = ""
    pystreams: str = ""
    python: str = ""


class AssignmentInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """The data that the assignor sends to a thread besides its partitions. Source: AssignmentInfo.

    ``error`` is set if the member may not take part, with the ``topology`` that the group runs (``pack_topology``), if
    that is the reason and it is known; ``shutdown`` if the whole application is to stop.

    ``owners`` says who has the tasks with stores: for each sub-topology, by partition, the index in ``threads`` (-1:
    nobody); ``followers`` the indexes of those that keep standbys. ``endpoints`` are those of the threads, in the same
    order; none if no thread has one. Source of the endpoints: AssignmentInfo.partitionsByHost.

    ``standbys`` are the tasks whose stores the thread is to keep filled. When those in ``awaited`` are filled, it asks
    for a rebalance; then it is to run those in ``coming``. In any case it asks after ``follow_up_ms``; 0: it does not.
    """

    tasks: int = 0
    members: int = 0
    error: str = ""
    topology: bytes = b""
    shutdown: bool = False
    threads: list[str] = []
    owners: dict[int, list[int]] = {}
    standbys: PackedTasks = {}
    awaited: PackedTasks = {}
    coming: PackedTasks = {}
    follow_up_ms: int = 0
    endpoints: list[str] = []
    followers: dict[int, list[list[int]]] = {}

    def owners_of(self, subtopology: int) -> dict[int, str]:
        """The thread that has each partition, as far as it is known."""
        owners = self.owners.get(subtopology, [])
        return {partition: self.threads[owner] for partition, owner in enumerate(owners) if owner >= 0}

    def places_of(self, subtopology: int) -> dict[int, Places]:
        """The owner and the followers of each partition, as far as they are known."""
        owners, followers = self.owners.get(subtopology, []), self.followers.get(subtopology, [])
        hosts = [Host(*host) for host in zip_longest(self.threads, self.endpoints, fillvalue="")]
        return {
            partition: Places(
                hosts[owner] if owner >= 0 else None,
                tuple(hosts[index] for index in (followers[partition] if partition < len(followers) else ())),
            )
            for partition, owner in enumerate(owners)
        }


def pack_tasks(tasks: Iterable[TaskId]) -> PackedTasks:
    """The tasks in the form in which they are sent."""
    packed: PackedTasks = {}
    for task in sorted(tasks):
        packed.setdefault(task.subtopology, []).append(task.partition)
    return packed


def unpack_tasks(packed: PackedTasks) -> frozenset[TaskId]:
    """The tasks from the form in which they are sent."""
    return frozenset(TaskId(sub, partition) for sub, partitions in packed.items() for partition in partitions)


def pack_offsets(offsets: Mapping[TaskId, int]) -> dict[int, dict[int, int]]:
    """As ``Subscription.reached``."""
    packed: dict[int, dict[int, int]] = {}
    for task, offset in sorted(offsets.items()):
        packed.setdefault(task.subtopology, {})[task.partition] = offset
    return packed


def unpack_offsets(packed: Mapping[int, Mapping[int, int]]) -> dict[TaskId, int]:
    """The inverse of ``pack_offsets``."""
    return {TaskId(sub, partition): at for sub, of_sub in packed.items() for partition, at in of_sub.items()}


Message = TypeVar("Message", Subscription, AssignmentInfo)


def pack_topology(shape: Any) -> bytes:
    """The result of ``fingerprint.shape``, compressed."""
    return zlib.compress(json.dumps(shape).encode())


def unpack_topology(packed: bytes) -> Any:
    """Raises ``TopologyError`` for bytes that are not a topology."""
    try:
        return json.loads(zlib.decompress(packed))
    except (ValueError, zlib.error) as error:
        raise TopologyError("the topology that the group runs cannot be read", why=str(error)) from error


def encode(message: Subscription | AssignmentInfo) -> bytes:
    """The bytes that go into the membership protocol."""
    return bytes([VERSION]) + msgspec.msgpack.encode(message)


def decode_subscription(data: bytes) -> Subscription:
    """Raises ``TopologyError`` if the bytes come from a version that this one cannot read, or from something else."""
    return _decode(data, Subscription)


def decode_assignment_info(data: bytes) -> AssignmentInfo:
    """Raises ``TopologyError`` as ``decode_subscription``."""
    return _decode(data, AssignmentInfo)


def _decode(data: bytes, kind: type[Message]) -> Message:
    if data[:1] != bytes([VERSION]):
        found = f"version {data[0]}" if data else "nothing"
        raise TopologyError(
            "a member of the group uses another version of the protocol",
            why=f"this version of pystreams reads version {VERSION} of the members' data, and found version {found}",
            hint="run the same release of pystreams in all members, or give this one another application_id",
        )
    try:
        return msgspec.msgpack.decode(data[1:], type=kind)
    except msgspec.DecodeError as error:
        raise TopologyError("the data of a member of the group cannot be read", why=str(error)) from error
