"""What type checkers see of the language. Run by mypy and pyright, not by pytest."""

from __future__ import annotations

from typing import Any, assert_type

from pystreams import (
    App,
    CogroupedKStream,
    EmitStrategy,
    GlobalKTable,
    JoinWindows,
    JsonSerde,
    KGroupedStream,
    KGroupedTable,
    KStream,
    KTable,
    MsgpackSerde,
    Processor,
    Record,
    SessionWindowedCogroupedKStream,
    SessionWindowedKStream,
    SessionWindows,
    SlidingWindows,
    Suppressed,
    TimeWindowedCogroupedKStream,
    TimeWindowedKStream,
    TimeWindowedSerde,
    TimeWindows,
    UnlimitedWindows,
    ValueTransformer,
    Windowed,
)

app = App("types")
lines = app.stream("lines", key=int, value=str)
assert_type(lines, KStream[int, str])
assert_type(app.stream("a", value=str), KStream[Any, str])
assert_type(app.stream("b", key=str), KStream[str, Any])
assert_type(app.stream(["c", "d"]), KStream[Any, Any])
assert_type(app.stream("e", value=JsonSerde(list[int])), KStream[Any, list[int]])
assert_type(
    app.stream("f", key=TimeWindowedSerde(str, 10), value=MsgpackSerde(float)), KStream[Windowed[str], float]
)

# A function takes the value, or key and value.
assert_type(lines.filter(lambda line: line != ""), KStream[int, str])
assert_type(lines.filter(lambda number, line: number > 0 and line != ""), KStream[int, str])
assert_type(lines.map_values(len), KStream[int, int])
assert_type(lines.map_values(lambda line: line.split()), KStream[int, list[str]])
assert_type(lines.map_values(lambda number, line: number * len(line)), KStream[int, int])
assert_type(lines.flat_map_values(str.split), KStream[int, str])
assert_type(lines.map(lambda number, line: (line, number)), KStream[str, int])
assert_type(lines.flat_map(lambda line: [(word, 1.0) for word in line.split()]), KStream[str, float])
assert_type(lines.select_key(lambda line: line[0]), KStream[str, str])
assert_type(lines.merge(lines), KStream[int, str])
assert_type(lines.repartition(partitions=3), KStream[int, str])
assert_type(lines.split().branch(lambda line: line == ""), KStream[int, str])

# Tables and aggregations.
table = app.table("table", key=int, value=float)
assert_type(table, KTable[int, float])
assert_type(table.filter(lambda x: x > 0), KTable[int, float])
assert_type(table.map_values(lambda x: f"{x}", value=str), KTable[int, str])
assert_type(table.to_stream(), KStream[int, float])
assert_type(table.to_stream(lambda number, x: f"{number}{x}"), KStream[str, float])
assert_type(table.group_by(lambda number, x: (x, number)), KGroupedTable[float, int])
assert_type(table.group_by(lambda x: ("a", x)).count(), KTable[str, int])
assert_type(lines.to_table(), KTable[int, str])
assert_type(table.join(lines.to_table(), lambda x, line: (x, line)), KTable[int, tuple[float, str]])
assert_type(table.left_join(table, lambda x, other: x if other is None else other), KTable[int, float])
assert_type(table.outer_join(table, lambda number, x, other: f"{number}{x}{other}"), KTable[int, str])
versions = app.table("versions", key=int, value=float, name="versions", history=10)
assert_type(versions, KTable[int, float])
assert_type(lines.join(versions, lambda line, x: (line, x), grace=5), KStream[int, tuple[str, float]])
assert_type(lines.left_join(versions, lambda line, x: x, grace=5), KStream[int, float | None])
words = lines.group_by(lambda line: line)
assert_type(words, KGroupedStream[str, str])
assert_type(words.count(name="counts"), KTable[str, int])
assert_type(words.reduce(lambda one, other: one + other), KTable[str, str])
assert_type(words.aggregate(int, lambda total, line: total + len(line)), KTable[str, int])
windowed = words.windowed_by(TimeWindows.tumbling(10))
assert_type(windowed, TimeWindowedKStream[str, str])
assert_type(windowed.count(retention=20), KTable[Windowed[str], int])
assert_type(windowed.count().to_stream(lambda window, n: window.key), KStream[str, int])
final = windowed.emit_strategy(EmitStrategy.on_window_close())
assert_type(final.reduce(lambda one, other: one + other), KTable[Windowed[str], str])
assert_type(words.windowed_by(SlidingWindows.of(5)), TimeWindowedKStream[str, str])
held = windowed.count().suppress(Suppressed.until_window_closes(max_records=10))
assert_type(held, KTable[Windowed[str], int])
assert_type(held.suppress(Suppressed.until_time_limit(5)), KTable[Windowed[str], int])
assert_type(table.suppress(Suppressed.until_time_limit(5, max_bytes=10)), KTable[int, float])
table.suppress(Suppressed.until_window_closes())  # type: ignore[arg-type]
assert_type(words.windowed_by(UnlimitedWindows.of()), TimeWindowedKStream[str, str])
sessions = words.windowed_by(SessionWindows.of(5, grace=2))
assert_type(sessions, SessionWindowedKStream[str, str])
assert_type(sessions.count(), KTable[Windowed[str], int])
assert_type(sessions.emit_strategy(EmitStrategy.on_window_close()), SessionWindowedKStream[str, str])
assert_type(sessions.reduce(lambda key, one, other: one + other), KTable[Windowed[str], str])


