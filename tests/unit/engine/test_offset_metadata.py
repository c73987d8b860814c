"""The text beside committed offsets is Java's, that of older versions is read, and own entries are believed only where
they are fresh."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.broker.port import CommittedOffset
from pystreams.engine.offset_metadata import OffsetMetadata, encode_committed, merge_committed
from pystreams.ids import TopicPartition

int64 = st.integers(-(2**63), 2**63 - 1)
A, B = TopicPartition("a", 0), TopicPartition("b", 0)

JAVA = [
    (1795251357500, {}, "AgAAAaH9Ucc8"),
    (1795251357500, {"winemit": 1795251325000}, "AgAAAaH9Ucc8AAAAAQAAAAd3aW5lbWl0AAABof1RSEg="),
    (-1, {}, "Av//////////"),
]


@pytest.mark.parametrize(("time", "entries", "text"), JAVA)
def test_text_is_what_java_writes(time: int, entries: dict[str, int], text: str) -> None:
    assert OffsetMetadata(time, entries).encode() == text
    assert OffsetMetadata.decode(text) == OffsetMetadata(time, entries)


@given(int64, st.dictionaries(st.text(max_size=20), int64, max_size=5))
def test_what_was_encoded_is_decoded(time: int, entries: dict[str, int]) -> None:
    assert OffsetMetadata.decode(OffsetMetadata(time, entries).encode()) == OffsetMetadata(time, entries)


@given(st.one_of(st.text(max_size=60), st.binary(max_size=60).map(lambda b: base64.b64encode(b).decode())))
def test_decoding_never_raises(text: str) -> None:
    OffsetMetadata.decode(text)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


TIME = (123).to_bytes(8, "big")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", OffsetMetadata()),
        ("AgAAAaH9Ucc8\0", OffsetMetadata()),
        ("not base64!", OffsetMetadata()),
        (b64(b"\x03" + TIME), OffsetMetadata()),
        (b64(b"\x02" + TIME[:5]), OffsetMetadata()),
        (b64(b"\x01" + TIME + b"rest"), OffsetMetadata(123)),
        (b64(b"\x02" + TIME + b"\0\0\0\1\0\0\0\5abc"), OffsetMetadata(123)),
        (b64(b"\x02" + TIME + b"\xff\xff\xff\xff"), OffsetMetadata(123)),
        (b64(b"\x02" + TIME + b"\0\0\0\1\xff\xff\xff\xff" + bytes(8)), OffsetMetadata(123)),
        (b64(b"\x02" + TIME + b"\0\0\0\1\0\0\0\1x" + TIME + b"more"), OffsetMetadata(123, {"x": 123})),
    ],
)
def test_odd_text_is_read_as_java_reads_it(text: str, expected: OffsetMetadata) -> None:
    assert OffsetMetadata.decode(text) == expected


def test_own_entries_come_back_after_a_commit() -> None:
    committed = encode_committed({A: 5, B: 7}, {A: 100, B: 90}, {"py/agg/observed": 100}, {"emit": 50})
    merged = merge_committed(committed)
    assert merged.positions == {A: 5, B: 7}
    assert merged.partition_times == {A: 100, B: 90}
    assert merged.own == {"py/agg/observed": 100}
    assert merged.foreign == {"emit": 50}
    assert merged.stream_time == 100


def test_own_entries_that_somebody_else_carried_along_are_not_believed() -> None:
    committed = encode_committed({A: 5}, {A: 100}, {"py/agg/observed": 100}, {})
    moved_on = {A: CommittedOffset(9, committed[A].metadata)}
    assert merge_committed(moved_on).own == {}


def test_the_greater_value_counts_where_inputs_differ() -> None:
    older = encode_committed({A: 5}, {A: 100}, {"py/x": 1}, {"emit": 60})
    newer = encode_committed({B: 7}, {B: 200}, {"py/x": 2}, {"emit": 50})
    merged = merge_committed({**older, **newer})
    assert (merged.own, merged.foreign) == ({"py/x": 2}, {"emit": 60})


def test_without_own_entries_the_text_is_exactly_javas() -> None:
    assert encode_committed({A: 5}, {A: 1795251357500}, {}, {}) == {A: CommittedOffset(5, "AgAAAaH9Ucc8")}


def test_without_commits_there_is_no_time() -> None:
    merged = merge_committed({})
    assert merged.positions == {}
    assert merged.stream_time == -1


#: What older versions have written: entries in Java's form, and numbers of many steps in the dense form behind those of
#: Java. These texts stay as they are.
ENTRIES_1 = (
    "AgAAAAAAAABkAAAABAAAAAd3aW5lbWl0AAAAAAAAADIAAAAIcHkvL3RpbWUAAAAAAAAAUAAAABJweS9hZ2cvc3RyZWFtX3RpbWUA"
    "AAAAAAAAZAAAAAlweS9hdC9hLzAAAAAAAAAABQ=="
)
DENSE_1 = (
    "AgAAAAAAAABkAAAAAgAAAAd3aW5lbWl0AAAAAAAAADIAAAAJcHkvYXQvYS8wAAAAAAAAAAVweQFp2u5ZY2BgCGAIK6jUx2khyE4kDTZS"
    "hqhcI1SuMSrXBJVriso1Q+Wao3ItULmWyFwrGcPB6Syjweks48HpLJPB6SzTwekss8HpLPPB6CyGQQ6YqWyeGZXNe0tl87ZS2bwAakcI"
    "E3UBAA=="
)
_STEPS = {f"py/KSTREAM-AGGREGATE-{step:010}/stream_time": 1_767_225_600_000 + step for step in range(80)}


@pytest.mark.parametrize(
    ("text", "own"),
    [(ENTRIES_1, {"py//time": 80, "py/agg/stream_time": 100}), (DENSE_1, _STEPS)],
    ids=["entries", "dense"],
)
def test_text_of_an_older_version_is_read(text: str, own: dict[str, int]) -> None:
    merged = merge_committed({A: CommittedOffset(5, text)})
    assert (merged.positions, merged.partition_times) == ({A: 5}, {A: 100})
    assert (merged.own, merged.foreign) == (own, {"winemit": 50})
