"""The data that members of a group exchange in the opaque bytes of the membership protocol.

The format is a version byte, then a MessagePack map. Unknown entries are skipped and missing ones have defaults, so new
entries need no new version; the version changes only if an old reader would misunderstand the data.

Kafka keeps all data that the members of a group send and receive in one record of 1 MB. So the data that grows with the
whole application is sent only once for each process, and deflated: the state on its disk (``Subscription.on_disk``),
and where all tasks are (``AssignmentInfo.whereabouts``).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from pystreams.errors import TopologyError
from pystreams.ids import TaskId

VERSION = 1

#: How an ``AssignmentInfo.error`` ends if the member's topology is the reason.
OTHER_TOPOLOGY: Final = "differs from the one that the group runs"

#: The most bytes that are inflated, because a few malicious bytes could otherwise fill the memory. A hundred thousand
#: tasks need a tenth of this.
_INFLATED_BYTES_MAX: Final = 16 * 2**20
_OFFSET_BYTES: Final = 8
#: With a lower level zlib makes shorter blocks, each with its own code. So names and numbers, which have few bytes in
#: common, get different codes.
_MEM_LEVEL: Final = 4

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


class Whereabouts(msgspec.Struct, frozen=True, array_like=True):
    """Where the tasks with stores are. Source: AssignmentInfo.partitionsByHost.

    ``owners`` has for each sub-topology, by partition, the index in ``threads`` of the one that has it (-1: nobody);
    ``followers`` the indexes of those that keep standbys. ``endpoints`` are those of the threads, in the same order;
    none if no thread has one.
    """

    threads: list[str] = []
    endpoints: list[str] = []
    owners: dict[int, list[int]] = {}
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


class Subscription(msgspec.Struct, frozen=True, omit_defaults=True):
    """The data that a thread sends when it joins.

    ``reached`` has, by sub-topology and partition, the progress of the tasks whose stores this thread fills (the sum of
    their stores' changelog offsets). ``on_disk`` (``pack_offsets``) has the progress of the other state on its process'
    disk; one thread of each process sends it. ``worker`` distinguishes the processes that share a disk, and therefore
    have the same ``process_id`` (-1: the member has an older version of pystreams, which does not send it).
    ``standbys`` are the standby tasks of this thread, ``coming`` those of them that it is to run when they are ready,
    ``restoring`` the assigned tasks that do not run yet. ``tags`` and ``rack`` are the place of the process,
    ``endpoint`` is the address at which it answers queries, ``pystreams`` and ``python`` are its versions. ``shutdown``
    asks the whole application to stop. If the group is small, one thread of each process sends its ``topology``
    (``pack_topology``), so that a leader with another topology can pass it on to members that it refuses.
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
    on_disk: bytes = b""
    worker: int = -1


class AssignmentInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """The data that the assignor sends to a thread besides its partitions. Source: AssignmentInfo.

    ``error`` is set if the member may not take part. If its topology is the reason, ``error`` ends with
    ``OTHER_TOPOLOGY``, and ``topology`` is the one that the group runs (``pack_topology``), if it is known.
    ``shutdown`` is set if the whole application is to stop.

    ``whereabouts`` (``pack_whereabouts``) says where the tasks with stores are: one thread of each process gets it.
    Members with an older version, which do not know that field, get the fields of ``Whereabouts`` instead:
    ``threads``, ``endpoints``, ``owners``, ``followers``.

    ``standbys`` are the tasks whose stores the thread is to keep up to date. When the tasks in ``awaited`` are ready,
    the thread asks for a rebalance, which then gives it the tasks in ``coming``. It asks after ``follow_up_ms`` in any
    case; 0: there is no such time.
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
    whereabouts: bytes = b""


def pack_tasks(tasks: Iterable[TaskId]) -> PackedTasks:
    """The tasks in the form in which they are sent."""
    packed: PackedTasks = {}
    for task in sorted(tasks):
        packed.setdefault(task.subtopology, []).append(task.partition)
    return packed


def unpack_tasks(packed: PackedTasks) -> frozenset[TaskId]:
    """The tasks from the form in which they are sent."""
    return frozenset(TaskId(sub, partition) for sub, partitions in packed.items() for partition in partitions)


def pack_reached(offsets: Mapping[TaskId, int]) -> dict[int, dict[int, int]]:
    """The offsets of tasks in the form of ``Subscription.reached``."""
    packed: dict[int, dict[int, int]] = {}
    for task, offset in sorted(offsets.items()):
        packed.setdefault(task.subtopology, {})[task.partition] = offset
    return packed


class _Offsets(msgspec.Struct, frozen=True, array_like=True):
    """Tasks and their offsets. The first bytes of all offsets come first, then all second bytes, and so on: so similar
    bytes are neighbours, and are compressed well."""

    tasks: PackedTasks
    offsets: bytes


def pack_offsets(offsets: Mapping[TaskId, int]) -> bytes:
    """The offsets of tasks in the form of ``Subscription.on_disk``: deflated."""
    if not offsets:
        return b""
    numbers = b"".join(offsets[task].to_bytes(_OFFSET_BYTES) for task in sorted(offsets))
    return _deflated(
        _Offsets(pack_tasks(offsets), b"".join(numbers[i::_OFFSET_BYTES] for i in range(_OFFSET_BYTES)))
    )


def state_of(said: Subscription) -> dict[TaskId, int]:
    """The progress of all state that a thread reports: of the stores that it fills, and of others on its process' disk.
    Raises ``TopologyError`` for bytes that cannot be read."""
    reached = {TaskId(sub, partition): at for sub, of in said.reached.items() for partition, at in of.items()}
    if not said.on_disk:
        return reached
    packed = _inflated(said.on_disk, _Offsets)
    tasks = [TaskId(sub, partition) for sub, of in packed.tasks.items() for partition in of]
    if len(packed.offsets) != _OFFSET_BYTES * len(tasks):
        raise _unreadable(f"it has {len(tasks)} tasks, and {len(packed.offsets)} bytes of offsets")
    offsets = (int.from_bytes(packed.offsets[i :: len(tasks)]) for i in range(len(tasks)))
    return {**dict(zip(tasks, offsets, strict=True)), **reached}


def pack_whereabouts(whereabouts: Whereabouts) -> bytes:
    """Where all tasks are, in the form of ``AssignmentInfo.whereabouts``: deflated."""
    return _deflated(whereabouts)


def whereabouts_of(info: AssignmentInfo) -> Whereabouts:
    """Where all tasks are, as a thread has received it; empty if another thread of its process receives it. Raises
    ``TopologyError`` for bytes that cannot be read."""
    if info.whereabouts:
        return _inflated(info.whereabouts, Whereabouts)
    return Whereabouts(info.threads, info.endpoints, info.owners, info.followers)


Message = TypeVar("Message", Subscription, AssignmentInfo)


def pack_topology(shape: Any) -> bytes:
    """The result of ``fingerprint.shape``, compressed."""
    return zlib.compress(json.dumps(shape).encode())


def unpack_topology(packed: bytes) -> Any:
    """The result of ``fingerprint.shape`` from its bytes. Raises ``TopologyError`` for bytes that are no topology."""
    try:
        return json.loads(_content(packed))
    except (ValueError, zlib.error) as error:
        raise TopologyError("the topology that the group runs cannot be read", why=str(error)) from error


def encode(message: Subscription | AssignmentInfo) -> bytes:
    """The bytes that go into the membership protocol."""
    return bytes([VERSION]) + msgspec.msgpack.encode(message)


def decode_subscription(data: bytes) -> Subscription:
    """Raises ``TopologyError`` if the bytes come from a version that this one cannot read, or from something else."""
    return _decode(data, Subscription)


def decode_assignment_info(data: bytes) -> AssignmentInfo:
    """Raises ``TopologyError`` if the bytes come from a version that this one cannot read, or from something else."""
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
        raise _unreadable(str(error)) from error


Content = TypeVar("Content", _Offsets, Whereabouts)


def _deflated(content: _Offsets | Whereabouts) -> bytes:
    deflater = zlib.compressobj(zlib.Z_BEST_COMPRESSION, memLevel=_MEM_LEVEL)
    return deflater.compress(msgspec.msgpack.encode(content)) + deflater.flush()


def _inflated(data: bytes, kind: type[Content]) -> Content:
    try:
        return msgspec.msgpack.decode(_content(data), type=kind)
    except (zlib.error, ValueError) as error:  # those of msgspec are ValueErrors
        raise _unreadable(str(error)) from error


def _content(deflated: bytes) -> bytes:
    """The inflated bytes. Raises ``ValueError`` if they are cut off or too many, ``zlib.error`` for other bytes."""
    inflater = zlib.decompressobj()
    content = inflater.decompress(deflated, _INFLATED_BYTES_MAX)
    if not inflater.eof:
        raise ValueError(f"it is cut off, or has more than {_INFLATED_BYTES_MAX} bytes")
    return content


def _unreadable(why: str) -> TopologyError:
    return TopologyError("the data of a member of the group cannot be read", why=why)