def add_line(total: int, line: str) -> int:
    return total + len(line)


def add_number(key: str, total: int, number: float) -> int:
    return total + int(number)


def both(one: int, other: int) -> int:
    return one + other


assert_type(sessions.aggregate(int, add_line, both), KTable[Windowed[str], int])
assert_type(
    sessions.aggregate(int, add_line, lambda key, one, other: both(one, other)), KTable[Windowed[str], int]
)
weights = app.stream("weights", key=str, value=float).group_by_key()
cogrouped = words.cogroup(add_line).cogroup(weights, add_number)
assert_type(cogrouped, CogroupedKStream[str, int])
assert_type(cogrouped.aggregate(int, name="all"), KTable[str, int])
assert_type(cogrouped.windowed_by(TimeWindows.tumbling(5)), TimeWindowedCogroupedKStream[str, int])
assert_type(cogrouped.windowed_by(SlidingWindows.of(5)).aggregate(int), KTable[Windowed[str], int])
assert_type(cogrouped.windowed_by(SessionWindows.of(5)), SessionWindowedCogroupedKStream[str, int])
assert_type(cogrouped.windowed_by(SessionWindows.of(5)).aggregate(int, both), KTable[Windowed[str], int])

# Joins and processors.
assert_type(lines.join(table, lambda line, x: (line, x)), KStream[int, tuple[str, float]])
assert_type(lines.left_join(table, lambda line, x: x if x is not None else 0.0), KStream[int, float])
near = JoinWindows.of(5)
numbers = app.stream("numbers", key=int, value=float)
assert_type(lines.join(numbers, lambda line, x: (line, x), windows=near), KStream[int, tuple[str, float]])
assert_type(
    lines.left_join(numbers, lambda k, line, x: 0.0 if x is None else x, windows=near), KStream[int, float]
)
assert_type(
    lines.outer_join(numbers, lambda line, x: line or x, windows=near), KStream[int, str | float | None]
)
# Foreign keys and global tables.
orders = app.table("orders", key=str, value=dict[str, int])
fk = orders.join(table, lambda order, x: (order, x), foreign_key=lambda order: order["customer"])
assert_type(fk, KTable[str, tuple[dict[str, int], float]])
assert_type(
    orders.left_join(
        table, lambda k, order, x: k if x is None else f"{x}", foreign_key=lambda k, order: order.get(k)
    ),
    KTable[str, str],
)
everywhere = app.global_table("everywhere", key=str, value=float)
assert_type(everywhere, GlobalKTable[str, float])
assert_type(
    lines.join(everywhere, lambda line, x: (line, x), key_fn=lambda line: line),
    KStream[int, tuple[str, float]],
)
assert_type(
    lines.left_join(everywhere, lambda k, line, x: 0.0 if x is None else x, key_fn=lambda k, line: line),
    KStream[int, float],
)


class Halves(ValueTransformer[int, float, str]):
    def transform(self, key: int, value: float | None) -> str | None:
        return None if value is None else f"{value / 2}"


assert_type(table.transform_values(Halves), KTable[int, str])


class Lengths(Processor[int, str, int, float]):
    def process(self, record: Record[int, str]) -> None:
        self.context.forward(record.with_value(len(record.value) / 2))


assert_type(lines.process(Lengths), KStream[int, float])
assert_type(lines.process_values(Lengths, stores=["store"]), KStream[int, float])
