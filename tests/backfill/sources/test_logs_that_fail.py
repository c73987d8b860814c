"""A log that loses records or falls silent while it is read ends the reading with what happened; it does not wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pystreams.backfill.sources import EmbeddedSource, logs, read_log
from pystreams.backfill.sources.ranges import InputRange
from pystreams.errors import BrokerUnavailableError, OffsetOutOfRangeError
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch

PARTITION = TopicPartition("in", 0)


class Scripted:
    """A broker, its admin and its consumer: polls give what the script says."""

    description = "a log"

    def __init__(self, polls: Sequence[Any]) -> None:
        self.polls = list(polls)
        self.beginning = 0
        self.at = 0

    def admin(self) -> Scripted:
        return self

    def consumer(self, client_id: str, purpose: str) -> Scripted:
        return self

    def close(self) -> None:
        """Nothing is open."""

    def beginning_offsets(self, partitions: Any) -> dict[TopicPartition, int]:
        return {PARTITION: self.beginning}

    def assign(self, positions: dict[TopicPartition, int]) -> None:
        self.at = positions[PARTITION]

    def position(self, partition: TopicPartition) -> int:
        return self.at

    def poll(self, timeout_ms: float) -> list[RecordBatch]:
        step = self.polls.pop(0) if self.polls else []
        if isinstance(step, Exception):
            self.beginning = 7
            raise step
        if isinstance(step, int):
            # Holes: the position moves without records.
            self.at = step
            return []
        for batch in step:
            self.at = batch.next_offset
        return list(step)


def batch(start: int, end: int) -> RecordBatch:
    size = end - start
    return RecordBatch("in", 0, [None] * size, [b"v"] * size, [0] * size, list(range(start, end)), None, end)


def offsets(broker: Scripted, start: int, end: int) -> list[int]:
    rows = read_log(broker, InputRange(PARTITION, start, end))
    return [offset for one in rows for offset in one.column("offset").to_pylist()]


def test_holes_at_the_end_end_the_range() -> None:
    assert offsets(Scripted([[batch(2, 4)], 9]), 2, 9) == [2, 3]
    assert offsets(Scripted([[batch(2, 4)], [], [batch(4, 20)]]), 2, 9) == [2, 3, 4, 5, 6, 7, 8]
    assert offsets(Scripted([]), 9, 9) == []


def test_records_that_are_deleted_while_they_are_read_are_reported() -> None:
    gone = OffsetOutOfRangeError("Offset 4 is not in the log", hint="reset the application's offsets")
    with pytest.raises(OffsetOutOfRangeError, match="deleted before they could be read") as raised:
        offsets(Scripted([[batch(2, 4)], gone]), 2, 9)
    assert raised.value.where == "offsets 4 to 7 (exclusive)"
    assert "archive" in raised.value.hint


def test_a_silent_log_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_SILENCE_MS_MAX", 5)
    with pytest.raises(BrokerUnavailableError, match="nothing more comes of in-0") as raised:
        offsets(Scripted([[batch(2, 4)]]), 2, 9)
    assert raised.value.where == "a log, position 4 of 9"


def test_no_log_is_made_where_none_is(tmp_path) -> None:
    source = EmbeddedSource(str(tmp_path / "log.db"))
    for ask in (source.partitions, lambda: list(source.read(InputRange(PARTITION, 0, 1)))):
        with pytest.raises(BrokerUnavailableError, match="no embedded log"):
            ask()
    assert list(tmp_path.iterdir()) == []
