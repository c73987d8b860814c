"""The input topics: made once, the same for a seed, written with murmur2 partitions as Java and pystreams choose them.

Timestamps are fixed, and advance within each partition. Where a job's result could depend on which of two records with
one timestamp comes first (the join), no two have the same.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from pystreams.partitioning import partition_for_key

#: 2026-01-01, midnight UTC.
START_MS = 1_767_225_600_000

_QUEUE = 400_000
_TEXTS = 50_000
_KEYS = 10_000
_VOCABULARY = 10_000
_LINES = 100_000
WORDS_IN_LINE = 8
_EVENTS_PER_MS = 5
_AMOUNTS_PER_S = 5_000
#: Amounts are written up to so much after their time: windows close, and nothing is too late.
_DISORDER_MS = 5_000
_ORDERS_PER_UPDATE = 100

_COUNTRIES = ("DE", "FR", "GB", "IT", "JP", "US")
_CITIES = ("Berlin", "Lyon", "Leeds", "Turin", "Osaka", "Boston")
_TIERS = ("basic", "silver", "gold")

#: A record as ``Producer.produce`` takes it: topic, value, key, partition, no callbacks, timestamp.
_Message = tuple[str, bytes, bytes | None, int, None, None, int]


@dataclass
class Expected:
    """What any right result adds up to: the number of output records, or the sum of the last values of all keys."""

    records: int = 0
    total: int = 0


@dataclass
class Source:
    """Endless records of one job; ``main`` is the topic whose records are counted as the job's."""

    main: str
    topics: tuple[str, ...]
    write: Callable[[Choice, int, Expected], Iterator[_Message]]
    expected: Expected = field(default_factory=Expected)


