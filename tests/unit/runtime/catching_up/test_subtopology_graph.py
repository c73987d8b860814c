"""The ways that records take through the sub-topologies of a program."""

from __future__ import annotations

import re

import pytest

from pystreams import StreamsBuilder
from pystreams.runtime.catching_up.subtopology_graph import topics_between, upstream, writers
from pystreams.topology.built import BuiltTopology


def built() -> BuiltTopology:
    """0 writes to 1 through a repartition topic, 1 to 2 through a topic of the user's; 3 is alone."""
    builder = StreamsBuilder()
    counts = builder.stream("in", key=str, value=str).group_by(lambda key, value: value).count(name="counts")
    counts.to_stream().to("counted")
    builder.stream("counted", key=str, value=int).group_by_key().count().to_stream().to("out")
    builder.stream("other", key=str, value=str).to("loud")
    return builder.build().build("app")


def test_topics_between_are_written_and_read_by_the_application():
    assert topics_between(built()) == {"app-counts-repartition", "counted"}


def test_a_reader_knows_its_writers_and_all_that_is_before_them():
    direct = writers(built())
    assert direct == {0: frozenset(), 1: {0}, 2: {1}, 3: frozenset()}
    assert upstream(direct, [2]) == {0, 1}
    assert upstream(direct, [0, 3]) == frozenset()


def test_a_pattern_reads_topics_too():
    builder = StreamsBuilder()
    builder.stream("in").to("part-1")
    builder.stream(re.compile("part-.*")).to("out")
    assert writers(builder.build().build("app")) == {0: frozenset(), 1: {0}}


@pytest.mark.parametrize("start", [0, 1])
def test_a_circle_comes_to_an_end(start):
    assert upstream({0: frozenset({1}), 1: frozenset({0})}, [start]) == {0, 1}
