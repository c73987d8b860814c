"""What is consumed from a log has the types that were asked for: checked by mypy and pyright, never run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_type

from pystreams import TimeWindowedSerde, Windowed, open_log
from pystreams.log import Log, Records


@dataclass
class Order:
    id: int


def consuming(log: Log) -> None:
    assert_type(log.consume("t"), Records[bytes, bytes])
    assert_type(log.consume("t", key=str), Records[str, bytes])
    assert_type(log.consume("t", value=Order, from_=-1, limit=5), Records[bytes, Order])
    assert_type(log.consume("t", key=TimeWindowedSerde(str, 5), value=int), Records[Windowed[str], int])
    for record in log.consume("t", key=str, value=Order, follow=True):
        assert_type(record.key, str)
        assert_type(record.value, Order)
        assert_type(record.timestamp, int)


with open_log() as opened:
    assert_type(opened, Log)
    opened.produce("t", "key", Order(1), timestamp=5, headers={"h": b"x"}, value=Order)
    assert_type(opened.produce_many("t", [("a", 1), ("b", 2, 5)]), int)
    assert_type(opened.topics(), list[str])
