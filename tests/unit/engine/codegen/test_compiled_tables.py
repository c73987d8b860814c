"""Table steps without a store work on old and new values, as KTableFilter and its like do."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from pystreams.dsl.operators.base import ObjectOperation, Operator, OperatorEnvironment
from pystreams.dsl.operators.stateless import Foreach
from pystreams.dsl.operators.table import TableFilter, TableMapValues, TableRepartition, TableToStream
from pystreams.engine.linking import regroup
from pystreams.record import Headers
from pystreams.serde import STR, ChangeSerde
from tests.unit.engine.task_kit import Harness, fn, sink, source, step


class Remember(ObjectOperation):
    """A table without a store: forwards each value with the one before it."""

    emits_changes: ClassVar[bool] = True

    def open(self, environment: OperatorEnvironment) -> Operator:
        last: dict[Any, Any] = {}
        forward = environment.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            old = last.get(key)
            last[key] = value
            forward(key, value, old, timestamp, headers, True)

        return Operator(process)


class Note(ObjectOperation):
    """The end of a table: keeps the changes."""

    takes_changes: ClassVar[bool] = True
    emits_changes: ClassVar[bool] = True

    def __init__(self) -> None:
        self.changes: list[tuple[Any, Any, Any]] = []

    def open(self, environment: OperatorEnvironment) -> Operator:
        def process(key: Any, new: Any, old: Any, timestamp: int, headers: Headers, is_latest: bool) -> None:
            self.changes.append((key, new, old))

        return Operator(process)


def changes_behind(operation: Any, *values: str | None) -> list[tuple[Any, Any, Any]]:
    note = Note()
    harness = Harness(
        [
            source(),
            step("table", "source", Remember()),
            step("s", "table", operation),
            step("note", "s", note),
        ]
    )
    harness.run(*[("k", value, i) for i, value in enumerate(values)])
    return note.changes


LONG = fn(lambda value: len(value) > 1)


@pytest.mark.parametrize(
    "operation, expected",
    [
        (
            TableFilter(LONG, negate=False, send_old_values=True),
            [("k", "aa", None), ("k", None, "aa"), ("k", "bb", None), ("k", None, "bb")],
        ),
        (
            TableFilter(LONG, negate=False),
            [("k", None, None), ("k", "aa", None), ("k", None, None), ("k", "bb", None), ("k", None, None)],
        ),
        (
            TableFilter(LONG, negate=True, send_old_values=True),
            [("k", "a", None), ("k", None, "a"), ("k", "c", None), ("k", None, "c")],
        ),
        (
            TableMapValues(fn(str.upper), send_old_values=True),
            [("k", "A", None), ("k", "AA", "A"), ("k", "C", "AA"), ("k", "BB", "C"), ("k", None, "BB")],
        ),
        (
            TableMapValues(fn(lambda key, value: key + value)),
            [("k", "ka", None), ("k", "kaa", None), ("k", "kc", None), ("k", "kbb", None), ("k", None, None)],
        ),
        (
            TableRepartition(fn(lambda key, value: (len(value), value))),
            [
                (1, "a", None),
                (1, None, "a"),
                (2, "aa", None),
                (2, None, "aa"),
                (1, "c", None),
                (1, None, "c"),
                (2, "bb", None),
                (2, None, "bb"),
            ],
        ),
    ],
)
def test_changes_go_through_a_table_step(operation: Any, expected: list[Any]) -> None:
    assert changes_behind(operation, "a", "aa", "c", "bb", None) == expected


def test_a_row_that_stays_in_its_group_is_one_change() -> None:
    assert regroup(("g", 2), ("g", 1)) == [("g", 2, 1)]


def test_a_row_that_moves_leaves_its_old_group_first() -> None:
    assert regroup(("h", 2), ("g", 1)) == [("g", None, 1), ("h", 2, None)]


@pytest.mark.parametrize("pair", [None, (None, 1), ("g", None)])
def test_a_row_without_key_or_value_is_in_no_group(pair: Any) -> None:
    assert regroup(pair, ("g", 1)) == [("g", None, 1)]
    assert regroup(("g", 1), pair) == [("g", 1, None)]
    assert regroup(pair, pair) == []


def test_a_table_becomes_a_stream_of_its_new_values() -> None:
    seen: list[Any] = []
    harness = Harness(
        [
            source(),
            step("table", "source", Remember()),
            step("stream", "table", TableToStream()),
            step("see", "stream", Foreach(fn(lambda key, value: seen.append((key, value))))),
            sink("stream"),
        ]
    )
    harness.run(("k", "a", 1), ("k", None, 2))
    assert seen == [("k", "a"), ("k", None)]
    assert harness.written() == [("k", "a", 1), ("k", None, 2)]


def test_changes_are_written_to_a_repartition_topic_with_their_old_value() -> None:
    regrouped = TableRepartition(fn(lambda key, value: ("g", value)))
    harness = Harness(
        [
            source(),
            step("table", "source", Remember()),
            step("group", "table", regrouped),
            sink("group", value=ChangeSerde(STR)),
        ]
    )
    harness.run(("k", "a", 1), ("k", "b", 2))
    read = ChangeSerde(STR).deserializer("out")
    assert [read(r.value) for r in harness.producer.records if r.value] == [("a", None), ("b", "a")]
