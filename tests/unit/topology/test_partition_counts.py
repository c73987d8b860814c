"""How many partitions internal topics get, and which tasks there are."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams import StreamsBuilder, TopologyError
from pystreams.errors import TopicError
from pystreams.ids import TaskId, TopicPartition
from pystreams.topology.partitions import Partitioning, resolve_partitions


def resolved(builder: StreamsBuilder, **external: int) -> Partitioning:
    built = builder.build().build("app", default_key_serde=str, default_value_serde=str)
    return resolve_partitions(built, external)


def test_a_repartition_topic_is_as_wide_as_its_widest_input():
    builder = StreamsBuilder()
    builder.stream(["a", "b"]).group_by(lambda v: v).count(name="n")
    partitioning = resolved(builder, a=2, b=5, unrelated=9)
    assert partitioning.repartition_topics == {"app-n-repartition": 5}
    assert partitioning.changelog_topics == {"app-n-changelog": 5}
    assert partitioning.tasks[TaskId(0, 1)] == (TopicPartition("a", 1), TopicPartition("b", 1))
    assert partitioning.tasks[TaskId(0, 4)] == (TopicPartition("b", 4),)
    assert len(partitioning.tasks) == 10


def test_width_flows_through_several_repartition_topics():
    builder = StreamsBuilder()
    once = builder.stream("in").select_key(lambda v: v).repartition(name="one")
    once.select_key(lambda v: v).repartition(name="two").to("out")
    assert resolved(builder, **{"in": 3}).repartition_topics == {
        "app-one-repartition": 3,
        "app-two-repartition": 3,
    }


def test_a_repartition_topic_waits_for_the_width_of_all_that_feed_it():
    """In Java only those count that are known when its turn comes."""
    builder = StreamsBuilder()
    early = builder.stream("early")
    middle = builder.stream("wide").repartition(name="middle")
    last = middle.merge(builder.stream("narrow")).repartition(name="last")
    early.merge(last).to("out")
    assert list(resolved(builder, early=1, wide=5, narrow=2).repartition_topics.items()) == [
        ("app-last-repartition", 5),
        ("app-middle-repartition", 5),
    ]


def test_a_fixed_number_of_partitions_stays():
    builder = StreamsBuilder()
    builder.stream("in").repartition(name="r", partitions=7).to("out")
    assert resolved(builder, **{"in": 3}).repartition_topics == {"app-r-repartition": 7}


def test_a_repartition_topic_is_as_wide_as_the_table_it_meets():
    builder = StreamsBuilder()
    table = builder.table("table")
    builder.stream("in").select_key(lambda v: v).join(table, lambda v, t: v, step="j").to("out")
    assert resolved(builder, **{"in": 3, "table": 4}).repartition_topics == {"app-j-repartition": 4}


def test_joined_topics_of_different_width_are_an_error_that_names_them():
    builder = StreamsBuilder()
    builder.stream("in").join(builder.table("table"), lambda v, t: v).to("out")
    with pytest.raises(TopicError, match="in has 3, table has 4"):
        resolved(builder, **{"in": 3, "table": 4})


def test_the_step_where_the_topics_meet_and_the_application_are_named():
    builder = StreamsBuilder()
    table = builder.table("table").filter(lambda v: v)
    builder.stream("in").peek(print).join(table, lambda v, t: v, step="enrich").to("out")
    with pytest.raises(TopicError, match="application app, step enrich"):
        resolved(builder, **{"in": 2, "table": 1})


def test_the_width_of_topics_that_a_pattern_finds_counts_too():
    builder = StreamsBuilder()
    builder.stream(re.compile("in-.*")).join(builder.table("table"), lambda v, t: v).to("out")
    assert len(resolved(builder, **{"in-1": 4, "in-2": 4, "table": 4}).tasks) == 4
    with pytest.raises(TopicError, match="in-2 has 5"):
        resolved(builder, **{"in-1": 4, "in-2": 5, "table": 4})


def test_a_join_that_reads_a_topic_twice_is_still_checked():
    builder = StreamsBuilder()
    builder.stream("in").foreach(print)
    builder.stream("in").join(builder.table("table"), lambda v, t: v).to("out")
    with pytest.raises(TopicError, match="in has 3, table has 4"):
        resolved(builder, **{"in": 3, "table": 4})


def test_a_fixed_number_that_does_not_fit_is_an_error():
    builder = StreamsBuilder()
    rekeyed = builder.stream("in").repartition(name="r", partitions=2)
    rekeyed.join(builder.table("table"), lambda v, t: v).to("out")
    with pytest.raises(TopicError, match="app-r-repartition has 2, table has 4"):
        resolved(builder, **{"in": 3, "table": 4})


def test_two_fixed_numbers_that_differ_are_found_before_any_topic_exists():
    builder = StreamsBuilder()
    one = builder.stream("a").repartition(name="one", partitions=2)
    two = builder.stream("b").repartition(name="two", partitions=3).to_table()
    one.join(two, lambda v, t: v).to("out")
    with pytest.raises(TopologyError, match=re.escape("one-repartition (2), two-repartition (3)")):
        builder.build()


def test_a_missing_topic_is_an_error_that_names_it():
    builder = StreamsBuilder()
    builder.stream(["here", "gone"]).to("out")
    with pytest.raises(TopicError, match="gone does not exist"):
        resolved(builder, here=1)


def test_a_pattern_that_finds_nothing_cannot_size_what_it_feeds():
    builder = StreamsBuilder()
    builder.stream(re.compile("none-.*")).repartition(name="r").to("out")
    with pytest.raises(TopicError, match="the partition count of app-r-repartition"):
        resolved(builder)


def test_a_pattern_that_finds_nothing_gives_no_tasks():
    builder = StreamsBuilder()
    builder.stream(re.compile("none-.*")).to("out")
    assert resolved(builder).tasks == {}


@given(st.lists(st.integers(1, 12), min_size=1, max_size=5))
def test_every_partition_of_every_input_is_in_exactly_one_task(widths):
    external = {f"t{i}": width for i, width in enumerate(widths)}
    builder = StreamsBuilder()
    builder.stream(list(external)).group_by(lambda v: v).count(name="n")
    partitioning = resolved(builder, **external)
    inputs = [partition for partitions in partitioning.tasks.values() for partition in partitions]
    counts = external | dict(partitioning.repartition_topics)
    assert sorted(inputs) == sorted(TopicPartition(t, i) for t, n in counts.items() for i in range(n))
    assert all(p.partition == task.partition for task, ps in partitioning.tasks.items() for p in ps)
