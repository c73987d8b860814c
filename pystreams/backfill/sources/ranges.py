"""Ranges of offsets: what is read of a partition, and the record by which its log is known again."""

from __future__ import annotations

from dataclasses import dataclass, field

from pystreams.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class LastRecord:
    """A record by which a log is known again: its timestamp (ms) and a digest of key and value."""

    offset: int
    timestamp: int
    digest: str


@dataclass(frozen=True, slots=True)
class InputRange:
    """What is read of an external partition: offsets from ``start`` to ``end`` (exclusive). ``last`` is the last record
    before the end, whether it is read or was read by an earlier backfill; None where it was not found."""

    partition: TopicPartition
    start: int
    end: int
    last: LastRecord | None = field(default=None, compare=False)
