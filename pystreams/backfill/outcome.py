"""What became of a task: where it stands, so that a later visit, a later backfill or the live application goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from struct import Struct
from typing import Any

from pystreams.ids import TopicPartition

_LENGTHS = Struct(">iiq")
_DIGEST_BYTES = 16


class Digest:
    """A digest of entries that does not depend on their order: the sum of their hashes. Parts can be added up."""

    __slots__ = ("entries", "total")

    def __init__(self, entries: int = 0, total: int = 0) -> None:
        self.entries = entries
        self.total = total

    def add(self, key: bytes, value: bytes, timestamp: int) -> None:
        head = _LENGTHS.pack(len(key), len(value), timestamp)
        hashed = blake2b(head + key + value, digest_size=_DIGEST_BYTES).digest()
        self.total = (self.total + int.from_bytes(hashed, "big")) % (1 << 8 * _DIGEST_BYTES)
        self.entries += 1

    def __add__(self, other: Digest) -> Digest:
        return Digest(self.entries + other.entries, (self.total + other.total) % (1 << 8 * _DIGEST_BYTES))

    @property
    def hex(self) -> str:
        return f"{self.total:032x}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """``partition_times`` and ``taken`` (records so far, of internal topics) are by input topic; ``sequences`` as
    ``Recorder.sequences``; ``stores`` has a digest by store."""

    records: int = 0
    dropped: int = 0
    partition_times: Mapping[str, int] = field(default_factory=dict)
    taken: Mapping[str, int] = field(default_factory=dict)
    operator_state: Mapping[str, int] = field(default_factory=dict)
    sequences: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    stores: Mapping[str, Digest] = field(default_factory=dict)

    def to_json(self) -> bytes:
        content = {
            "records": self.records,
            "dropped": self.dropped,
            "partition_times": dict(sorted(self.partition_times.items())),
            "taken": dict(sorted(self.taken.items())),
            "operator_state": dict(sorted(self.operator_state.items())),
            "sequences": [[*partition, *reached] for partition, reached in sorted(self.sequences.items())],
            "stores": {name: [digest.entries, digest.hex] for name, digest in self.stores.items()},
        }
        return json.dumps(content).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Outcome:
        content: dict[str, Any] = json.loads(text)
        return cls(
            content["records"],
            content["dropped"],
            content["partition_times"],
            content["taken"],
            content["operator_state"],
            {TopicPartition(topic, p): (n, time) for topic, p, n, time in content["sequences"]},
            {name: Digest(entries, int(total, 16)) for name, (entries, total) in content["stores"].items()},
        )
