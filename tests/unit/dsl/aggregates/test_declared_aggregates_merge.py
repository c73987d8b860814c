"""Declared aggregates give what plain Python computes of all values at once, in whatever pieces they are folded."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams import agg
from pystreams.agg import Aggregate
from pystreams.dsl.aggregates import hyperloglog
from pystreams.dsl.aggregates.rows import StoredRowSerde
from tests.examples import examples
from tests.unit.dsl.aggregates.kit import field, folded, rows_over

INTS = st.none() | st.integers(-(1 << 70), 1 << 70) | st.integers(-3, 3)
FLOATS = st.none() | st.floats(-1e100, 1e100) | st.sampled_from([0.0, -0.0, 1.0])
TEXTS = st.none() | st.text("ab", max_size=3)
UNTYPED = INTS | FLOATS
TIMES = st.integers(0, 5)

#: Those whose states may be merged in any order.
FREE = {
    "n": agg.count(),
    "there": agg.count(lambda value: value),
    "least": agg.min(),
    "most": agg.max(),
    "three": agg.top(3),
    "distinct": agg.approx_distinct(),
}
ADDING = {"total": agg.sum(), "mean": agg.mean()}
#: Those whose states must be merged in the order of the records.
ORDERED = {"first": agg.first(), "last": agg.last(), "by": agg.top(2, by=lambda value: len(repr(value)))}


def records_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[tuple[Any, int]]]:
    return st.lists(st.tuples(values, TIMES), max_size=12)


def bytes_of(rows: Any, row: Any) -> bytes:
    return StoredRowSerde(rows).serializer("t")(row) if rows.hide else repr(row).encode()


@given(st.data())
@examples(25)
@pytest.mark.parametrize(
    "type_,values,fields",
    [
        (int, INTS, {**FREE, **ADDING}),
        (float, FLOATS, FREE),
        (str, TEXTS, FREE),
        (object, UNTYPED, FREE),
    ],
)
def test_what_is_free_of_order_merges_in_any(type_: Any, values: Any, fields: Any, data: Any) -> None:
    rows = rows_over(type_, fields)
    assert rows.order_free
    records = data.draw(records_of(values))
    pieces = data.draw(st.lists(st.integers(0, 2), min_size=len(records), max_size=len(records)))
    shuffled = data.draw(st.permutations(list(zip(pieces, records, strict=True))))
    parts = [folded(rows, [r for p, r in shuffled if p == piece]) for piece in range(3)]
    a, b, c = data.draw(st.permutations(parts))
    at_once = bytes_of(rows, folded(rows, records))
    assert bytes_of(rows, rows.merge(rows.merge(a, b), c)) == at_once
    assert bytes_of(rows, rows.merge(a, rows.merge(b, c))) == at_once


@given(st.data())
@examples(25)
@pytest.mark.parametrize("type_,values", [(int, INTS), (float, FLOATS), (str, TEXTS)])
def test_what_needs_the_order_merges_pieces_that_follow_each_other(
    type_: Any, values: Any, data: Any
) -> None:
    rows = rows_over(type_, ORDERED)
    assert rows.order_free is False
    records = data.draw(records_of(values))
    one, two = sorted((data.draw(st.integers(0, len(records))), data.draw(st.integers(0, len(records)))))
    a, b, c = (folded(rows, part) for part in (records[:one], records[one:two], records[two:]))
    at_once = bytes_of(rows, folded(rows, records))
    assert bytes_of(rows, rows.merge(rows.merge(a, b), c)) == at_once
    assert bytes_of(rows, rows.merge(a, rows.merge(b, c))) == at_once


@given(records_of(INTS))
@examples(25)
def test_a_row_is_what_plain_python_computes(records: list[tuple[Any, int]]) -> None:
    row = folded(rows_over(int, {**FREE, **ADDING, "first": agg.first(), "last": agg.last()}), records)
    there = [value for value, _ in records if value is not None]
    in_time = sorted(
        ((value, at) for value, at in records if value is not None), key=lambda record: record[1]
    )
    latest = [value for value, at in in_time if at == in_time[-1][1]]
    assert row.n == len(records)
    assert row.there == len(there)
    assert row.total == (sum(there) if there else None)
    assert row.mean == (sum(there) / len(there) if there else None)
    assert row.least == min(there, default=None)
    assert row.most == max(there, default=None)
    assert row.three == tuple(sorted(there, reverse=True)[:3])
    assert row.first == (in_time[0][0] if there else None)
    assert row.last == (latest[-1] if there else None)
    # A pair of values has the same place in the sketch once in 4,096 times, and then counts as one.
    assert abs(row.distinct - len(set(there))) <= 2


@pytest.mark.parametrize("aggregate", [agg.sum(lambda value: value), agg.mean(lambda value: value)])
def test_sums_of_unknown_numbers_say_by_what_was_added_whether_order_matters(aggregate: Aggregate) -> None:
    rows = rows_over(object, {"it": aggregate})
    assert rows.order_free is None
    assert rows.merges_freely(folded(rows, [(1, 0), (2, 0)]))
    assert not rows.merges_freely(folded(rows, [(1, 0), (0.5, 0)]))


@pytest.mark.parametrize("type_", [float, Decimal])
def test_sums_that_are_rounded_need_the_order(type_: type) -> None:
    assert rows_over(type_, ADDING).order_free is False


@pytest.mark.parametrize(
    "aggregate,value",
    [
        (agg.count(), 3),
        (agg.count(lambda value: None), 0),
        (agg.sum(), None),
        (agg.mean(), None),
        (agg.min(), None),
        (agg.max(), None),
        (agg.first(), None),
        (agg.last(), None),
        (agg.top(2), ()),
        (agg.top(2, by=lambda value: value), ()),
        (agg.approx_distinct(), 0),
    ],
    ids=repr,
)
def test_null_values_are_counted_as_records_and_otherwise_ignored(aggregate: Aggregate, value: Any) -> None:
    assert field(int, aggregate, [(None, 0), (None, 1), (None, 2)]) == value


def test_nan_counts_as_no_value() -> None:
    records = [(float("nan"), 0), (2.0, 1), (float("nan"), 2)]
    assert field(float, agg.sum(), records) == 2.0
    assert field(float, agg.max(), records) == 2.0
    assert field(object, agg.last(), records) == 2.0


@pytest.mark.parametrize("make", [agg.sum, agg.max, agg.first])
def test_infinity_is_refused_because_it_could_not_be_stored(make: Callable[[], Aggregate]) -> None:
    with pytest.raises(ValueError, match="JSON has no infinity"):
        field(float, make(), [(float("inf"), 0)])


def test_a_sum_that_grows_beyond_floats_is_refused() -> None:
    with pytest.raises(OverflowError, match="too large for a float"):
        field(float, agg.sum(), [(1.7e308, 0), (1.7e308, 0)])


@pytest.mark.parametrize("count", [10, 300, 1_300, 1_500, 5_000, 100_000])
def test_distinct_values_are_counted_within_four_standard_errors(count: int) -> None:
    sketch = hyperloglog.EMPTY
    for number in range(count):
        sketch = hyperloglog.added(sketch, str(number).encode())
    assert abs(hyperloglog.estimate(sketch) - count) <= max(1, 4 * 0.01625 * count)
    assert len(sketch) <= 4_096


@pytest.mark.parametrize("count", [0, 1, 1_365, 1_600, 9_000])
def test_a_sketch_depends_on_the_set_of_values_alone(count: int) -> None:
    values = [str(number).encode() for number in range(count)]
    random.Random(7).shuffle(values)
    in_order, other, left, right = (hyperloglog.EMPTY,) * 4
    for place, value in enumerate(values):
        in_order = hyperloglog.added(in_order, value)
        left, right = (
            (hyperloglog.added(left, value), right) if place % 3 else (left, hyperloglog.added(right, value))
        )
    for value in [*reversed(values), *values]:
        other = hyperloglog.added(other, value)
    assert in_order == other == hyperloglog.merged(left, right) == hyperloglog.merged(right, left)
