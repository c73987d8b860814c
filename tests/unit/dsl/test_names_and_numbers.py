"""Names are drawn as in Java: from one counter, also where the user gave the name."""

from __future__ import annotations

import re

import pytest

from pystreams import KStream, StreamsBuilder, TimeWindows, TopologyError


def node_names(builder: StreamsBuilder) -> list[str]:
    return list(builder.build().nodes)


def stores(builder: StreamsBuilder) -> list[str]:
    return list(builder.build().stores)


@pytest.fixture
def builder() -> StreamsBuilder:
    return StreamsBuilder()


@pytest.fixture
def lines(builder) -> KStream[str, str]:
    return builder.stream("lines", key=str, value=str)


def test_a_given_name_draws_a_number_all_the_same(builder, lines):
    lines.filter(str.isupper, step="upper").peek(print).to("out")
    assert node_names(builder) == [
        "KSTREAM-SOURCE-0000000000",
        "upper",
        "KSTREAM-PEEK-0000000002",
        "KSTREAM-SINK-0000000003",
    ]


def test_a_given_name_of_a_processor_draws_none(builder, lines):
    lines.process(lambda: None, step="mine").to("out")
    assert node_names(builder) == ["KSTREAM-SOURCE-0000000000", "mine", "KSTREAM-SINK-0000000001"]


def test_store_and_step_of_a_count_share_the_counter(builder, lines):
    lines.group_by_key().count()
    assert node_names(builder)[1:] == ["KSTREAM-AGGREGATE-0000000002"]
    assert stores(builder) == ["KSTREAM-AGGREGATE-STATE-STORE-0000000001"]


def test_a_count_with_options_but_without_name_draws_a_number_more(builder, lines):
    lines.group_by_key().count(cached=False)
    assert node_names(builder)[1:] == ["KSTREAM-AGGREGATE-0000000003"]
    assert stores(builder) == ["KSTREAM-AGGREGATE-STATE-STORE-0000000002"]


def test_a_repartition_topic_has_the_name_of_the_store_or_of_the_grouping(builder, lines):
    lines.group_by(len, key=int).count(name="by-length")
    lines.group_by(len, key=int, repartition="lengths").reduce(max)
    assert list(builder.build().internal_topics) == ["by-length-repartition", "lengths-repartition"]
    assert "lengths" in node_names(builder)


def test_a_generated_repartition_topic_has_generated_steps_around_it(builder, lines):
    lines.select_key(len, key=int).group_by_key().count()
    assert node_names(builder)[2:] == [
        "KSTREAM-FILTER-0000000005",
        "KSTREAM-SINK-0000000004",
        "KSTREAM-SOURCE-0000000006",
        "KSTREAM-AGGREGATE-0000000003",
    ]


def test_one_grouping_with_a_name_has_one_repartition_topic_for_all_its_aggregations(builder, lines):
    grouped = lines.group_by(len, key=int, repartition="lengths")
    grouped.count(name="a")
    grouped.windowed_by(TimeWindows.tumbling(10)).count(name="b")
    assert list(builder.build().internal_topics) == ["lengths-repartition"]


def test_one_grouping_without_a_name_has_a_repartition_topic_for_each(builder, lines):
    grouped = lines.group_by(len, key=int)
    grouped.count(name="a")
    grouped.count(name="b")
    assert list(builder.build().internal_topics) == ["a-repartition", "b-repartition"]


def test_joins_of_a_re_keyed_stream_share_a_repartition_topic_unless_they_are_named(builder, lines):
    table = builder.table("table", key=int, value=str)
    rekeyed = lines.select_key(len, key=int)
    for step in (None, None, "mine"):
        rekeyed.join(table, lambda line, row: line + row, step=step)
    assert list(builder.build().internal_topics) == [
        "KSTREAM-KEY-SELECT-0000000004-repartition",
        "mine-repartition",
    ]


def test_branches_are_named_after_their_split(builder, lines):
    split = lines.split(step="by-case-")
    split.branch(str.isupper, name="upper")
    split.branch(str.islower)
    split.default()
    assert node_names(builder)[1:] == ["by-case-", "by-case-upper", "by-case-2", "by-case-0"]


@pytest.mark.parametrize("name", ["", ".", "..", "with space", "umläut", "x" * 250])
def test_an_illegal_name_is_refused(lines, name):
    with pytest.raises(TopologyError, match="cannot be a name"):
        lines.filter(bool, step=name)
    with pytest.raises(TopologyError, match="cannot be a name"):
        lines.to(name)
    with pytest.raises(TopologyError, match="cannot be a name"):
        lines.group_by_key().count(name=name)


def test_a_name_given_twice_is_refused_when_the_topology_is_built(builder, lines):
    lines.filter(bool, step="same")
    lines.peek(print, step="same")
    with pytest.raises(TopologyError, match="step same has already been added"):
        builder.build()


def test_generated_names_of_lasting_things_can_be_forbidden():
    builder = StreamsBuilder(ensure_explicit_internal_resource_naming=True)
    builder.stream("in", key=str, value=str).select_key(len, key=int).group_by_key().count()
    with pytest.raises(TopologyError) as caught:
        builder.build()
    store = "KSTREAM-AGGREGATE-STATE-STORE-0000000002"
    for name in (store, f"{store}-changelog", f"{store}-repartition"):
        assert re.search(rf"\b{name}\b", caught.value.what)


def test_given_names_of_lasting_things_are_never_forbidden():
    builder = StreamsBuilder(ensure_explicit_internal_resource_naming=True)
    builder.stream("in", key=str, value=str).select_key(len, key=int).group_by_key().count(name="n")
    assert stores(builder) == ["n"]
