"""Codecs: primitives, JSON of a record of 130 bytes, msgpack, keys of windows, partitions of keys."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from pystreams.partitioning import partition_for_key
from pystreams.serde import (
    BOOL,
    BYTES,
    FLOAT,
    INT,
    STR,
    UUID,
    AnySerde,
    ChangeSerde,
    JsonSerde,
    MsgpackSerde,
    TimeWindowedSerde,
)
from pystreams.windowed import Windowed
from tests.benchmarks.micro.measure import Case

N = 20_000


class Flight(msgspec.Struct):
    carrier: str
    flight: int
    tailnum: str
    origin: str
    dest: str
    dep_delay: float
    time_hour: str
    distance: int


FLIGHT = Flight("UA", 1545, "N14228", "EWR", "IAH", 2.0, "2013-01-01T10:00:00Z", 1400)


@contextmanager
def cases() -> Iterator[list[Case]]:
    """Reading and writing, one value at a time as operators do it."""
    flight_dict: dict[str, Any] = msgspec.to_builtins(FLIGHT)
    pairs: list[tuple[str, AnySerde, Any, float | None, float | None]] = [
        ("str", STR, "N14228", None, None),
        ("int", INT, 1545, None, None),
        ("float", FLOAT, 2.5, None, None),
        ("bytes", BYTES, b"N14228", None, None),
        ("bool", BOOL, True, None, None),
        ("uuid", UUID, uuid.UUID(int=1 << 100), None, None),
        ("JSON dict, 130 bytes", JsonSerde(dict), flight_dict, 600, 300),
        ("JSON Struct, 130 bytes", JsonSerde(Flight), FLIGHT, 600, 300),
        ("msgpack Struct", MsgpackSerde(Flight), FLIGHT, None, None),
        ("windowed str", TimeWindowedSerde(STR, 60_000), Windowed("N14228", 60_000, 120_000), None, None),
        ("change of int, both", ChangeSerde(INT), (3, 4), None, None),
    ]
    found: list[Case] = []
    for name, serde, value, read_budget, write_budget in pairs:
        data = serde.serializer("topic")(value)
        found.append(Case(f"read {name}", each(serde.deserializer("topic"), [data] * N), N, read_budget))
        found.append(Case(f"write {name}", each(serde.serializer("topic"), [value] * N), N, write_budget))
    keys = [f"key-{i}".encode() for i in range(N)]
    found.append(Case("partition of a known key", each_partition(keys[:1_000] * (N // 1_000)), N))
    found.append(Case("partition of a new key", each_partition(keys), N))
    yield found


def each(function: Callable[[Any], object], values: Sequence[Any]) -> Callable[[], None]:
    def run() -> None:
        for value in values:
            function(value)

    return run


def each_partition(keys: Sequence[bytes]) -> Callable[[], None]:
    def run() -> None:
        for key in keys:
            partition_for_key(key, 7)

    return run
