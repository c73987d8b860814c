"""Which types the records behind a step have."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams import KStream, StreamsBuilder, TopologyError
from pystreams.serde import BYTES, FLOAT, INT, STR
from pystreams.serde.base import AnySerde
from pystreams.topology.nodes import SinkNode

KEPT = {
    "filter": lambda s: s.filter(bool),
    "filter_not": lambda s: s.filter_not(bool),
    "peek": lambda s: s.peek(print),
    "branch": lambda s: s.split().branch(bool),
    "repartition": lambda s: s.repartition(),
    "merge": lambda s: s.merge(s),
    "to_table": lambda s: s.to_table().to_stream(),
    "table filter": lambda s: s.to_table().filter(bool).to_stream(),
    "reduce": lambda s: s.group_by_key().reduce(max).to_stream(),
    "count": lambda s: s.group_by_key().count().to_stream(),
    "aggregate": lambda s: s.group_by_key().aggregate(int, lambda total, n: total + n).to_stream(),
    "map_values": lambda s: s.map_values(str, value=int),
    "map": lambda s: s.map(lambda k, v: (k, v), key=str, value=int),
    "select_key": lambda s: s.select_key(lambda v: v, key=str),
    "process": lambda s: s.process(lambda: None, key=str, value=int),
    "process_values": lambda s: s.process_values(lambda: None, value=int),
}


@pytest.fixture
def builder() -> StreamsBuilder:
    return StreamsBuilder()


@pytest.fixture
def numbers(builder) -> KStream[str, int]:
    return builder.stream("numbers", key=str, value=int)


def written(builder: StreamsBuilder, stream: KStream[Any, Any]) -> tuple[AnySerde, AnySerde]:
    """Serdes with which the stream is written if nothing else is said."""
    stream.to("written", step="written")
    (node,) = (n for s in builder.build().build("app").subtopologies for n in s.nodes if n.name == "written")
    assert isinstance(node, SinkNode)
    assert node.key_serde is not None
    assert node.value_serde is not None
    return node.key_serde, node.value_serde


@pytest.mark.parametrize("step", KEPT.values(), ids=KEPT)
def test_types_survive_and_can_be_given_where_they_do_not(builder, numbers, step):
    assert written(builder, step(numbers)) == (STR, INT)


def test_a_sink_has_the_last_word(builder, numbers):
    numbers.to("out", key=bytes, value=str, step="out")
    (sub,) = builder.build().build("app").subtopologies
    (node,) = (n for n in sub.nodes if isinstance(n, SinkNode))
    assert (node.key_serde, node.value_serde) == (BYTES, STR)


@pytest.mark.parametrize(
    "step, lost",
    [
        (lambda s: s.map_values(lambda v: f"{v}", step="x"), "the value that x computes"),
        (lambda s: s.flat_map_values(str, step="x"), "the value that x computes"),
        (lambda s: s.map(lambda v: (v, v), step="x", value=int), "the key that x computes"),
        (lambda s: s.select_key(lambda v: f"{v}", step="x"), "the key that x computes"),
        (lambda s: s.process(lambda: None, step="x", value=int), "the key that x forwards"),
        (lambda s: s.process_values(lambda: None, step="x"), "the value that x forwards"),
        (
            lambda s: s.to_table().map_values(lambda v: f"{v}", step="x").to_stream(),
            "the value that x computes",
        ),
        (
            lambda s: s.group_by_key().aggregate(lambda: 0, lambda a, n: a + n, name="x").to_stream(),
            "the aggregate in store x",
        ),
    ],
    ids=[
        "map_values",
        "flat_map_values",
        "map",
        "select_key",
        "process",
        "process_values",
        "table map_values",
        "aggregate",
    ],
)
def test_a_type_that_is_computed_must_be_given(builder, numbers, step, lost):
    with pytest.raises(TopologyError, match=lost) as caught:
        written(builder, step(numbers))
    assert caught.value.where == "str" or "test_types_flow.py" in caught.value.where


@pytest.mark.parametrize("function,serde", [(str, STR), (int, INT), (float, FLOAT), (len, INT)])
def test_a_type_given_as_the_function_is_the_type_of_what_it_gives(builder, function, serde):
    lines = builder.stream("lines", key=str, value=str)
    assert written(builder, lines.map_values(function)) == (STR, serde)


def test_the_same_goes_for_keys_and_for_tables(builder):
    lines = builder.stream("lines", key=str, value=str)
    keyed = lines.select_key(int).group_by(len).count().map_values(float).to_stream()
    assert written(builder, keyed) == (INT, FLOAT)


def test_a_given_type_wins_over_the_function(builder, numbers):
    assert written(builder, numbers.map_values(int, value=str)) == (STR, STR)


def test_a_class_without_a_serde_may_pass_by(builder, numbers):
    wrapped = numbers.map_values(complex, step="x")
    assert written(builder, wrapped.map_values(abs, value=float))[1] is FLOAT


def test_a_class_without_a_serde_cannot_be_written(builder, numbers):
    with pytest.raises(TopologyError, match="the value that x computes"):
        written(builder, numbers.map_values(complex, step="x"))


def test_text_stays_text(builder):
    lines = builder.stream("lines", value=str)
    assert written(builder, lines.map(lambda v: (v, v)).flat_map_values(str.split)) == (STR, STR)


def test_merged_streams_of_different_types_have_none(builder, numbers):
    other = builder.stream("lines", key=str, value=str)
    with pytest.raises(TopologyError, match="the values that m merges"):
        written(builder, numbers.merge(other, step="m"))


def test_a_join_of_texts_is_text(builder):
    lines, table = builder.stream("lines", key=str, value=str), builder.table("t", key=str, value=str)
    assert written(builder, lines.join(table, lambda a, b: a + b)) == (STR, STR)


def test_a_repartition_topic_is_written_and_read_with_the_given_types(builder, numbers):
    assert written(builder, numbers.select_key(str).repartition(key=str)) == (STR, INT)
