"""What would be too long beside a committed offset is written in few bytes, for which Java's entries make room."""

from __future__ import annotations

import base64
import random
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pystreams.engine.dense_numbers import pack_numbers, unpack_numbers
from pystreams.engine.offset_metadata import (
    TEXT_CHARACTERS_MAX,
    OffsetMetadata,
    committed_entry,
    encode_committed,
    merge_committed,
)
from pystreams.ids import TopicPartition

int64 = st.integers(-(2**63), 2**63 - 1)
names = st.one_of(
    st.text(max_size=20), st.builds("py/{}/{}".format, st.text(max_size=9), st.text(max_size=9))
)
A, B = TopicPartition("a", 0), TopicPartition("b", 0)
NOW_MS = 1_795_251_357_500


@given(st.dictionaries(names, int64, max_size=30))
@example({"a": -(2**63), "b": 2**63 - 1, "c": -(2**63)})
def test_what_was_packed_is_unpacked(numbers: dict[str, int]) -> None:
    assert unpack_numbers(pack_numbers(numbers)) == numbers


@given(st.dictionaries(names, int64, min_size=1, max_size=5), st.data())
def test_damaged_bytes_hold_nothing(numbers: dict[str, int], data: st.DataObject) -> None:
    packed = pack_numbers(numbers)
    place = data.draw(st.integers(0, len(packed) - 1))
    assert unpack_numbers(packed[:place]) == {}
    flipped = bytes([packed[place] ^ data.draw(st.integers(1, 255))])
    assert unpack_numbers(packed[:place] + flipped + packed[place + 1 :]) == {}


@given(st.binary(max_size=60))
def test_other_bytes_hold_nothing(data: bytes) -> None:
    assert unpack_numbers(data) == {}


def windowed_steps(count: int, *, waiting: bool = False) -> dict[str, int]:
    """The numbers of steps whose times are within an hour; seldom two are equal."""
    choose = random.Random(count)
    steps = [f"py/KSTREAM-AGGREGATE-{4 * number:010}" for number in range(count)]
    numbers = {f"{step}/stream_time": NOW_MS - choose.randrange(3_600_000) for step in steps}
    return numbers | ({f"{step}/seen": NOW_MS for step in steps} if waiting else {})


@given(
    st.dictionaries(names, int64, max_size=4),
    st.sampled_from([0, 40, 56, 58, 100, 300]),
    st.booleans(),
    st.integers(0, 2**40),
)
def test_both_forms_are_read_back(others: dict[str, int], steps: int, waiting: bool, offset: int) -> None:
    entries = windowed_steps(steps, waiting=waiting) | others | {committed_entry(A): offset}
    assert OffsetMetadata.decode(OffsetMetadata(7, entries).encode()) == OffsetMetadata(7, entries)


@pytest.mark.parametrize(("steps", "waiting"), [(57, False), (300, False), (240, True), (500, False)])
def test_hundreds_of_steps_fit(steps: int, waiting: bool) -> None:
    numbers = windowed_steps(steps, waiting=waiting)
    committed = encode_committed({A: 5, B: 7}, {A: 1, B: 2}, numbers, {"emitted": 9})
    assert max(len(at.metadata) for at in committed.values()) <= TEXT_CHARACTERS_MAX
    merged = merge_committed(committed)
    assert (merged.own, merged.foreign) == (numbers, {"emitted": 9})
    assert merged.partition_times == {A: 1, B: 2}


def test_java_still_finds_its_own_entries_in_front() -> None:
    metadata = OffsetMetadata(7, windowed_steps(300) | {"emitted": 9, committed_entry(A): 5})
    data = base64.b64decode(metadata.encode())
    assert data[:13] == b"\x02" + (7).to_bytes(8, "big") + b"\0\0\0\2"
    assert data[13:].startswith(b"\0\0\0\7emitted" + (9).to_bytes(8, "big"))


def test_what_java_has_carried_along_is_not_believed() -> None:
    at = encode_committed({A: 5}, {A: 1}, windowed_steps(300), {"emitted": 9})[A]
    merged = merge_committed({A: replace(at, offset=6)})
    assert (merged.own, merged.foreign) == ({}, {"emitted": 9})


def test_many_entries_of_java_are_packed_as_well_if_there_is_no_other_way() -> None:
    emitted = {f"emitted-every-minute-{number}": NOW_MS + number for number in range(100)}
    committed = encode_committed({A: 5}, {A: 1}, {"py/x/seen": 3}, emitted)
    assert len(committed[A].metadata) <= TEXT_CHARACTERS_MAX
    merged = merge_committed(committed)
    assert (merged.own, merged.foreign) == ({"py/x/seen": 3}, emitted)


def test_what_fits_is_written_as_java_writes_it() -> None:
    entries = windowed_steps(50)
    assert (
        len(OffsetMetadata(7, entries).encode())
        == (13 + sum(12 + len(name) for name in entries) + 2) // 3 * 4
    )
