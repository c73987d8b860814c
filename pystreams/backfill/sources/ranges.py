"""Ranges of offsets to read, and the record that identifies the log later."""

from __future__ import annotations

from dataclasses import dataclass, field

from pystreams.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class LastRecord:
    """A record that identifies a log: its timestamp (ms) and a digest of key and value."""

    offset: int
    timestamp: int
    digest: str


@dataclass(frozen=True, slots=True)
class InputRange:
    """The range that is read of an external partition: offsets from ``start`` to ``end`` (exclusive). ``last`` is the
    last record before the end, whether it is read or was read by an earlier backfill; None where it was not found."""

    partition: TopicPartition
    start: int
    end: int
    last: LastRecord | None = field(default=None, compare=False)
