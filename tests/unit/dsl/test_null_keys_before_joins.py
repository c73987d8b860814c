"""Records without a key leave before a repartition topic, unless a left join further on wants them."""

from __future__ import annotations

import pytest

from pystreams import StreamsBuilder
from pystreams.dsl.operators.stateless import AnyKey, NotNullKey
from pystreams.topology.nodes import ProcessorNode


def operation_before_topic(join: str) -> object:
    builder = StreamsBuilder()
    table = builder.table("t", key=str, value=str)
    stream = builder.stream("in", key=str, value=str).repartition(name="r").filter(bool)
    getattr(stream, join)(table, lambda left, right: left).to("out")
    node = builder.build().nodes["r-repartition-filter"]
    assert isinstance(node, ProcessorNode)
    return node.operation


@pytest.mark.parametrize("join, operation", [("join", NotNullKey), ("left_join", AnyKey)])
def test_the_joins_behind_decide(join, operation):
    assert isinstance(operation_before_topic(join), operation)
