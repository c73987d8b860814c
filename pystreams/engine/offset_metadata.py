"""The text that is committed beside each input offset: Java's TopicPartitionMetadata, with pystreams' own entries.

    base64( 0x02 | int64 partition time | [ int32 n | n * (int32 length, UTF-8 name, int64 value) ] )

Java keeps unknown entries. If several input partitions of a task have the same entry, Java takes the greater value. So
the entries of pystreams are named ``py/...``, and their values never decrease. One of them is the committed offset:
pystreams trusts its entries only if this one equals the offset, because otherwise another program has committed since.
Source: org.apache.kafka.streams.processor.internals.{TopicPartitionMetadata,ProcessorMetadata}.

Brokers limit the text to 4,096 characters, which this form reaches with about 57 windowed steps. If it would be longer,
the entries of pystreams come in another form (``dense_numbers``) behind those of Java, with 3 to 15 characters a step.
Java ignores the bytes behind its entries. If that is too long as well, the numbers of the steps are written to a
record, and the text refers to it (``overflow``).
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pystreams.broker.port import CommittedOffset
from pystreams.engine.dense_numbers import pack_numbers, unpack_numbers
from pystreams.engine.overflow import OVERFLOW_PREFIX, OverflowReference
from pystreams.ids import TopicPartition
from pystreams.stream_time import NO_TIME

OWN_PREFIX = "py/"
_COMMITTED_PREFIX = f"{OWN_PREFIX}at/"

#: Kafka's default of ``offset.metadata.max.bytes``.
TEXT_CHARACTERS_MAX = 4_096

#: The entries ``py//time`` and ``py//seen``, which exist while a task's stream time waits for upstream tasks that lag.
TIME_IN_FORCE = "", "time"
TIME_SEEN = "", "seen"
#: The entry ``py//head``, which exists while something in the group lags.
HEAD = "", "head"
#: The last part of the names of the counts of late records (``drop_counts``).
LATE_RECORDS, LATE_MS, LATE_GRACE_MS = "late", "late_ms", "late_grace_ms"

#: Writes numbers to a record that is part of the commit. ``has_emitted``: entries of Java are among them.
Overflow: TypeAlias = "Callable[[Mapping[str, int], bool], OverflowReference]"

_VERSION_TIME_ONLY = 1
_VERSION = 2
_TIME = struct.Struct(">bq")
_COUNT = struct.Struct(">i")
_VALUE = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class OffsetMetadata:
    """The greatest timestamp processed of a partition (ms, -1: none), and named int64 values."""

    partition_time: int = NO_TIME
    entries: Mapping[str, int] = field(default_factory=dict)

    def encode(self) -> str:
        """The text to commit: byte for byte what Java writes, unless that is too long for a broker."""
        entries = self.entries
        if _characters(entries) <= TEXT_CHARACTERS_MAX:
            return self._text(entries, b"")
        ours = {name for name in entries if _is_of_steps(name)}
        for dense in (ours, entries.keys()):
            packed = pack_numbers({name: entries[name] for name in dense})
            plain = {name: value for name, value in entries.items() if name not in dense}
            if _characters(plain, packed) <= TEXT_CHARACTERS_MAX:
                break
        return self._text(plain, packed)

    def _text(self, plain: Mapping[str, int], packed: bytes) -> str:
        data = bytearray(_TIME.pack(_VERSION, self.partition_time))
        if plain or packed:
            data += _COUNT.pack(len(plain))
            for name, value in plain.items():
                encoded = name.encode()
                data += _COUNT.pack(len(encoded)) + encoded + _VALUE.pack(value)
        return base64.b64encode(data + packed).decode("ascii")

    @classmethod
    def decode(cls, text: str) -> OffsetMetadata:
        """Parse committed text. Never raises: other text gives timestamp -1 and no entries, as in Java."""
        try:
            data = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
            version, time = _TIME.unpack_from(data)
        except (ValueError, binascii.Error, struct.error):
            return cls()
        if version == _VERSION_TIME_ONLY:
            return cls(time)
        if version != _VERSION:
            return cls()
        return cls(time, _decode_entries(data, _TIME.size))


def _is_of_steps(name: str) -> bool:
    return name.startswith(OWN_PREFIX) and not name.startswith(_COMMITTED_PREFIX)


def _characters(plain: Mapping[str, int], packed: bytes = b"") -> int:
    """The length of the text with these entries."""
    length = _TIME.size + _COUNT.size + sum(map(entry_bytes, plain)) + len(packed)
    return (length + 2) // 3 * 4


def _decode_entries(data: bytes, position: int) -> dict[str, int]:
    """The entries; none at all if the data is truncated."""
    entries: dict[str, int] = {}
    try:
        (count,) = _COUNT.unpack_from(data, position)
        position += _COUNT.size
        for _ in range(count):
            (length,) = _COUNT.unpack_from(data, position)
            end = position + _COUNT.size + length
            if length < 0:
                return {}
            (value,) = _VALUE.unpack_from(data, end)
            entries[data[end - length : end].decode("utf-8", "replace")] = value
            position = end + _VALUE.size
    except struct.error:
        return {}
    return {**entries, **unpack_numbers(data[position:])}


def entry(node: str, name: str) -> str:
    """The name of an entry of a node; of the task itself, if ``node`` is empty."""
    return f"{OWN_PREFIX}{node}/{name}"


def entry_bytes(name: str) -> int:
    """The length of an entry with this name, before base64."""
    return _COUNT.size + len(name.encode()) + _VALUE.size


def committed_entry(partition: TopicPartition) -> str:
    """The name of the entry that holds the committed offset itself."""
    return f"{_COMMITTED_PREFIX}{partition.topic}/{partition.partition}"


@dataclass(frozen=True, slots=True)
class TaskMetadata:
    """The content of a task's committed offsets: positions, partition times, and the values that operators keep.
    ``overflow`` are the references to records with more of these values."""

    positions: Mapping[TopicPartition, int]
    partition_times: Mapping[TopicPartition, int]
    own: Mapping[str, int]
    foreign: Mapping[str, int]
    overflow: frozenset[OverflowReference] = frozenset()

    def with_overflow(self, numbers: Mapping[OverflowReference, Mapping[str, int]]) -> TaskMetadata:
        """A copy that also has the values of overflow records that have been read."""
        own, foreign = dict(self.own), dict(self.foreign)
        for reference in self.overflow & numbers.keys():
            for name, value in numbers[reference].items():
                of_both = own if name.startswith(OWN_PREFIX) else foreign
                of_both[name] = max(value, of_both.get(name, value))
        return replace(self, own=own, foreign=foreign, overflow=self.overflow - numbers.keys())

    @property
    def time_seen(self) -> int:
        """The greatest timestamp that the task has processed, -1 if it has not processed any."""
        return max(*self.partition_times.values(), self.own.get(entry(*TIME_SEEN), NO_TIME), NO_TIME)

    @property
    def stream_time(self) -> int:
        """The task's stream time in force, -1 if it has not processed any record."""
        return self.own.get(entry(*TIME_IN_FORCE), self.time_seen)

    @property
    def head(self) -> int | None:
        """The time (ms) of the next record, None if the task has not committed it."""
        return self.own.get(entry(*HEAD))


