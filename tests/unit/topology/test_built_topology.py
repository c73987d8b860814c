"""What an application gets of its topology: sub-topologies, names with its id, serdes, the order of stores."""

from __future__ import annotations

import re

import pytest

from pystreams import StreamsBuilder, TimeWindows, TopologyError
from pystreams.serde import BYTES, INT, STR, ChangeSerde, TimeWindowedSerde
from pystreams.topology.nodes import SinkNode, SourceNode


def word_count() -> StreamsBuilder:
    builder = StreamsBuilder()
    (
        builder.stream("lines", value=str)
        .flat_map_values(str.split)
        .group_by(lambda word: word)
        .count(name="counts")
        .to_stream()
        .to("word-counts")
    )
    return builder


def test_internal_topics_carry_the_application_id():
    first, second = word_count().build().build("app").subtopologies
    assert first.sink_topics == ("app-counts-repartition",)
    assert second.source_topics == ("app-counts-repartition",)
    assert second.repartition_source_topics["app-counts-repartition"].partitions is None
    assert second.changelogs == {"counts": "app-counts-changelog"}
    assert second.sink_topics == ("word-counts",)
    assert [spec.name for spec in second.stores] == ["counts"]


def test_children_stand_in_the_order_in_which_they_were_added():
    builder = StreamsBuilder()
    lines = builder.stream("lines")
    for i in (3, 1, 2):
        lines.peek(print, step=f"p{i}")
    (sub,) = builder.build().build("app").subtopologies
    assert [node.name for node in sub.children["KSTREAM-SOURCE-0000000000"]] == ["p3", "p1", "p2"]
    assert sub.children["p1"] == ()


def test_stores_are_flushed_node_by_node_and_within_a_node_in_the_order_of_javas_hash_set():
    builder = StreamsBuilder()
    lines = builder.stream("lines", key=str, value=str)
    lines.group_by_key().count(name="late")
    lines.group_by_key().count(name="early")
    (sub,) = builder.build().build("app").subtopologies
    assert [spec.name for spec in sub.stores] == ["late", "early"]


def test_a_topology_can_be_built_again_and_grows_with_its_builder():
    builder = word_count()
    before = builder.build().build("app")
    assert builder.build().build("app").fingerprint == before.fingerprint
    builder.stream("more").to("elsewhere")
    assert len(builder.build().build("app").subtopologies) == 3


def test_a_store_without_changelog_has_none():
    builder = StreamsBuilder()
    builder.stream("lines", key=str).group_by_key().count(name="counts", logged=False)
    (sub,) = builder.build().build("app").subtopologies
    assert sub.changelogs == {}


def test_a_source_is_found_by_name_or_by_pattern():
    builder = StreamsBuilder()
    builder.stream("lines", step="by-name").merge(
        builder.stream(re.compile("log-.*"), step="by-pattern")
    ).foreach(print)
    (sub,) = builder.build().build("app").subtopologies
    found = [sub.source_for(topic) for topic in ("lines", "log-1", "else")]
    assert [node and node.name for node in found] == ["by-name", "by-pattern", None]


def nodes_by_name(builder: StreamsBuilder, **defaults):
    return {n.name: n for sub in builder.build().build("app", **defaults).subtopologies for n in sub.nodes}


def test_sources_read_bytes_where_nothing_gives_their_types():
    builder = StreamsBuilder()
    builder.stream("in").to("out", step="out")
    nodes = nodes_by_name(builder)
    assert isinstance(nodes["out"], SinkNode)
    assert (nodes["out"].key_serde, nodes["out"].value_serde) == (BYTES, BYTES)


def test_defaults_are_for_what_has_no_type():
    builder = StreamsBuilder()
    builder.stream("in", key=str, step="in").map_values(len).to("out", step="out")
    nodes = nodes_by_name(builder, default_key_serde=float, default_value_serde=int)
    assert isinstance(nodes["in"], SourceNode)
    assert (nodes["in"].key_serde, nodes["in"].value_serde) == (STR, INT)
    assert isinstance(nodes["out"], SinkNode)
    assert (nodes["out"].key_serde, nodes["out"].value_serde) == (STR, INT)


def test_what_a_function_makes_of_text_is_taken_for_text():
    nodes = nodes_by_name(word_count())
    sink = nodes["counts-repartition-sink"]
    assert isinstance(sink, SinkNode)
    assert (sink.key_serde, sink.value_serde) == (STR, STR)


def test_a_type_that_is_lost_is_an_error_that_names_the_call_and_both_steps():
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=int).map_values(lambda n: [n], step="listed").to("out", step="out")
    with pytest.raises(TopologyError) as caught:
        builder.build().build("app")
    assert caught.value.what == "map_values has no value type"
    assert "the value that listed computes, needed by out" in caught.value.where
    assert "value=" in caught.value.hint
    assert "default_value_serde" in caught.value.hint


def test_bytes_as_a_default_say_nothing_about_functions():
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=int).map_values(lambda n: [n]).to("out")
    with pytest.raises(TopologyError, match="map_values has no value type"):
        builder.build().build("app", default_value_serde=bytes)


def test_windowed_keys_and_changes_are_written_by_serdes_around_the_given_ones():
    builder = StreamsBuilder()
    lines = builder.stream("in", key=str, value=int)
    windows = TimeWindows.tumbling(10)
    lines.group_by_key().windowed_by(windows).count(name="w").to_stream().to("out", step="out")
    lines.to_table(name="t").group_by(lambda n: (n, n), key=int, value=int).count(name="g", step="grouped")
    nodes = nodes_by_name(builder)
    out, change = nodes["out"], nodes["grouped-sink"]
    assert isinstance(out, SinkNode)
    assert isinstance(out.key_serde, TimeWindowedSerde)
    assert (out.key_serde.inner, out.key_serde.window_size_ms) == (STR, 10)
    assert isinstance(change, SinkNode)
    assert isinstance(change.value_serde, ChangeSerde)
    assert change.value_serde.inner is INT


def test_a_default_reaches_into_windowed_keys():
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().windowed_by(TimeWindows.tumbling(10)).count().to_stream().to(
        "out", step="out"
    )
    out = nodes_by_name(builder, default_key_serde=str)["out"]
    assert isinstance(out, SinkNode)
    assert isinstance(out.key_serde, TimeWindowedSerde)
    assert out.key_serde.inner is STR
