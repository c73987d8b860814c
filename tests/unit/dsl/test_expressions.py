"""Expressions of fields compute what Python computes, are null where an operand is null, and are checked when the
program is built."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams import App, Expression, TopologyError, TopologyTestDriver, agg, field


class Order(msgspec.Struct):
    city: str
    cents: int
    items: int | None = None
    notes: list[str] = []


def orders() -> Any:
    return App("shop").stream("orders", key=str, value=Order)


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne", "add", "sub", "mul")
}
NUMBERS = st.one_of(st.none(), st.integers(), st.floats(), st.sampled_from([1 << 63, -0.0, True]))


@pytest.mark.parametrize("name", OPERATIONS)
@given(one=NUMBERS, two=NUMBERS)
def test_an_operation_gives_what_python_gives_and_null_of_null(name: str, one: Any, two: Any) -> None:
    operation = OPERATIONS[name]
    expected = None if one is None or two is None else operation(one, two)
    value = {"one": one, "two": two}
    assert repr(operation(field("one"), field("two"))(value)) == repr(expected)
    if two is not None:
        assert repr(operation(field("one"), two)(value)) == repr(expected)
        if one is not None:
            assert repr(operation(one, field("two"))(value)) == repr(expected)


TRUTHS = [True, False, None]


@pytest.mark.parametrize("one", TRUTHS)
@pytest.mark.parametrize("two", TRUTHS)
def test_truths_are_combined_as_in_sql(one: bool | None, two: bool | None) -> None:
    value = {"one": one, "two": two}
    both, either = field("one") & field("two"), field("one") | field("two")
    assert both(value) is (False if False in (one, two) else None if None in (one, two) else True)
    assert either(value) is (True if True in (one, two) else None if None in (one, two) else False)
    assert (~field("one"))(value) is (None if one is None else not one)


def test_null_is_asked_for() -> None:
    assert field("items").is_null()({"items": None}) is True
    assert field("items").is_not_null()({"items": None}) is False
    assert field("items").is_in([1, 2])({"items": 2}) is True
    assert field("items").is_in([1, 2])({"items": None}) is None
    assert field("items")(None) is None


def test_steps_take_expressions_where_they_take_functions() -> None:
    app = App("shop")
    stream = app.stream("orders", key=str, value=Order)
    large = stream.filter(field("cents") > 100).filter_not(field("city") == "Ulm")
    large.map_values(field("cents") * 2).to("doubled")
    large.group_by(field("city")).aggregate(
        total=agg.sum(field("cents") + field("items"))
    ).to_stream().map_values(lambda row: row.total, value=int).to("totals")
    with TopologyTestDriver(app) as driver:
        source = driver.create_input_topic("orders", key=str, value=Order)
        for key, order in [
            ("a", Order("Rom", 50)),
            ("b", Order("Rom", 200, 1)),
            ("c", Order("Ulm", 300, 1)),
            ("d", Order("Rom", 400)),
        ]:
            source.pipe_input(key, order)
        doubled = driver.create_output_topic("doubled", key=str, value=int).read_key_values()
        totals = driver.create_output_topic("totals", key=str, value=int).read_key_values()
    assert doubled == [("b", 400), ("d", 800)]
    assert totals[-1] == ("Rom", 201)


def test_each_element_of_a_field_has_its_type() -> None:
    app = App("shop")
    app.stream("orders", key=str, value=Order).flat_map_values(field("notes")).to("notes")
    with TopologyTestDriver(app) as driver:
        driver.create_input_topic("orders", key=str, value=Order).pipe_input(
            "a", Order("Rom", 5, 1, ["x", "y"])
        )
        notes = driver.create_output_topic("notes", key=str, value=str).read_values()
    assert notes == ["x", "y"]


def told(make: Callable[[], Any]) -> str:
    with pytest.raises(TopologyError) as failure:
        make()
    return str(failure.value)


def test_a_field_that_the_values_do_not_have_is_reported_with_the_nearest_name() -> None:
    text = told(lambda: orders().filter(field("cent") > 1))
    assert "names a field that Order does not have" in text
    assert "did you mean cents?" in text


def test_a_number_is_not_compared_with_text() -> None:
    text = told(lambda: orders().filter(field("cents") > "1"))
    assert "got (field('cents') > '1'), which does not fit the values" in text
    assert "one side is int, the other one str" in text


@pytest.mark.parametrize(
    "make",
    [
        lambda: field("cents") > 1 and field("items") > 1,
        lambda: 1 < field("cents") < 5,
        lambda: not field("cents"),
    ],
    ids=["and", "chained", "not"],
)
def test_the_words_of_python_for_truths_are_refused(make: Callable[[], Expression]) -> None:
    assert "combine expressions with &, | and ~" in told(make)


def test_a_comparison_with_none_is_refused() -> None:
    assert "ask field('items').is_null()" in told(lambda: field("items") == None)  # noqa: E711


def test_keys_of_joins_are_checked_like_other_functions_of_a_value() -> None:
    def with_global() -> object:
        app = App("shop")
        cities = app.global_table("cities", key=str, value=str)
        return app.stream("orders", key=str, value=Order).join(cities, lambda *_: 1, key_fn=field("citi"))

    def by_foreign_key() -> object:
        app = App("shop")
        cities = app.table("cities", key=str, value=str)
        return app.table("orders", key=str, value=Order).join(
            cities, lambda *_: 1, foreign_key=field("citi"), value=int
        )

    for make in (with_global, by_foreign_key):
        assert "did you mean city?" in told(make)


def test_one_text_is_not_taken_for_the_set_of_its_characters() -> None:
    assert "write field('city').is_in(['Rom'])" in told(lambda: field("city").is_in("Rom"))
    assert field("city").is_in(["Rom"])(Order("Rom", 1)) is True


def test_an_expression_that_is_called_again_is_not_made_again() -> None:
    made: list[str] = []

    def bind(values: Any, what: str) -> Any:
        made.append(what)
        return field("cents").bind(values, what)

    expression = Expression("cents", bind)
    assert [expression(Order("Rom", cents)) for cents in (1, 2)] == [1, 2]
    assert made == ["cents"]


def test_a_missing_parenthesis_is_reported() -> None:
    assert "put comparisons in parentheses" in told(lambda: field("cents") > 1 & field("items") < 2)  # type: ignore[operator]
    assert "put comparisons in parentheses" in told(lambda: field("cents") == 1 | field("items") == 2)  # type: ignore[operator]
    assert "put comparisons in parentheses" in told(lambda: field("cents") & 1)  # type: ignore[operator]