def merge_committed(committed: Mapping[TopicPartition, CommittedOffset]) -> TaskMetadata:
    """Read the committed offsets of one task's inputs. Entries of pystreams are taken from partitions that pystreams
    committed last; if several partitions have an entry, the greater value counts (as in Java)."""
    positions: dict[TopicPartition, int] = {}
    times: dict[TopicPartition, int] = {}
    own: dict[str, int] = {}
    foreign: dict[str, int] = {}
    overflow: set[OverflowReference] = set()
    for partition, offset in committed.items():
        metadata = OffsetMetadata.decode(offset.metadata)
        positions[partition] = offset.offset
        times[partition] = metadata.partition_time
        trusted = metadata.entries.get(committed_entry(partition)) == offset.offset
        if trusted and (reference := OverflowReference.of(metadata.entries, partition.partition)) is not None:
            overflow.add(reference)
        for name, value in metadata.entries.items():
            if not name.startswith(OWN_PREFIX):
                foreign[name] = max(value, foreign.get(name, value))
            elif trusted and _is_of_steps(name) and not name.startswith(OVERFLOW_PREFIX):
                own[name] = max(value, own.get(name, value))
    return TaskMetadata(positions, times, own, foreign, frozenset(overflow))


def encode_committed(
    positions: Mapping[TopicPartition, int],
    partition_times: Mapping[TopicPartition, int],
    own: Mapping[str, int],
    foreign: Mapping[str, int],
    overflow: Overflow | None = None,
) -> dict[TopicPartition, CommittedOffset]:
    """The offsets to commit for one task. Each has the next offset, the partition time, and all entries of the task
    that fit. Entries that do not fit go to ``overflow``; if it is None, the broker refuses the commit."""

    def encode(own: Mapping[str, int], foreign: Mapping[str, int]) -> dict[TopicPartition, CommittedOffset]:
        committed: dict[TopicPartition, CommittedOffset] = {}
        for partition, position in positions.items():
            entries = {**foreign, **own, committed_entry(partition): position} if own else foreign
            metadata = OffsetMetadata(partition_times.get(partition, NO_TIME), entries)
            committed[partition] = CommittedOffset(position, metadata.encode())
        return committed

    committed = encode(own, foreign)
    if overflow is None or all(len(at.metadata) <= TEXT_CHARACTERS_MAX for at in committed.values()):
        return committed
    javas = {**foreign, **{name: value for name, value in own.items() if not name.startswith(OWN_PREFIX)}}
    beside = {name: value for name, value in own.items() if _stays_beside(name)}
    moved = {name: value for name, value in own.items() if name not in beside and name not in javas}
    if _fit(positions, beside, javas):
        return encode(beside | overflow(moved, False).entries(), javas)
    return encode(beside | overflow({**moved, **javas}, True).entries(), {})


def _stays_beside(name: str) -> bool:
    """Whether an entry is always committed with the offsets, because other members than the task's owner read it."""
    node, _, last = name.removeprefix(OWN_PREFIX).rpartition("/")
    return name.startswith(OWN_PREFIX) and (not node or last in (LATE_RECORDS, LATE_MS, LATE_GRACE_MS))


def _fit(
    positions: Mapping[TopicPartition, int], beside: Mapping[str, int], foreign: Mapping[str, int]
) -> bool:
    """Whether Java's entries fit, in Java's form, beside these entries and a reference."""
    # Any reference will do, because all have the same length.
    reference = OverflowReference(0, 0, 0, 0, 0, has_emitted=False).entries()
    return all(
        _characters({**foreign, **beside, **reference, committed_entry(partition): 0}) <= TEXT_CHARACTERS_MAX
        for partition in positions
    )
