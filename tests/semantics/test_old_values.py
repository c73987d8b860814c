"""Changes carry the old value where a later step needs it, and a cache changes what the first one is."""

from __future__ import annotations

import pytest

from pystreams import StreamsBuilder
from pystreams.testing import TopologyTestDriver


def sums(*, cached: bool) -> list[tuple[str, int]]:
    """The sum over all keys of aggregates that start with 100 and count records."""
    builder = StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    counted = stream.group_by_key().aggregate(lambda: 100, lambda n, value: n + 1, value=int, cached=cached)
    counted.group_by(lambda key, n: ("all", n), key=str, value=int).aggregate(
        lambda: 0, lambda total, n: total + n, lambda total, n: total - n, value=int
    ).to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_key_values(
            [("a", "x"), ("b", "x"), ("a", "x")]
        )
        return driver.create_output_topic("out", key=str, value=int).read_key_values()


def test_without_a_cache_the_first_old_value_is_the_initialisers() -> None:
    assert sums(cached=False) == [("all", 101), ("all", 102), ("all", 103)]


def test_with_a_cache_the_first_old_value_is_none() -> None:
    assert sums(cached=True) == [("all", 101), ("all", 202), ("all", 203)]


def test_a_cache_keeps_the_deletion_of_an_unknown_key_to_itself() -> None:
    builder = StreamsBuilder()
    builder.table("in", key=str, value=str, name="rows", cached=True).to_stream().to("cached")
    builder.table("in2", key=str, value=str, name="rows2", cached=False).to_stream().to("uncached")
    with TopologyTestDriver(builder) as driver:
        for topic in ("in", "in2"):
            driver.create_input_topic(topic, key=str, value=str).pipe_input("a", None)
        assert driver.create_output_topic("cached", key=str, value=str).is_empty
        assert driver.create_output_topic("uncached", key=str, value=str).read_key_values() == [("a", None)]


def test_an_update_with_the_same_value_is_forwarded() -> None:
    builder = StreamsBuilder()
    builder.table("in", key=str, value=str, name="rows").to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_key_values([("a", "x"), ("a", "x")])
        assert driver.create_output_topic("out", key=str, value=str).read_values() == ["x", "x"]


def test_an_older_record_overwrites_a_newer_row() -> None:
    builder = StreamsBuilder()
    builder.table("in", key=str, value=str, name="rows").to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        topic.pipe_input("a", "new", timestamp=10)
        topic.pipe_input("a", "old", timestamp=5)
        assert driver.store("rows").get("a") == ("old", 5)
        timestamps = [
            r.timestamp for r in driver.create_output_topic("out", key=str, value=str).read_records()
        ]
        assert timestamps == [10, 5]


@pytest.mark.parametrize("store, forwarded", [({"name": "rows"}, []), ({}, [("a", None), ("a", None)])])
def test_a_filter_is_silent_about_rows_that_never_passed_if_it_knows(
    store: dict[str, str], forwarded: list[tuple[str, None]]
) -> None:
    builder = StreamsBuilder()
    table = builder.table("in", key=str, value=str, **store)
    table.filter(lambda value: value == "yes").to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_key_values([("a", "no"), ("a", "no")])
        assert driver.create_output_topic("out", key=str, value=str).read_key_values() == forwarded
