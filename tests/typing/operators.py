"""What type checkers see of every operator, with each form of its functions. Run by mypy and pyright, not by pytest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_type

from msgspec import Struct

from pystreams import (
    App,
    CogroupedKStream,
    EmitStrategy,
    GlobalKTable,
    JoinWindows,
    KGroupedStream,
    KGroupedTable,
    KStream,
    KTable,
    SessionWindowedCogroupedKStream,
    SessionWindowedKStream,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindowedCogroupedKStream,
    TimeWindowedKStream,
    TimeWindows,
    Topology,
    UnlimitedWindows,
    Windowed,
    agg,
    field,
)
from pystreams.dsl.branches import BranchedKStream
from pystreams.processor import RecordContext
from pystreams.timestamps import ConsumedRecord

builder = StreamsBuilder()
stream = builder.stream("stream", key=int, value=str)


def with_key(key: int, value: str) -> bool:
    return key == len(value)


def pair(key: int, value: str) -> tuple[str, float]:
    return value, float(key)


def pairs(key: int, value: str) -> Iterable[tuple[str, float]]:
    yield value, float(key)


def pieces(key: int, value: str) -> Iterable[bytes]:
    yield value[:key].encode()


# Streams, record by record
assert_type(stream.filter(bool), KStream[int, str])
assert_type(stream.filter(with_key), KStream[int, str])
assert_type(stream.filter(field("length") > 3), KStream[int, str])
assert_type(stream.filter_not(lambda value: value == ""), KStream[int, str])
assert_type(stream.filter_not(lambda key, value: key == len(value)), KStream[int, str])
assert_type(stream.map(lambda value: (value, len(value))), KStream[str, int])
assert_type(stream.map(pair, key=str, value=float), KStream[str, float])
assert_type(stream.map_values(str.encode), KStream[int, bytes])
assert_type(stream.map_values(with_key), KStream[int, bool])
assert_type(stream.flat_map(lambda value: [(value, len(value))]), KStream[str, int])
assert_type(stream.flat_map(pairs), KStream[str, float])
assert_type(stream.flat_map_values(str.split), KStream[int, str])
assert_type(stream.flat_map_values(pieces), KStream[int, bytes])
assert_type(stream.select_key(str.encode), KStream[bytes, str])
assert_type(stream.select_key(pair), KStream[tuple[str, float], str])
assert_type(stream.peek(print), KStream[int, str])
assert_type(stream.peek(lambda key, value: print(key + 1, value.upper())), KStream[int, str])
assert_type(stream.foreach(lambda value: value.upper()), None)
assert_type(stream.foreach(lambda key, value: value * key), None)
assert_type(stream.print(label="here"), None)
assert_type(stream.merge(stream), KStream[int, str])
assert_type(
    stream.repartition(partitioner=lambda topic, key, value, n: (key + len(value)) % n), KStream[int, str]
)
assert_type(stream.split(), BranchedKStream[int, str])
assert_type(stream.split().branch(lambda value: value > ""), KStream[int, str])
assert_type(stream.split().branch(lambda key, value: key > len(value)), KStream[int, str])
assert_type(stream.split().default(), KStream[int, str])

# Topics
assert_type(stream.to("out"), None)
stream.to("out", key=int, value=str, partitioner=lambda topic, key, value, n: [key % n, len(value) % n])
stream.to(lambda value: value.lower())
stream.to(lambda key, value: value * key)


def choose(key: int, value: str, context: RecordContext) -> str:
    return f"{context.topic}-{value * key}"


stream.to(choose)
stream.to("out", value=int)  # type: ignore[arg-type]


def of_record(record: ConsumedRecord[int, str]) -> int:
    return record.key + len(record.value)


def of_both(record: ConsumedRecord[Any, str], partition_time: int) -> int:
    return max(partition_time, len(record.value))


builder.stream("a", key=int, value=str, timestamp_extractor=of_record)
builder.stream("b", key=int, value=str, timestamp_extractor=lambda record: record.key + len(record.value))
assert_type(
    builder.stream("b2", key=str, value=dict, timestamp_extractor=lambda record: record.value["at"]),
    KStream[str, dict[Any, Any]],
)
builder.stream("c", value=str, timestamp_extractor=of_both)
builder.stream("d", timestamp_extractor="wall_clock")
builder.stream("e", timestamp_extractor=str.upper)  # type: ignore[arg-type]
assert_type(builder.table("f", key=int, value=str, timestamp_extractor=of_record, name="f"), KTable[int, str])

# Grouping and aggregating
assert_type(stream.group_by_key(), KGroupedStream[int, str])
assert_type(stream.group_by(len), KGroupedStream[int, str])
assert_type(stream.group_by(lambda value: value), KGroupedStream[str, str])
assert_type(stream.group_by(lambda key, value: (key, value)), KGroupedStream[tuple[int, str], str])
assert_type(stream.to_table(name="t"), KTable[int, str])
grouped = stream.group_by_key()


def add(total: float, value: str) -> float:
    return total + len(value)


def add_with_key(key: int, total: float, value: str) -> float:
    return total + key + len(value)


def both(one: float, other: float) -> float:
    return one + other


def both_with_key(key: int, one: float, other: float) -> float:
    return key + one + other


assert_type(grouped.count(), KTable[int, int])
assert_type(grouped.reduce(lambda one, other: one + other), KTable[int, str])
assert_type(grouped.reduce(lambda key, one, other: one * key + other), KTable[int, str])
assert_type(grouped.aggregate(float, add), KTable[int, float])
assert_type(grouped.aggregate(float, add_with_key, name="a"), KTable[int, float])


class Totals(Struct):
    n: int


def lengths(found: list[int], value: str) -> list[int]:
    return [*found, len(value)]


assert_type(grouped.aggregate(list[int], lengths), KTable[int, list[int]])
assert_type(
    grouped.aggregate(n=agg.count(), longest=agg.max(len), name="rows", cached=False), KTable[int, Any]
)
assert_type(grouped.aggregate(top=agg.top(3, by=lambda value: value[:1]), history=10), KTable[int, Any])
assert_type(grouped.aggregate(n=agg.count(), value=Totals, name="totals"), KTable[int, Totals])
grouped.aggregate(n=3)  # type: ignore[call-overload]

# Windows
tumbling = grouped.windowed_by(TimeWindows.tumbling(10))
assert_type(tumbling, TimeWindowedKStream[int, str])
assert_type(grouped.windowed_by(TimeWindows.hopping(10, advance=5)), TimeWindowedKStream[int, str])
assert_type(grouped.windowed_by(SlidingWindows.of(10)), TimeWindowedKStream[int, str])
assert_type(grouped.windowed_by(UnlimitedWindows.of()), TimeWindowedKStream[int, str])
assert_type(tumbling.emit_strategy(EmitStrategy.on_window_close()), TimeWindowedKStream[int, str])
assert_type(tumbling.count(), KTable[Windowed[int], int])
assert_type(tumbling.reduce(lambda one, other: one + other), KTable[Windowed[int], str])
assert_type(tumbling.reduce(lambda key, one, other: one * key + other), KTable[Windowed[int], str])
assert_type(
    tumbling.aggregate(last=agg.last(), distinct=agg.approx_distinct(len)), KTable[Windowed[int], Any]
)
assert_type(tumbling.aggregate(n=agg.count(), value=Totals, retention=90), KTable[Windowed[int], Totals])
assert_type(tumbling.aggregate(float, add), KTable[Windowed[int], float])
assert_type(tumbling.aggregate(float, add_with_key), KTable[Windowed[int], float])
sessions = grouped.windowed_by(SessionWindows.of(5))
assert_type(sessions, SessionWindowedKStream[int, str])
assert_type(sessions.emit_strategy(EmitStrategy.on_window_update()), SessionWindowedKStream[int, str])
assert_type(sessions.count(), KTable[Windowed[int], int])
assert_type(sessions.reduce(lambda one, other: one + other), KTable[Windowed[int], str])
assert_type(sessions.reduce(lambda key, one, other: one * key + other), KTable[Windowed[int], str])
assert_type(sessions.aggregate(n=agg.count(), value=Totals), KTable[Windowed[int], Totals])
assert_type(sessions.aggregate(n=agg.count(), retention=90), KTable[Windowed[int], Any])
assert_type(sessions.aggregate(float, add, both), KTable[Windowed[int], float])
assert_type(sessions.aggregate(float, add_with_key, both_with_key), KTable[Windowed[int], float])
assert_type(sessions.aggregate(float, add_with_key, both), KTable[Windowed[int], float])

# Cogroups
cogrouped = grouped.cogroup(add)
assert_type(cogrouped, CogroupedKStream[int, float])
assert_type(grouped.cogroup(add_with_key), CogroupedKStream[int, float])
assert_type(cogrouped.cogroup(grouped, add), CogroupedKStream[int, float])
assert_type(cogrouped.cogroup(grouped, add_with_key), CogroupedKStream[int, float])
assert_type(cogrouped.aggregate(float), KTable[int, float])
windowed = cogrouped.windowed_by(TimeWindows.tumbling(10))
assert_type(windowed, TimeWindowedCogroupedKStream[int, float])
assert_type(windowed.aggregate(float), KTable[Windowed[int], float])
in_sessions = cogrouped.windowed_by(SessionWindows.of(10))
assert_type(in_sessions, SessionWindowedCogroupedKStream[int, float])
assert_type(in_sessions.aggregate(float, both), KTable[Windowed[int], float])
assert_type(in_sessions.aggregate(float, both_with_key), KTable[Windowed[int], float])

# Tables
table = builder.table("table", key=int, value=float)
other = builder.table("other", key=int, value=bytes)
assert_type(table.queryable_store_name, str | None)
assert_type(table.filter(lambda value: value > 0), KTable[int, float])
assert_type(table.filter(lambda key, value: value > key), KTable[int, float])
assert_type(table.filter_not(lambda value: value > 0), KTable[int, float])
assert_type(table.filter_not(lambda key, value: value > key, name="n"), KTable[int, float])
assert_type(table.map_values(str), KTable[int, str])
assert_type(table.map_values(lambda key, value: f"{key}{value}"), KTable[int, str])
assert_type(table.to_stream(), KStream[int, float])
assert_type(table.to_stream(lambda value: f"{value}"), KStream[str, float])
assert_type(table.to_stream(lambda key, value: f"{key}{value}"), KStream[str, float])
by_value = table.group_by(lambda key, value: (value, key))
assert_type(by_value, KGroupedTable[float, int])
assert_type(by_value.count(), KTable[float, int])
assert_type(by_value.reduce(lambda one, more: one + more, lambda one, less: one - less), KTable[float, int])


def plus(total: list[int], value: int) -> list[int]:
    return [*total, value]


assert_type(by_value.aggregate(list[int], plus, plus), KTable[float, list[int]])
assert_type(table.suppress(Suppressed.until_time_limit(5)), KTable[int, float])
assert_type(tumbling.count().suppress(Suppressed.until_window_closes()), KTable[Windowed[int], int])


def maybe(left: float, right: bytes | None) -> str:
    return f"{left}{right!r}"


def either(left: float | None, right: bytes | None) -> str:
    return f"{left}{right!r}"


def either_with_key(key: int, left: float | None, right: bytes | None) -> str:
    return f"{key}{left}{right!r}"


# Joins
assert_type(table.join(other, lambda left, right: (left, right)), KTable[int, tuple[float, bytes]])
assert_type(table.join(other, lambda key, left, right: (key, right)), KTable[int, tuple[int, bytes]])
assert_type(table.left_join(other, maybe), KTable[int, str])
assert_type(table.outer_join(other, either), KTable[int, str])
assert_type(table.outer_join(other, either_with_key), KTable[int, str])
others = builder.stream("others", key=int, value=bytes)
near = JoinWindows.of(10).before(3).after(4)
assert_type(near, JoinWindows)


def joined(left: str, right: bytes) -> int:
    return len(left) + len(right)


def joined_with_key(key: int, left: str, right: bytes) -> int:
    return key + len(left) + len(right)


def joined_perhaps(left: str, right: bytes | None) -> int:
    return len(left) + len(right or b"")


def joined_either(left: str | None, right: bytes | None) -> int:
    return len(left or "") + len(right or b"")


assert_type(stream.join(others, joined, windows=near), KStream[int, int])
assert_type(stream.join(others, joined_with_key, windows=near, name="j"), KStream[int, int])
assert_type(stream.left_join(others, joined_perhaps, windows=near), KStream[int, int])
assert_type(stream.outer_join(others, joined_either, windows=near), KStream[int, int])
assert_type(stream.join(other, joined), KStream[int, int])
assert_type(stream.join(other, joined_with_key), KStream[int, int])
assert_type(stream.left_join(other, joined_perhaps), KStream[int, int])
everywhere = builder.global_table("everywhere", key=str, value=bytes)
assert_type(everywhere, GlobalKTable[str, bytes])
assert_type(everywhere.queryable_store_name, str | None)
assert_type(stream.join(everywhere, joined, key_fn=lambda value: value), KStream[int, int])
assert_type(
    stream.left_join(everywhere, joined_perhaps, key_fn=lambda key, value: value * key), KStream[int, int]
)
names = builder.table("names", key=str, value=bytes)


def named(left: float, right: bytes) -> str:
    return f"{left}{right!r}"


assert_type(table.join(names, named, foreign_key=lambda value: f"{value}"), KTable[int, str])
assert_type(table.left_join(names, maybe, foreign_key=lambda key, value: f"{key}{value}"), KTable[int, str])

assert_type(builder.build(), Topology)
assert_type(App("types").build(), Topology)