class Choice:
    """Random numbers of a seed, and the partition of a key."""

    def __init__(self, seed: int, partitions: int) -> None:
        self.random = random.Random(seed)
        self.partitions = partitions

    def keys(self, prefix: str) -> list[tuple[bytes, int]]:
        """Keys with their partitions."""
        named = [f"{prefix}-{number:05}".encode() for number in range(_KEYS)]
        return [(key, partition_for_key(key, self.partitions)) for key in named]


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _events(choice: Choice, start_ms: int, expected: Expected) -> Iterator[_Message]:
    """One in four is a heartbeat, which the job leaves out."""
    rnd = choice.random.random
    texts = []
    for key, partition in choice.keys("user"):
        for _ in range(_TEXTS // _KEYS):
            kind = choice.random.choice(("view", "click", "purchase", "heartbeat"))
            tail = _compact(
                {
                    "user": key.decode(),
                    "kind": kind,
                    "page": f"/shop/category-{choice.random.randrange(100)}/{choice.random.randrange(10**6)}",
                    "country": choice.random.choice(_COUNTRIES),
                    "duration_ms": choice.random.randrange(100_000),
                    "cents": choice.random.randrange(100_000),
                }
            )
            texts.append((b"," + tail[1:], key, partition, kind != "heartbeat"))
    number = 0
    while True:
        tail, key, partition, kept = texts[int(rnd() * _TEXTS)]
        expected.records += kept
        timestamp = start_ms + number // _EVENTS_PER_MS
        yield "bench-events", b'{"id":%d' % number + tail, key, partition, None, None, timestamp
        number += 1


def _syllables(choose: random.Random) -> str:
    return "".join(
        choose.choice("bdfgklmnprst") + choose.choice("aeiou") for _ in range(choose.randint(1, 3))
    )


def _lines(choice: Choice, start_ms: int, expected: Expected) -> Iterator[_Message]:
    """Words as in a language: the second one half as often as the first, the third one a third."""
    rnd = choice.random.random
    words = [f"{_syllables(choice.random)}{number:x}" for number in range(_VOCABULARY)]
    weights = list(accumulate(1 / rank for rank in range(1, _VOCABULARY + 1)))
    lines = [
        " ".join(choice.random.choices(words, cum_weights=weights, k=WORDS_IN_LINE)).encode()
        for _ in range(_LINES)
    ]
    number = 0
    while True:
        expected.total += WORDS_IN_LINE
        partition = number // 10 % choice.partitions
        yield "bench-lines", lines[int(rnd() * _LINES)], None, partition, None, None, start_ms + number
        number += 1


def _amounts(choice: Choice, start_ms: int, expected: Expected) -> Iterator[_Message]:
    """Some accounts get much more than others; times are a little out of order."""
    rnd = choice.random.random
    keys = choice.keys("account")
    values = [struct.pack(">q", amount) for amount in range(1, 1_001)]
    number = 0
    while True:
        key, partition = keys[int(rnd() ** 2 * _KEYS)]
        index = int(rnd() * 1_000)
        expected.total += index + 1
        timestamp = start_ms + number * 1_000 // _AMOUNTS_PER_S - int(rnd() * _DISORDER_MS)
        yield "bench-amounts", values[index], key, partition, None, None, timestamp
        number += 1


def _orders(choice: Choice, start_ms: int, expected: Expected) -> Iterator[_Message]:
    """First a row for each customer; then orders, and now and then a row again. Rows have odd times, orders even."""
    rnd = choice.random.random
    keys = choice.keys("customer")

    def row(number: int, timestamp: int) -> _Message:
        key, partition = keys[number]
        customer = {
            "name": f"Customer {number} of {timestamp % 1_000}",
            "city": choice.random.choice(_CITIES),
            "tier": choice.random.choice(_TIERS),
        }
        return "bench-customers", _compact(customer), key, partition, None, None, timestamp

    for number in range(_KEYS):
        yield row(number, start_ms - 2 * (_KEYS - number) + 1)
    texts = [
        b',"item":"item-%05d","quantity":%d,"cents":%d}'
        % (choice.random.randrange(10**5), choice.random.randrange(1, 10), choice.random.randrange(1, 10**5))
        for _ in range(_TEXTS)
    ]
    number = 0
    while True:
        if number % _ORDERS_PER_UPDATE == 0:
            yield row(int(rnd() * _KEYS), start_ms + 2 * number - 1)
        key, partition = keys[int(rnd() ** 2 * _KEYS)]
        expected.records += 1
        value = b'{"id":%d' % number + texts[int(rnd() * _TEXTS)]
        yield "bench-orders", value, key, partition, None, None, start_ms + 2 * number
        number += 1


def source(job: str) -> Source:
    """What a job reads."""
    match job:
        case "stateless":
            return Source("bench-events", ("bench-events",), _events)
        case "wordcount":
            return Source("bench-lines", ("bench-lines",), _lines)
        case "windows":
            return Source("bench-amounts", ("bench-amounts",), _amounts)
        case "join":
            return Source("bench-orders", ("bench-orders", "bench-customers"), _orders)
    raise ValueError(f"no job {job}")


class Feed:
    """Writes a source's records to its topics, more of them each time."""

    def __init__(self, bootstrap_servers: str, source: Source, seed: int, partitions: int) -> None:
        self.source = source
        self.records = 0
        self._failed: list[KafkaError] = []
        self._written = source.write(Choice(seed, partitions), START_MS, source.expected)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 50,
                "batch.size": 1_000_000,
                "queue.buffering.max.messages": _QUEUE,
                "log_level": 2,
                "delivery.report.only.error": True,
                "on_delivery": self._delivered,
            }
        )

    def extend_to(self, records: int) -> None:
        """Write until the main topic has so many records, more than now; returns once the broker has them.

        Raises ``KafkaException`` if it refuses one.
        """
        produce, main = self._producer.produce, self.source.main
        for message in self._written:
            try:
                produce(*message)
            except BufferError:
                self._make_room(message)
            if message[0] == main:
                self.records += 1
                if self.records == records:
                    break
        self._producer.flush()
        self._check()

    def _make_room(self, message: _Message) -> None:
        """The local queue is full: wait until half of it is written."""
        while len(self._producer) > _QUEUE // 2:
            self._producer.poll(0.01)
        self._check()
        self._producer.produce(*message)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed.append(error)

    def _check(self) -> None:
        if self._failed:
            raise KafkaException(self._failed[0])
