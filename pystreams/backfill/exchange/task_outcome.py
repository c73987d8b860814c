"""The outcome of a task: its positions, from which a later visit, a later backfill or the live application
continues."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from struct import Struct
from typing import Any

import pyarrow as pa

from pystreams.backfill.exchange.rows import (
    NO_UPSTREAM,
    QUEUE_TIME,
    Arrow,
    Kind,
    exchange_rows,
    headers_column,
    repeated,
)
from pystreams.engine.failures.lateness import LateRecords
from pystreams.engine.failures.unmatched import Unmatched
from pystreams.ids import TopicPartition

_LENGTHS = Struct(">iiq")
_DIGEST_BYTES = 16


class Digest:
    """A digest of entries that does not depend on their order: the sum of their hashes. Parts can be added up.

    ``oldest_ms`` is their least timestamp, ``reached_ms`` a time that each part has reached: the greatest timestamp of
    a part, the least of those of several parts. None if there are none.
    """

    __slots__ = ("entries", "oldest_ms", "reached_ms", "total")

    def __init__(
        self,
        entries: int = 0,
        total: int = 0,
        oldest_ms: int | None = None,
        reached_ms: int | None = None,
    ) -> None:
        self.entries = entries
        self.total = total
        self.oldest_ms = oldest_ms
        self.reached_ms = reached_ms

    def add(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """``value`` None: a deletion, which a versioned store keeps."""
        head = _LENGTHS.pack(len(key), -1 if value is None else len(value), timestamp)
        hashed = blake2b(head + key + (value or b""), digest_size=_DIGEST_BYTES).digest()
        self.total = (self.total + int.from_bytes(hashed, "big")) % (1 << 8 * _DIGEST_BYTES)
        self.entries += 1
        if self.oldest_ms is None or timestamp < self.oldest_ms:
            self.oldest_ms = timestamp
        if self.reached_ms is None or timestamp > self.reached_ms:
            self.reached_ms = timestamp

    def __add__(self, other: Digest) -> Digest:
        return Digest(
            self.entries + other.entries,
            (self.total + other.total) % (1 << 8 * _DIGEST_BYTES),
            _earlier(self.oldest_ms, other.oldest_ms),
            _earlier(self.reached_ms, other.reached_ms),
        )

    @property
    def hex(self) -> str:
        return f"{self.total:032x}"


def _earlier(one: int | None, other: int | None) -> int | None:
    return min((time for time in (one, other) if time is not None), default=None)


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """``records`` and ``dropped`` count the records that this visit read and dropped (as the metric does: for each
    window), ``written`` those that it wrote, by partition; ``left_out``, ``causes``, ``late`` and ``joins`` are those
    of its ``LeftOut``. The others say where the task stands: ``partition_times`` and ``taken`` (records so far, of
    internal topics) by input topic, ``sequences`` as ``CollectingProducer.sequences``, ``stores`` with a digest for
    each, ``store_times`` as ``TaskStores.times``."""

    records: int = 0
    dropped: int = 0
    partition_times: Mapping[str, int] = field(default_factory=dict)
    taken: Mapping[str, int] = field(default_factory=dict)
    operator_state: Mapping[str, int] = field(default_factory=dict)
    sequences: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    written: Mapping[TopicPartition, int] = field(default_factory=dict)
    stores: Mapping[str, Digest] = field(default_factory=dict)
    store_times: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    late: Sequence[LateRecords] = ()
    joins: Sequence[Unmatched] = ()
    causes: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> bytes:
        content = {
            "records": self.records,
            "dropped": self.dropped,
            "partition_times": dict(sorted(self.partition_times.items())),
            "taken": dict(sorted(self.taken.items())),
            "operator_state": dict(sorted(self.operator_state.items())),
            "sequences": [[*partition, *reached] for partition, reached in sorted(self.sequences.items())],
            "written": [[*partition, count] for partition, count in sorted(self.written.items())],
            "stores": {
                name: [digest.entries, digest.hex, digest.oldest_ms, digest.reached_ms]
                for name, digest in self.stores.items()
            },
            "store_times": dict(self.store_times),
            "left_out": dict(self.left_out),
            "late": self.late,
            "joins": self.joins,
            "causes": dict(self.causes),
        }
        return json.dumps(content).encode()

    @classmethod
    def from_json(cls, text: bytes) -> TaskOutcome:
        content: dict[str, Any] = json.loads(text)
        return cls(
            content["records"],
            content["dropped"],
            content["partition_times"],
            content["taken"],
            content["operator_state"],
            {TopicPartition(topic, p): (n, time) for topic, p, n, time in content["sequences"]},
            {TopicPartition(topic, p): count for topic, p, count in content["written"]},
            {
                name: Digest(entries, int(total, 16), *times)
                for name, (entries, total, *times) in content["stores"].items()
            },
            # Older outcomes do not have these.
            content.get("store_times", {}),
            content.get("left_out", {}),
            tuple(LateRecords(*late) for late in content.get("late", ())),
            tuple(map(Unmatched.from_json, content.get("joins", ()))),
            content.get("causes", {}),
        )


def outcome_row(outcome: TaskOutcome, task: int, upstream: int = NO_UPSTREAM) -> Arrow:
    """An outcome as a row: the last that a task gives, and the first of what a later visit is given."""
    columns = (
        pa.array([0], pa.int64()),
        pa.array([b""], pa.binary()),
        pa.array([outcome.to_json()], pa.binary()),
    )
    return exchange_rows(
        Kind.OUTCOME,
        repeated("", pa.string(), 1),
        repeated(task, pa.int32(), 1),
        repeated(QUEUE_TIME[Kind.OUTCOME], pa.int64(), 1),
        upstream,
        pa.array([0], pa.int64()),
        (*columns, headers_column(None, 1)),
    )
