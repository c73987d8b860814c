"""What a run has written: read once, boiled down, and compared with what another run of the job wrote.

A job whose outputs are fixed record by record (stateless, join) is compared as sequences: key, value and timestamp of
every record, partition by partition. One whose caches decide which updates leave (counts, sums) is compared as the
table that it leaves: the last value of every key, and the key's partition.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import struct
import time
from array import array
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from tests.benchmarks.kafka.inputs import Expected

#: Records that are hashed together; every run's sequences are cut alike.
_CHUNK = 5_000
_STALL_TIMEOUT_S = 30.0

_TABLES = {"wordcount", "windows", "declared", "orders"}

#: Key, value, timestamp.
_Record = tuple[bytes | None, bytes | None, int]
_Table = dict[bytes | None, tuple[int, bytes | None]]


@dataclass(frozen=True)
class Output:
    """The result of one run. ``digests`` (of chunks, by partition) or ``table`` stands for all records."""

    topic: str
    records: int
    digests: tuple[tuple[bytes, ...], ...]
    table: _Table


class OutputsDifferError(AssertionError):
    """Two runs of one job did not write the same, or one did not write what the inputs add up to."""


def read_output(bootstrap_servers: str, job: str, topic: str, partitions: int) -> Output:
    """Read a whole topic, in as many processes as there are cores. The application has ended: it grows no more."""
    # Not forked: librdkafka holds threads.
    workers = min(partitions, os.cpu_count() or 1)
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        read = partial(_read_partition, bootstrap_servers, job, topic)
        parts = [*pool.map(read, range(partitions))]
    return Output(
        topic,
        sum(records for records, _, _ in parts),
        tuple(digests for _, digests, _ in parts),
        {
            key: (partition, value)
            for partition, (_, _, table) in enumerate(parts)
            for key, value in table.items()
        },
    )


def _read_partition(
    bootstrap_servers: str, job: str, topic: str, partition: int
) -> tuple[int, tuple[bytes, ...], dict[bytes | None, bytes | None]]:
    """How many records; the digests of all chunks, or the last value of each key."""
    records = 0
    digests: list[bytes] = []
    table: dict[bytes | None, bytes | None] = {}
    with _reader(bootstrap_servers) as consumer:
        for chunk in _chunks(consumer, topic, partition):
            records += len(chunk)
            if job in _TABLES:
                table.update((m.key(), m.value()) for m in chunk)
            else:
                digests.append(_digest(chunk))
    return records, tuple(digests), table


def check_total(job: str, output: Output, expected: Expected) -> None:
    """Raise ``OutputsDifferError`` if records were skipped or doubled."""
    if job in _TABLES:
        found = sum(struct.unpack(">q", value)[0] for _, value in output.table.values() if value is not None)
        if found != expected.total:
            raise OutputsDifferError(
                f"{output.topic}: its last values add up to {found:,}, not {expected.total:,}"
            )
    elif output.records != expected.records:
        raise OutputsDifferError(f"{output.topic}: {output.records:,} records, not {expected.records:,}")


def check_equal(bootstrap_servers: str, a: Output, b: Output) -> None:
    """Raise ``OutputsDifferError`` with the first difference.

    Sequences are read again to find it: both topics must still be there.
    """
    for key in sorted(a.table.keys() | b.table.keys(), key=lambda key: key or b""):
        if a.table.get(key) != b.table.get(key):
            raise OutputsDifferError(
                f"{a.topic} and {b.topic} differ at key {key!r}: "
                f"(partition, last value) is {a.table.get(key)} and {b.table.get(key)}"
            )
    for partition, (left, right) in enumerate(zip(a.digests, b.digests, strict=True)):
        if left != right:
            raise OutputsDifferError(_first_difference(bootstrap_servers, a.topic, b.topic, partition))


def _first_difference(bootstrap_servers: str, a: str, b: str, partition: int) -> str:
    with _reader(bootstrap_servers) as one, _reader(bootstrap_servers) as other:
        pairs = zip_longest(_records(one, a, partition), _records(other, b, partition))
        number, (left, right) = next((n, pair) for n, pair in enumerate(pairs) if pair[0] != pair[1])
    return f"{a} and {b} differ in partition {partition} at record {number:,}: {left} and {right}"


def _records(consumer: Consumer, topic: str, partition: int) -> Iterator[_Record]:
    for chunk in _chunks(consumer, topic, partition):
        for message in chunk:
            yield message.key(), message.value(), message.timestamp()[1]


def _digest(messages: list[Message]) -> bytes:
    """Of keys, values and timestamps; lengths are hashed, too, so that nothing can move from one to the next."""
    digest = hashlib.blake2b(digest_size=16)
    for column in ([m.key() for m in messages], [m.value() for m in messages]):
        digest.update(array("q", [-1 if cell is None else len(cell) for cell in column]).tobytes())
        digest.update(b"".join(cell or b"" for cell in column))
    digest.update(array("q", [m.timestamp()[1] for m in messages]).tobytes())
    return digest.digest()


@contextmanager
def _reader(bootstrap_servers: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "bench-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # the end of a partition is told by a fetch that found nothing more
            "fetch.queue.backoff.ms": 5,
            "log_level": 2,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def _chunks(consumer: Consumer, topic: str, partition: int) -> Iterator[list[Message]]:
    """A partition's records in chunks, all of the same size but the last."""
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    waiting: list[Message] = []
    stalled = time.monotonic() + _STALL_TIMEOUT_S
    while time.monotonic() < stalled:
        messages = consumer.consume(_CHUNK, 0.05)
        if messages:
            stalled = time.monotonic() + _STALL_TIMEOUT_S
        # The end of the partition comes as a message with an error, and is the last.
        error = messages[-1].error() if messages else None
        if error is not None:
            messages.pop()
        waiting += messages
        while len(waiting) >= _CHUNK:
            yield waiting[:_CHUNK]
            del waiting[:_CHUNK]
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            if waiting:
                yield waiting
            return
    raise TimeoutError(f"nothing to read for {_STALL_TIMEOUT_S:g} s")
