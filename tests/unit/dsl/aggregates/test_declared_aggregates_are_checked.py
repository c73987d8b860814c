"""A declared aggregate that cannot be computed is told while the program is built, and which one it is."""

from __future__ import annotations

import dataclasses
import datetime as dt
from decimal import Decimal
from typing import Annotated, Any, Generic, NamedTuple, NotRequired, TypedDict, TypeVar

import msgspec
import pydantic
import pytest

from pystreams import App, JsonSerde, MsgpackSerde, Serde, SessionWindows, TimeWindows, TopologyError, agg
from pystreams.agg import Aggregate
from tests.unit.dsl.aggregates.kit import field, rows_over

T = TypeVar("T")


class Order(msgspec.Struct):
    city: str
    cents: int
    delay: float | None = None
    at: dt.datetime | None = None
    lines: list[int] = []

    @property
    def euros(self) -> float:
        return self.cents / 100


@dataclasses.dataclass
class Sale:
    cents: Annotated[int, msgspec.Meta(ge=0)]


class Reading(TypedDict):
    cents: int
    note: NotRequired[str]


class Pair(NamedTuple):
    cents: int


class Model(pydantic.BaseModel):
    cents: int


class Message:
    """As Protobuf makes them in pure Python: neither a named tuple nor a dataclass."""

    __slots__ = ("_fields", "cents")

    def __init__(self, cents: int) -> None:
        self.cents = cents


class Box(msgspec.Struct, Generic[T]):
    cents: T


class OfMessages(Serde[Message]):
    type = Message


def grouped(value: Any = Order) -> Any:
    return App("shop").stream("orders", key=str, value=value).group_by_key()


def told(stream: Any, /, *arguments: Any, **given: Any) -> str:
    with pytest.raises(TopologyError) as failure:
        stream.aggregate(*arguments, **given)
    return str(failure.value)


def test_a_misspelt_field_is_reported_with_the_nearest_name() -> None:
    text = told(grouped(), total=agg.sum("cent"))
    assert "total=agg.sum('cent') names a field that Order does not have" in text
    assert "did you mean cents?" in text


@pytest.mark.parametrize("value", [Sale, Reading, Pair, Model])
def test_every_kind_of_model_has_known_fields(value: Any) -> None:
    assert "did you mean cents?" in told(grouped(value), total=agg.sum("cent"))
    assert rows_over(value, {"total": agg.sum("cents")}).order_free


@pytest.mark.parametrize(
    "value,record",
    [
        (Order, Order("x", 5)),
        (Sale, Sale(5)),
        (Reading, {"cents": 5}),
        (Pair, Pair(5)),
        (Model, Model(cents=5)),
        (Box[int], Box(5)),
        (dict, {"cents": 5}),
        (dict[str, int], {"cents": 5}),
        (MsgpackSerde(Order), Order("x", 5)),
        (JsonSerde(object), {"cents": 5}),
        (OfMessages(), Message(5)),
    ],
)
def test_a_field_is_read_from_every_kind_of_value(value: Any, record: Any) -> None:
    assert field(value, agg.sum("cents"), [(record, 0), (record, 1)]) == 10


def test_an_optional_key_that_is_missing_is_ignored() -> None:
    assert field(Reading, agg.max("note"), [({"cents": 1}, 0), ({"cents": 1, "note": "b"}, 1)]) == "b"


def test_a_missing_key_is_reported_with_the_nearest_one() -> None:
    with pytest.raises(LookupError, match=r"it=agg.sum\('cent'\): .* has no 'cent': did you mean cents\?"):
        field(dict, agg.sum("cent"), [({"cents": 5}, 0)])


@pytest.mark.parametrize(
    "aggregate,why",
    [
        (agg.sum("city"), "adds numbers, not values of type str"),
        (agg.mean("at"), "adds numbers, not values of type datetime"),
        (agg.sum(), "adds numbers, not values of type Order"),
        (agg.min(), "those of type Order have no order"),
        (agg.top(3, "city", by=lambda one, two: one), "a function of two arguments"),
        (agg.max(3), "takes a function, not 3"),
    ],
    ids=repr,
)
def test_what_cannot_be_computed_of_a_type_is_refused(aggregate: Aggregate, why: str) -> None:
    assert why in told(grouped(), it=aggregate)


def test_a_number_has_no_fields() -> None:
    assert "leave the name out" in told(grouped(int), total=agg.sum("cents"))


