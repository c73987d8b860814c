"""A key has the partition that Java's producer gives it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams import partitioning
from pystreams.partitioning import murmur2, partition_for_key

#: key, murmur2, partition of 10, partition of 3
VECTORS = [
    ("", 275646681, 1, 0),
    ("a", -1563381124, 4, 1),
    ("ab", 316155434, 4, 2),
    ("abc", 479470107, 7, 0),
    ("abcd", -1323649548, 0, 2),
    ("key-1", 193331640, 0, 0),
    ("21", -973932308, 0, 0),
    ("foobar", -790332482, 6, 0),
    ("a-little-bit-long-string", -985981536, 2, 2),
    ("héllo", 614509002, 2, 0),
]
VECTOR_FILE = Path(__file__).parent / "serde" / "java_vectors.json"


@pytest.mark.parametrize("key,hash_,of_ten,of_three", VECTORS)
def test_text_keys_hash_as_in_java(key, hash_, of_ten, of_three):
    data = key.encode()
    assert murmur2(data) == hash_
    for _ in range(2):
        assert partition_for_key(data, 10) == of_ten
        assert partition_for_key(data, 3) == of_three


def test_random_bytes_of_all_lengths_hash_as_in_java():
    for text, hash_, of_seven in json.loads(VECTOR_FILE.read_text())["murmur2"]:
        data = bytes.fromhex(text)
        assert murmur2(data) == hash_
        assert partition_for_key(data, 7) == of_seven


@given(st.binary(max_size=600), st.integers(1, 1000))
def test_the_partition_follows_from_hash_and_count_and_stays(key, partitions):
    expected = (murmur2(key) & 0x7FFFFFFF) % partitions
    assert partition_for_key(key, partitions) == partition_for_key(key, partitions) == expected


def test_what_is_remembered_is_bounded_in_number_and_size(monkeypatch):
    memo: dict[bytes, int] = {}
    monkeypatch.setattr(partitioning, "_memo", memo)
    monkeypatch.setattr(partitioning, "_MEMO_KEYS_MAX", 10)
    for i in range(35):
        partition_for_key(str(i).encode(), 4)
        assert len(memo) <= 10
    long_key = b"x" * 200
    partition_for_key(long_key, 4)
    assert long_key not in memo
