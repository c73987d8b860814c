"""Stream time need not wait where all records come from one partition, in its order."""

from __future__ import annotations

import re

import pytest

from pystreams import KStream, StreamsBuilder, Suppressed, TimeWindows
from pystreams.runtime.catching_up.hold_back import hold_back_ms
from pystreams.runtime.catching_up.one_partition import of_one_partition
from pystreams.runtime.catching_up.subtopology_graph import writers
from tests.unit.runtime.catching_up.group_kit import inputs_of

WINDOWS = TimeWindows.tumbling(1_000)


def of_one(builder: StreamsBuilder, partitions: int = 1) -> set[int]:
    built = builder.build().build("app")
    hold_back = {sub.id: hold_back_ms(sub) for sub in built.subtopologies}
    return set(of_one_partition(built, inputs_of(built, partitions), writers(built), hold_back))


@pytest.fixture
def builder() -> StreamsBuilder:
    return StreamsBuilder()


def rekeyed(stream: KStream[str, str]) -> KStream[str, str]:
    counts = stream.group_by(lambda _, value: value, key=str).count(cached=False)
    return counts.to_stream().map_values(str, value=str)


def test_a_repartition_topic_of_one_partition_and_the_next_one(builder: StreamsBuilder) -> None:
    rekeyed(rekeyed(builder.stream("in", key=str, value=str))).to("out")
    assert of_one(builder) == {1, 2}


def test_not_of_two_partitions(builder: StreamsBuilder) -> None:
    rekeyed(builder.stream("in", key=str, value=str)).to("out")
    assert of_one(builder, partitions=2) == set()


def test_not_of_two_topics(builder: StreamsBuilder) -> None:
    both = builder.stream("in", key=str, value=str).merge(builder.stream("in2", key=str, value=str))
    rekeyed(rekeyed(both)).to("out")
    assert of_one(builder) == set()


def test_not_of_topics_that_match_a_pattern(builder: StreamsBuilder) -> None:
    """More of them may come."""
    rekeyed(builder.stream(re.compile("in.*"), key=str, value=str)).to("out")
    assert of_one(builder) == set()


def test_not_beside_a_topic_of_the_user(builder: StreamsBuilder) -> None:
    counts = builder.stream("in", key=str, value=str).group_by(lambda _, value: value, key=str).count()
    counts.join(builder.table("names", key=str, value=str), lambda n, name: n, value=int).to_stream().to(
        "out"
    )
    assert of_one(builder) == set()


def test_not_behind_a_topic_of_the_user(builder: StreamsBuilder) -> None:
    """Others may write to it."""
    builder.stream("in", key=str, value=str).to("between")
    rekeyed(builder.stream("between", key=str, value=str)).to("out")
    assert of_one(builder) == set()


def test_not_behind_a_step_that_holds_records_back(builder: StreamsBuilder) -> None:
    windowed = builder.stream("in", key=str, value=str).group_by_key().windowed_by(WINDOWS)
    counts = windowed.count(cached=False)
    final = counts.suppress(Suppressed.until_window_closes()).to_stream()
    rekeyed(final.map(lambda at, n: (at.key, str(n)), key=str, value=str)).to("out")
    assert of_one(builder) == set()


def test_not_behind_a_cache_beside_another_way(builder: StreamsBuilder) -> None:
    """While catching up, the counts come hours after the records, with the next commit."""
    stream = builder.stream("in", key=str, value=str)
    counts = stream.group_by_key().count().to_stream().map_values(str, value=str)
    rekeyed(stream.merge(counts)).to("out")
    assert of_one(builder) == set()


def test_not_behind_two_caches(builder: StreamsBuilder) -> None:
    """A commit flushes one after the other."""
    by_key = builder.stream("in", key=str, value=str).group_by_key()
    counts, last = by_key.count().to_stream(), by_key.reduce(lambda _, value: value).to_stream()
    rekeyed(counts.map_values(str, value=str).merge(last)).to("out")
    assert of_one(builder) == set()


def test_not_behind_a_single_cache_nor_behind_what_follows_it(builder: StreamsBuilder) -> None:
    """The cache may leave out the record that would have made another one late."""
    by_key = builder.stream("in", key=str, value=str).group_by_key()
    rekeyed(rekeyed(by_key.count().to_stream().map_values(str, value=str))).to("out")
    assert of_one(builder) == set()


def test_a_cache_at_the_end_changes_nothing(builder: StreamsBuilder) -> None:
    builder.stream("in", key=str, value=str).group_by(lambda _, value: value, key=str).count().to_stream().to(
        "out"
    )
    assert of_one(builder) == {1}


def test_not_where_two_sub_topologies_meet(builder: StreamsBuilder) -> None:
    one = builder.stream("in", key=str, value=str).repartition(name="one")
    two = builder.stream("in2", key=str, value=str).repartition(name="two")
    one.merge(two).group_by_key().count().to_stream().to("out")
    assert of_one(builder) == set()