def test_what_a_function_returns_is_checked_when_it_is_added() -> None:
    with pytest.raises(TypeError, match=r"it=agg.sum\(.*\) adds numbers, not 'x'"):
        field(Order, agg.sum(lambda order: order.city), [(Order("x", 5), 0)])
    with pytest.raises(TypeError, match="annotate what the function returns"):
        field(Order, agg.first(lambda order: order.lines), [(Order("x", 5), 0)])


def test_an_annotated_function_has_a_type() -> None:
    def lines(order: Order) -> list[int]:
        return order.lines

    assert field(Order, agg.first(lines), [(Order("x", 5, lines=[1]), 0)]) == [1]
    assert rows_over(Order, {"n": agg.sum("euros")}).order_free is False


def test_decimals_are_added_as_they_are() -> None:
    records = [({"cents": Decimal("0.10")}, 0), ({"cents": Decimal("0.20")}, 1)]
    assert field(dict[str, Decimal], agg.sum("cents"), records) == Decimal("0.30")
    assert field(dict[str, Decimal], agg.mean("cents"), records) == Decimal("0.15")


@pytest.mark.parametrize("number", [0, -1, True, 1.5, "3"])
def test_top_keeps_a_whole_number_of_values(number: Any) -> None:
    with pytest.raises(TopologyError, match="give a whole number"):
        agg.top(number)


def test_declared_aggregates_and_functions_exclude_each_other() -> None:
    text = told(grouped(), int, lambda total, order: total, total=agg.sum("cents"))
    assert "declared aggregates (total) and initializer and aggregator" in text


def test_an_aggregate_without_anything_says_what_to_give() -> None:
    assert "needs initializer and aggregator, or declared aggregates" in told(grouped())
    assert "needs aggregator, or" in told(grouped(), int)
    sessions = grouped().windowed_by(SessionWindows.of(5))
    assert "needs merger, or" in told(sessions, int, lambda total, order: total)


def test_a_declared_aggregate_needs_a_name() -> None:
    assert "got agg.sum('cents') without a name" in told(grouped(), agg.sum("cents"))
    assert "call it: n=agg.count(...)" in told(grouped(), n=agg.count)


@pytest.mark.parametrize("name", ["name", "step", "cached", "value", "retention", "was"])
def test_a_name_of_an_argument_is_no_name_of_a_field(name: str) -> None:
    assert f"name the field in another way: {name}_=agg.count()" in told(grouped(), **{name: agg.count()})


@pytest.mark.parametrize("name", ["class", "_n", "a b", ""])
def test_a_field_has_a_name_of_python(name: str) -> None:
    assert "cannot be the name of a field" in told(grouped(), **{name: agg.count()})


class ByName(msgspec.Struct, kw_only=True):
    n: int


class Totals(msgspec.Struct):
    n: int
    total: int


def test_a_model_of_rows_is_a_struct_with_the_same_fields() -> None:
    windows = grouped().windowed_by(TimeWindows.tumbling(5))
    assert "their rows are values of a msgspec.Struct" in told(windows, n=agg.count(), value=dict)
    assert "leave out kw_only=True" in told(windows, n=agg.count(), value=ByName)
    text = told(windows, n=agg.count(), mean=agg.mean("cents"), value=Totals)
    assert "Totals has no field mean; no aggregate is declared for its field total" in text


def test_a_model_of_rows_has_the_types_that_are_computed() -> None:
    text = told(grouped(), n=agg.first("city"), total=agg.mean("cents"), value=Totals)
    assert "n is int, and str is computed; total is int, and float is computed" in text


def test_tables_and_cogroups_take_functions() -> None:
    app = App("shop")
    table = app.table("homes", key=str, value=str).group_by(lambda person, city: (city, person))
    assert "a grouped table takes no declared aggregates (n)" in told(table, n=agg.count())
    cogrouped = app.stream("a", key=str, value=str).group_by_key().cogroup(lambda total, value: total)
    assert "a cogroup takes no declared aggregates (n)" in told(cogrouped, int, n=agg.count())


def test_a_cogroup_without_functions_says_that_it_needs_them() -> None:
    cogrouped = App("shop").stream("a", key=str, value=str).group_by_key().cogroup(lambda total, value: total)
    windows = cogrouped.windowed_by(TimeWindows.tumbling(5))
    sessions = cogrouped.windowed_by(SessionWindows.of(5))
    for one in (cogrouped, windows, sessions):
        assert "a cogroup takes no declared aggregates (n)" in told(one, n=agg.count())
        assert "aggregate of a cogroup needs an initializer" in told(one)
