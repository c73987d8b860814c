"""The record of a hand-over: what is read is what was written, and it fits where records go."""

from __future__ import annotations

import random

import pytest

from pystreams.backfill.plan.manifest import Manifest
from pystreams.backfill.sources.ranges import InputRange, LastRecord
from pystreams.errors import StateError
from pystreams.ids import TopicPartition
from pystreams.take_over.hand_over_record import HandOverRecord

#: Kafka's default of max.message.bytes, without what stands around a record.
RECORD_BYTES = 1_000_000


def record(partitions: int) -> HandOverRecord:
    """Of an application that reads four wide topics."""
    chance = random.Random(1)
    inputs = tuple(
        InputRange(
            TopicPartition(f"orders-of-region-{number % 4}", number // 4),
            chance.randrange(1 << 30),
            chance.randrange(1 << 40),
            LastRecord(chance.randrange(1 << 40), chance.randrange(1 << 41), chance.randbytes(8).hex()),
        )
        for number in range(partitions)
    )
    manifest = Manifest("application", "fingerprint", 1, 10_000, 10 << 20, inputs, {"orders-of-region-0": 1})
    offsets = {input.partition: input.end for input in inputs}
    return HandOverRecord("id", "attempt", True, "fingerprint", [], offsets, manifest.to_json(), {"out": 7})


@pytest.mark.parametrize("partitions", [0, 1, 8_000])
def test_what_is_read_is_what_was_written_and_fits_into_a_record(partitions: int) -> None:
    told = record(partitions)
    packed = told.to_bytes()
    assert HandOverRecord.from_bytes(packed, "here") == told
    assert len(packed) < RECORD_BYTES


@pytest.mark.parametrize("packed", [b"", b"{}", record(1).to_bytes()[:-9]])
def test_anything_else_is_reported(packed: bytes) -> None:
    with pytest.raises(
        StateError, match="the topic of the hand-over has a record that is not a record of a hand-over"
    ):
        HandOverRecord.from_bytes(packed, "here")
