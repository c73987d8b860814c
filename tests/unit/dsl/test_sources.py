"""Topics that are read more than once."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from pystreams import StreamsBuilder, TopologyError
from pystreams.topology.nodes import SourceNode


def sources(builder: StreamsBuilder) -> list[SourceNode]:
    return [node for node in builder.build().nodes.values() if isinstance(node, SourceNode)]


def test_streams_of_the_same_topics_share_one_source():
    builder = StreamsBuilder()
    builder.stream(["a", "b"]).to("one")
    builder.stream(["b", "a"]).to("two")
    (source,) = sources(builder)
    assert set(source.topics) == {"a", "b"}
    assert list(builder.build().nodes) == [source.name, "KSTREAM-SINK-0000000001", "KSTREAM-SINK-0000000003"]


def test_streams_of_the_same_pattern_share_one_source():
    builder = StreamsBuilder()
    builder.stream(re.compile("a.*")).to("one")
    builder.stream(re.compile("a.*")).to("two")
    assert len(sources(builder)) == 1


def test_a_topic_named_twice_in_one_stream_is_read_once():
    builder = StreamsBuilder()
    builder.stream(["a", "a"]).to("out")
    (source,) = sources(builder)
    assert source.topics == ("a",)


@pytest.mark.parametrize(
    "first, second, said",
    [
        ({"topics": ["a", "b"]}, {"topics": "a"}, "overlap but are not equal"),
        ({"topics": "a", "value": str}, {"topics": "a", "value": int}, "different value types"),
        ({"topics": "a", "key": str}, {"topics": "a"}, "different key types"),
        (
            {"topics": "a", "timestamp_extractor": "log_and_skip"},
            {"topics": "a", "timestamp_extractor": "partition_time"},
            "different timestamp_extractor",
        ),
        (
            {"topics": "a", "auto_offset_reset": "latest"},
            {"topics": "a"},
            "different auto_offset_reset",
        ),
        (
            {"topics": "a", "auto_offset_reset": timedelta(hours=1)},
            {"topics": "a", "auto_offset_reset": timedelta(hours=2)},
            "different auto_offset_reset",
        ),
    ],
)
def test_streams_that_read_a_topic_in_different_ways_are_refused(first, second, said):
    builder = StreamsBuilder()
    builder.stream(**first).to("one")
    builder.stream(**second).to("two")
    with pytest.raises(TopologyError, match=said):
        builder.build()


def test_equal_durations_are_no_difference():
    builder = StreamsBuilder()
    for number, duration in enumerate(("by_duration:PT90M", "by_duration:pt1h30m", timedelta(minutes=90))):
        builder.stream("a", auto_offset_reset=duration).to(f"out{number}")
    assert len(sources(builder)) == 1


def test_equal_structured_types_are_no_difference():
    builder = StreamsBuilder()
    builder.stream("a", value=dict[str, int]).to("one")
    builder.stream("a", value=dict[str, int]).to("two")
    assert len(sources(builder)) == 1


def test_a_topic_cannot_be_read_as_stream_and_as_table():
    builder = StreamsBuilder()
    builder.stream("a").to("out")
    builder.table("a")
    with pytest.raises(TopologyError, match="topic a is already read by source KSTREAM-SOURCE-0000000000"):
        builder.build()
