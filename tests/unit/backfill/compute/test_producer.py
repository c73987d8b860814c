"""What a task sends becomes rows: partitioned as a producer does, numbered by queue, refused where a producer would."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.backfill.compute.producer import CollectingProducer
from pystreams.backfill.exchange.rows import EXCHANGE_SCHEMA, Kind
from pystreams.errors import ProductionError, SerializationError
from pystreams.ids import TopicPartition
from pystreams.partitioning import partition_for_key

COUNTS = {"out": 3, "other": 5}


def producer(task: int = 4, folder: Path = Path("unused")) -> CollectingProducer:
    return CollectingProducer(77, task, COUNTS.__getitem__, {"in"}, folder)


def taken(sender: CollectingProducer) -> Any:
    """All that was sent."""
    return pa.Table.from_batches(sender.take(everything=True), EXCHANGE_SCHEMA)


def rows(table: Any) -> list[tuple[Any, ...]]:
    names = ("topic", "partition", "sequence", "queue_time", "timestamp", "key", "value")
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


@given(
    keys=st.lists(st.none() | st.binary(max_size=2) | st.just(b"x" * 200), max_size=20),
    taken_at=st.sets(st.integers(0, 19)),
)
def test_records_go_where_a_producer_sends_them_in_order(keys, taken_at):
    found: list[tuple[Any, ...]] = []
    sender = producer()
    for i, key in enumerate(keys):
        sender.send("out", None, key, bytes([i]), 10, ())
        if i in taken_at:
            found += rows(taken(sender))
    found += rows(taken(sender))
    by_partition: dict[int, list[tuple[int, bytes]]] = {}
    for _, partition, sequence, _, _, key, value in found:
        # Without a key: the partition with the task's own number.
        assert partition == (4 % 3 if key is None else partition_for_key(key, 3))
        by_partition.setdefault(partition, []).append((sequence, value))
    for numbered in by_partition.values():
        assert [sequence for sequence, _ in numbered] == list(range(len(numbered)))
        assert [value for _, value in numbered] == sorted(value for _, value in numbered)
    assert len(found) == len(keys)


def test_queues_go_on_where_an_earlier_visit_ended():
    sender = producer()
    sender.go_on({TopicPartition("out", 1): (9, 50)})
    sender.send("out", 1, b"k", b"v", 20, ())
    sender.send("out", 1, b"k", b"w", 70, (("h", None),))
    sender.send("other", 4, b"k", None, 5, ())
    table = taken(sender)
    assert set(table.column("kind").to_pylist()) == {Kind.RECORD}
    assert set(table.column("upstream").to_pylist()) == {77}
    assert rows(table) == [
        ("out", 1, 9, 50, 20, b"k", b"v"),
        ("out", 1, 10, 70, 70, b"k", b"w"),
        ("other", 4, 0, 5, 5, b"k", None),
    ]
    assert table.column("headers").to_pylist() == [None, [{"name": "h", "value": None}], None]
    assert sender.sequences == {TopicPartition("out", 1): (11, 70), TopicPartition("other", 4): (1, 5)}
    assert sender.written == {TopicPartition("out", 1): 2, TopicPartition("other", 4): 1}
    assert not list(sender.take(everything=True))


def test_few_records_wait_until_they_are_worth_a_batch():
    sender = producer()
    for number in range(9_999):
        sender.send("out", number % 3, b"k", b"v", number, ())
    assert not list(sender.take())
    for number in range(20_000):
        sender.send("out", number % 3, b"k", b"v", number, ())
    batches = list(sender.take())
    assert [batch.column("partition")[0].as_py() for batch in batches] == [0, 1, 2]
    assert sum(batch.num_rows for batch in batches) == 29_999


def test_large_records_do_not_wait():
    sender = producer()
    for partition in range(3):
        sender.send("out", partition, b"k", bytes(10_000_000), 1, ())
    assert [batch.num_rows for batch in sender.take()] == [1, 1, 1]


@pytest.mark.parametrize("sent", ["values", "keys", "headers"])
def test_what_is_too_much_for_memory_waits_in_a_file(sent, tmp_path):
    """As much as a record may bring about before anybody asks: memory does not grow with it."""
    sender = producer(folder=tmp_path)
    size, count = 100_000, 1_000

    def send(number: int) -> None:
        large = number.to_bytes(8) + bytes(size)
        match sent:
            case "values":
                sender.send("out", None, number.to_bytes(8), large, number, ())
            case "keys":
                sender.send("out", number % 3, large, number.to_bytes(8), number, ())
            case _:
                sender.send("out", number % 3, b"k", number.to_bytes(8), number, (("h", large),))

    tracemalloc.start()
    before = pa.total_allocated_bytes()
    peak = 0
    for number in range(count):
        send(number)
        peak = max(peak, tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes() - before)
    tracemalloc.stop()
    assert peak < 45_000_000 < count * size / 2
    found = list(sender.take(everything=True))
    assert max(batch.nbytes for batch in found) < 35_000_000
    values = [value for batch in found for value in batch.column("value").to_pylist()]
    assert sorted(value[:8] for value in values) == [number.to_bytes(8) for number in range(count)]
    for partition in range(3):
        numbers = [
            number
            for batch in found
            if batch.column("partition")[0].as_py() == partition
            for number in batch.column("sequence").to_pylist()
        ]
        assert numbers == list(range(len(numbers)))
    assert not list(tmp_path.iterdir())
    send(5)
    assert [batch.num_rows for batch in sender.take(everything=True)] == [1]


@pytest.mark.parametrize("name", ["../../escaped", "a/b", "..", ".", "", "x" * 250, "tab\t", "ü"])
def test_a_name_that_no_topic_may_have_is_refused(name):
    for partition in (None, 0):
        with pytest.raises(ProductionError, match="not a legal topic name"):
            producer().send(name, partition, b"k", b"v", 1, ())


def test_what_is_no_bytes_or_an_input_is_refused():
    with pytest.raises(SerializationError):
        producer().send("out", None, "text", b"v", 1, ())  # type: ignore[arg-type]
    with pytest.raises(SerializationError):
        producer().send("out", None, b"k", b"v", 1, ("header",))  # type: ignore[arg-type]
    for partition in (None, 0):
        with pytest.raises(ProductionError, match="topic in"):
            producer().send("in", partition, b"k", b"v", 1, ())
