"""The data that members of a group exchange in the opaque bytes of the membership protocol.

A version byte, then a MessagePack map. Unknown entries are skipped and missing ones have defaults, so tags, standby
tasks and endpoints can join without a new version; the version changes only when an old reader would misunderstand.
"""

from __future__ import annotations

import json
import zlib
from typing import Any, TypeVar

import msgspec

from pystreams.errors import TopologyError

VERSION = 1


class Subscription(msgspec.Struct, frozen=True, omit_defaults=True):
    """The data that a thread sends when it joins.

    ``state`` holds, for each task with state on this process' disk, its progress (the sum of its stores' changelog
    offsets). ``shutdown`` asks the whole application to stop. One thread of each process sends its ``topology``
    (``pack_topology``), so that a leader with another one can name the differences.
    """

    fingerprint: str
    process_id: str
    thread: str
    state: dict[str, int] = {}  # msgspec gives each one its own
    shutdown: bool = False
    topology: bytes = b""


class AssignmentInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """The data that the assignor sends to a thread besides its partitions. Source: AssignmentInfo.

    ``error`` is set if the member may not take part, with the ``topology`` that the group runs (``pack_topology``), if
    that is the reason and it is known; ``shutdown`` if the whole application is to stop. ``owners`` says who
    has the tasks with stores: for each sub-topology, by partition, the index in ``threads`` (-1: nobody).
    """

    tasks: int = 0
    members: int = 0
    error: str = ""
    topology: bytes = b""
    shutdown: bool = False
    threads: list[str] = []
    owners: dict[int, list[int]] = {}

    def owners_of(self, subtopology: int) -> dict[int, str]:
        """The thread that has each partition, as far as it is known."""
        owners = self.owners.get(subtopology, [])
        return {partition: self.threads[owner] for partition, owner in enumerate(owners) if owner >= 0}


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
