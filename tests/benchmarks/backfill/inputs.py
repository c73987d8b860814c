"""The inputs: made once for a seed, as an archive of Parquet files, and from there in Kafka; spread evenly or not.

Lines of five words as frequent as in a language; amounts of accounts, some of which get many more than others. Times
advance, those of amounts a little out of order: windows close, and nothing is too late.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from pystreams.backfill.exchange.rows import RECORD_SCHEMA, headers_column
from pystreams.partitioning import partition_for_key
from tests.benchmarks.kafka.inputs import START_MS

PARTITIONS = 4
WORDS_IN_LINE = 5
#: The share of records that one partition gets in a skewed input.
SKEW = 0.9

TOPICS = {"wordcount": "bench-lines", "windows": "bench-amounts", "declared": "bench-amounts"}

_CHUNK = 500_000
_VOCABULARY = 10_000
_LINES = 100_000
_KEYS = 10_000
_AMOUNTS = 1_000
_AMOUNTS_PER_S = 5_000
_DISORDER_MS = 5_000
_QUEUE = 400_000

#: Keys (None: there are none), values, timestamps and partitions of some records, and what they add up to.
_Chunk = tuple[Any, Any, np.ndarray, np.ndarray, int]


@dataclass(frozen=True)
class Input:
    """The archive of a job. ``total`` is what the last values of any right result add up to."""

    job: str
    folder: Path
    records: int
    total: int

    @property
    def topic(self) -> str:
        """As the job names it."""
        return TOPICS[self.job]

    def batches(self, partition: int) -> Iterator[Any]:
        """The records of a partition in ``RECORD_SCHEMA``, in order."""
        with pq.ParquetFile(_file(self.folder, partition)) as file:
            yield from file.iter_batches(100_000)


def make_input(job: str, folder: Path, records: int, seed: int, *, skewed: bool) -> Input:
    """Write the archive of a job; the same for the same arguments."""
    folder.mkdir(parents=True)
    chunks = (_lines if job == "wordcount" else _amounts)(records, seed, SKEW if skewed else None)
    offsets = [0] * PARTITIONS
    total = 0
    with ExitStack() as stack:
        writers = [
            stack.enter_context(pq.ParquetWriter(_file(folder, number), RECORD_SCHEMA))
            for number in range(PARTITIONS)
        ]
        for keys, values, timestamps, partitions, sum_of_chunk in chunks:
            total += sum_of_chunk
            for number, writer in enumerate(writers):
                chosen = np.flatnonzero(partitions == number)
                batch = _batch(TOPICS[job], number, offsets[number], keys, values, timestamps, chosen)
                offsets[number] += len(chosen)
                writer.write_batch(batch, row_group_size=100_000)
    return Input(job, folder, records, total)


def _file(folder: Path, partition: int) -> Path:
    return folder / f"partition-{partition}.parquet"


def _batch(
    topic: str,
    partition: int,
    offset: int,
    keys: Any,
    values: Any,
    timestamps: np.ndarray,
    chosen: np.ndarray,
) -> Any:
    size = len(chosen)
    return pa.record_batch(
        [
            pa.repeat(pa.scalar(topic), size),
            pa.repeat(pa.scalar(partition, pa.int32()), size),
            pa.array(np.arange(offset, offset + size)),
            pa.array(timestamps[chosen]),
            pa.nulls(size, pa.binary()) if keys is None else keys.take(pa.array(chosen)),
            values.take(pa.array(chosen)),
            headers_column(None, size),
        ],
        schema=RECORD_SCHEMA,
    )


def _sizes(records: int) -> Iterator[tuple[int, int]]:
    """First number and size of each chunk."""
    return ((first, min(_CHUNK, records - first)) for first in range(0, records, _CHUNK))


def _lines(records: int, seed: int, skew: float | None) -> Iterator[_Chunk]:
    choice, chance = random.Random(seed), np.random.default_rng(seed)
    words = [
        f"{choice.choice('bdfgklmnprst')}{choice.choice('aeiou')}{rank:x}" for rank in range(_VOCABULARY)
    ]
    weights = list(accumulate(1 / rank for rank in range(1, _VOCABULARY + 1)))
    lines = [
        " ".join(choice.choices(words, cum_weights=weights, k=WORDS_IN_LINE)).encode() for _ in range(_LINES)
    ]
    values = pa.array(lines, pa.binary())
    for first, size in _sizes(records):
        numbers = np.arange(first, first + size)
        partitions = numbers // 10 % PARTITIONS
        if skew is not None:
            partitions = np.where(
                chance.random(size) < skew, 0, 1 + chance.integers(PARTITIONS - 1, size=size)
            )
        chosen = pa.array(chance.integers(_LINES, size=size))
        yield None, values.take(chosen), START_MS + numbers, partitions, WORDS_IN_LINE * size


def _amounts(records: int, seed: int, skew: float | None) -> Iterator[_Chunk]:
    chance = np.random.default_rng(seed)
    names = [f"account-{number:05}".encode() for number in range(_KEYS)]
    places = np.array([partition_for_key(name, PARTITIONS) for name in names])
    all_keys = pa.array(names, pa.binary())
    amounts = pa.array([amount.to_bytes(8, "big") for amount in range(1, _AMOUNTS + 1)], pa.binary())
    for first, size in _sizes(records):
        accounts = (chance.random(size) ** 2 * _KEYS).astype(np.int64)
        if skew is not None:
            own, others = np.flatnonzero(places == 0), np.flatnonzero(places != 0)
            share = chance.random(size) ** 2
            accounts = np.where(
                chance.random(size) < skew,
                own[(share * len(own)).astype(np.int64)],
                others[(share * len(others)).astype(np.int64)],
            )
        index = chance.integers(_AMOUNTS, size=size)
        numbers = np.arange(first, first + size)
        times = START_MS + numbers * 1_000 // _AMOUNTS_PER_S - chance.integers(_DISORDER_MS, size=size)
        keys, values = all_keys.take(pa.array(accounts)), amounts.take(pa.array(index))
        yield keys, values, times, places[accounts], int(index.sum()) + size


def fill_topic(bootstrap_servers: str, input: Input) -> None:
    """Write an archive to its topic, which is there and empty. Raises ``KafkaException`` if the broker refuses one."""
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": _QUEUE,
            "log_level": 2,
            "delivery.report.only.error": True,
            "on_delivery": delivered,
        }
    )
    for partition in range(PARTITIONS):
        for batch in input.batches(partition):
            columns = [batch.column(name).to_pylist() for name in ("value", "key", "timestamp")]
            for value, key, timestamp in zip(*columns, strict=True):
                while len(producer) >= _QUEUE:
                    producer.poll(0.01)
                producer.produce(input.topic, value, key, partition, None, None, timestamp)
            producer.poll(0)
    producer.flush()
    if failed:
        raise KafkaException(failed[0])
