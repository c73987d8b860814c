"""What type checkers see of the language. Run by mypy and pyright, not by pytest."""

from __future__ import annotations

from typing import Any, assert_type

from pystreams import (
    App,
    JsonSerde,
    KGroupedStream,
    KGroupedTable,
    KStream,
    KTable,
    MsgpackSerde,
    Processor,
    Record,
    TimeWindowedKStream,
    TimeWindowedSerde,
    TimeWindows,
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
words = lines.group_by(lambda line: line)
assert_type(words, KGroupedStream[str, str])
assert_type(words.count(name="counts"), KTable[str, int])
assert_type(words.reduce(lambda one, other: one + other), KTable[str, str])
assert_type(words.aggregate(int, lambda total, line: total + len(line)), KTable[str, int])
windowed = words.windowed_by(TimeWindows.tumbling(10))
assert_type(windowed, TimeWindowedKStream[str, str])
assert_type(windowed.count(retention=20), KTable[Windowed[str], int])
assert_type(windowed.count().to_stream(lambda window, n: window.key), KStream[str, int])

# Joins and processors.
assert_type(lines.join(table, lambda line, x: (line, x)), KStream[int, tuple[str, float]])
assert_type(lines.left_join(table, lambda line, x: x if x is not None else 0.0), KStream[int, float])


class Lengths(Processor[int, str, int, float]):
    def process(self, record: Record[int, str]) -> None:
        self.context.forward(record.with_value(len(record.value) / 2))


assert_type(lines.process(Lengths), KStream[int, float])
assert_type(lines.process_values(Lengths, stores=["store"]), KStream[int, float])
