"""Rows of declared aggregates are plain typed values outside, and keep what their aggregates need in the store."""

from __future__ import annotations

import pickle
from typing import Any

import msgspec
import pytest

from pystreams import App, TopologyTestDriver, agg
from pystreams.backfill.workers.shipping import shipped
from pystreams.dsl.aggregates.declaring import declared
from pystreams.dsl.aggregates.rows import RowSerde, StoredRowSerde, rows_of
from pystreams.dsl.materialized import StoreName, StoreOptions
from pystreams.errors import SerializationError
from pystreams.serde import serde_for
from pystreams.serde.schemas import Effect
from pystreams.topology.changed_schemas import change_of_values
from tests.unit.dsl.aggregates.kit import folded, rows_over


class Order(msgspec.Struct):
    city: str
    cents: int


RECORDS = [(Order("Rome", 5), 20), (Order("Oslo", 8), 10)]
ALL = {
    "total": agg.sum("cents"),
    "n": agg.count(),
    "mean": agg.mean("cents"),
    "first": agg.first("city"),
    "cities": agg.approx_distinct("city"),
    "best": agg.top(1, "city", by="cents"),
}


def test_a_row_has_the_fields_in_their_order() -> None:
    row = folded(rows_over(Order, ALL), RECORDS)
    assert repr(row) == "Totals(total=13, n=2, mean=6.5, first='Oslo', cities=2, best=('Oslo',))"
    assert msgspec.structs.asdict(row)["mean"] == 6.5


def test_a_topic_has_what_is_seen_and_the_store_what_is_needed() -> None:
    rows = rows_over(Order, {"n": agg.count(), "mean": agg.mean("cents"), "first": agg.first("city")})
    row = folded(rows, RECORDS)
    assert RowSerde(rows).serializer("t")(row) == b'{"n":2,"mean":6.5,"first":"Oslo"}'
    stored = StoredRowSerde(rows).serializer("t")(row)
    assert stored == b'{"n":2,"mean":{"sum":13,"count":2},"first":{"at":10,"value":"Oslo"}}'
    back = StoredRowSerde(rows).deserializer("t")(stored)
    assert back == row
    assert rows.add_at(back, *RECORDS[0]) == rows.add_at(row, *RECORDS[0])


def test_what_is_seen_is_stored_as_it_is_if_it_says_all() -> None:
    app = App("shop")
    orders = app.stream("orders", key=str, value=Order).group_by_key()
    orders.aggregate(total=agg.sum("cents"), n=agg.count(), top=agg.top(2, "cents"), name="totals")
    (store,) = app.build().build("shop").stores
    assert type(store.value_serde) is RowSerde


def test_a_row_of_another_origin_is_not_stored() -> None:
    rows = rows_over(Order, ALL)
    write = StoredRowSerde(rows).serializer("t")
    for other in (rows.model(), {"total": 1}):
        with pytest.raises(SerializationError, match="only their own step computes"):
            write(other)


@pytest.mark.parametrize("serde", [RowSerde, StoredRowSerde])
def test_rows_may_stay_objects_in_caches(serde: Any) -> None:
    assert serde(rows_over(Order, ALL)).immutable


class Totals(msgspec.Struct, frozen=True):
    total: int
    mean: float


def test_rows_are_values_of_a_model_that_is_given() -> None:
    app = App("given")
    orders = app.stream("orders", key=str, value=Order).group_by_key()
    totals = orders.aggregate(mean=agg.mean("cents"), total=agg.sum(lambda order: order.cents), value=Totals)
    totals.to_stream().to("o")
    again = totals.group_by(lambda row: (row.total, row), key=int, value=Totals)
    again.reduce(lambda old, new: new, lambda old, gone: old).to_stream().to("again")
    with TopologyTestDriver(pickle.loads(shipped(app))) as driver:
        given = driver.create_input_topic("orders", key=str, value=Order)
        given.pipe_input("a", Order("Rome", 5))
        given.pipe_input("a", Order("Rome", 8))
        found = driver.create_output_topic("o", key=str, value=Totals).read_values()
        assert found == [Totals(5, 5.0), Totals(13, 6.5)]
        assert len(driver.create_output_topic("again", key=int, value=Totals).read_values()) == 3


def test_a_row_of_a_given_model_is_equal_to_others_of_it() -> None:
    fields = {"total": agg.sum(lambda order: order.cents), "mean": agg.mean("cents")}
    rows = declared(fields, StoreOptions(value=Totals), StoreName("totals", True), serde_for(Order)).rows
    row, same = folded(rows, RECORDS), Totals(13, 6.5)
    assert isinstance(row, Totals)
    assert row == same
    assert same == row
    assert row != Totals(13, 7.0)
    assert {row, same} == {same}
    assert type(pickle.loads(pickle.dumps(row))) is Totals
    assert rows.aggregations["total"].order_free


def change(was: dict[str, Any], now: dict[str, Any]) -> Any:
    return change_of_values(
        *(StoredRowSerde(rows_over(Order, fields)).bytes_schema() for fields in (was, now))
    )


def test_an_added_field_is_readable_and_begins_without_values() -> None:
    found = change({"n": agg.count()}, {"n": agg.count(), "mean": agg.mean("cents")})
    assert (found.effect, found.why) == (Effect.READS_ON, "value.mean is new, with the default null")
    old, new = (
        rows_over(Order, {"n": agg.count()}),
        rows_over(Order, {"n": agg.count(), "mean": agg.mean("cents")}),
    )
    row = StoredRowSerde(new).deserializer("t")(RowSerde(old).serializer("t")(folded(old, RECORDS)))
    assert repr(new.add(row, Order("x", 3))) == "Totals(n=3, mean=3.0)"


def test_a_field_that_is_gone_or_means_something_else_is_reported() -> None:
    both = {"n": agg.count(), "it": agg.sum("cents")}
    assert change(both, {"n": agg.count()}).fields == ("value.it",)
    found = change(both, {"n": agg.count(), "it": agg.mean("cents")})
    assert (found.effect, found.fields) == (Effect.FAILS, ("value.it",))


def test_rows_can_be_shipped_with_their_serdes() -> None:
    rows = rows_over(Order, {"n": agg.count(), "mean": agg.mean("cents"), "three": agg.top(3, "cents")})
    again, serde = pickle.loads(shipped((rows, StoredRowSerde(rows))))
    row = folded(again, RECORDS)
    assert repr(row) == repr(folded(rows, RECORDS))
    assert serde.deserializer("t")(serde.serializer("t")(row)) == row


def test_an_application_with_declared_aggregates_can_be_shipped() -> None:
    app = App("shipped")
    orders = app.stream("orders", key=str, value=Order).group_by_key()
    orders.aggregate(
        mean=agg.mean(lambda order: order.cents), last=agg.last("city"), name="m"
    ).to_stream().to("o")
    with TopologyTestDriver(pickle.loads(shipped(app))) as driver:
        driver.create_input_topic("orders", key=str, value=Order).pipe_input("a", Order("Rome", 5))
        assert driver.create_output_topic("o", key=str, value=dict).read_values() == [
            {"mean": 5.0, "last": "Rome"}
        ]


def test_who_folds_history_finds_the_rows_behind_a_step() -> None:
    rows = rows_over(Order, ALL)
    assert rows_of(rows.aggregator) is rows
    assert rows_of(rows.initializer) is rows_of(rows.merger) is rows
