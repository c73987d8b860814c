"""An application that reads what it has written itself is found, however long the way is."""

from __future__ import annotations

import re

import pytest

from pystreams import App
from pystreams.topology.circles import Circle, circles, in_words


def found(app: App) -> list[Circle]:
    return circles(app.build().build("circles").subtopologies)


def app_with(*ways: tuple[str, str]) -> App:
    app = App("circles")
    for read, written in ways:
        app.stream(read, key=str, value=str).to(written)
    return app


@pytest.mark.parametrize(
    "ways",
    [
        pytest.param([("in", "out")], id="one step"),
        pytest.param([("a", "b"), ("b", "c"), ("c", "d")], id="a chain"),
        pytest.param([("a", "c"), ("b", "c"), ("c", "d"), ("c", "e")], id="two in, two out"),
    ],
)
def test_records_that_only_go_forward_are_in_no_circle(ways):
    assert found(app_with(*ways)) == []


@pytest.mark.parametrize(
    "ways,all_circles",
    [
        pytest.param([("in", "in")], [("in", "in")], id="written to where it was read"),
        pytest.param([("a", "b"), ("b", "a")], [("a", "b", "a")], id="over another topic"),
        pytest.param(
            [("in", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("b", "out")],
            [("a", "b", "c", "a")],
            id="behind",
        ),
        pytest.param(
            [("a", "b"), ("b", "c"), ("c", "a"), ("b", "a")],
            [("a", "b", "a"), ("c", "a", "b", "c")],
            id="the shortest way",
        ),
    ],
)
def test_a_circle_is_found_once_with_its_way(ways, all_circles):
    assert found(app_with(*ways)) == all_circles
    assert " -> ".join(all_circles[0]) in in_words(all_circles[0])


def test_a_circle_through_a_repartition_topic_names_it():
    app = App("circles")
    words = app.stream("words", key=str, value=str).group_by(lambda key, value: value, repartition="by-word")
    words.count().to_stream().map_values(str).to("words")
    (circle,) = found(app)
    assert circle == ("words", "circles-by-word-repartition", "words")


def test_a_source_by_pattern_reads_what_it_matches():
    app = App("circles")
    app.stream(re.compile("orders-.*"), key=str, value=str).to("orders-big")
    assert found(app) == [("orders-big", "orders-big")]


def test_topics_that_are_chosen_for_each_record_and_global_tables_make_no_circle():
    app = App("circles")
    prices = app.global_table("prices", key=str, value=str)
    orders = app.stream("orders", key=str, value=str)
    orders.to(lambda key, value, record: "orders")
    orders.join(prices, lambda order, price: price, key_fn=lambda key, value: key).to("prices")
    assert found(app) == []
