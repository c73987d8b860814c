"""Decides which aggregations begin before their repartition topic, which then gets partial aggregates instead of each
record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pystreams.backfill.plan.slices import BackfillPlan
from pystreams.dsl.operators.partial_results import Combinable, why_each_record
from pystreams.dsl.operators.window_aggregate import WindowAggregate
from pystreams.topology.built import BuiltTopology, SubTopology
from pystreams.topology.nodes import Node, ProcessorNode, SinkNode, SourceNode


class Behind(NamedTuple):
    """An aggregation directly behind a repartition topic. ``sub`` is its sub-topology."""

    sub: SubTopology
    topic: str
    source: SourceNode
    node: ProcessorNode
    operation: Combinable


def behind_topics(built: BuiltTopology) -> Iterator[Behind]:
    """The aggregations that are directly behind a repartition topic."""
    for sub in built.subtopologies:
        for topic, source in sub.sources.items():
            if topic not in built.internal_topics:
                continue
            for node in sub.children.get(source.name, ()):
                operation = node.operation if isinstance(node, ProcessorNode) else None
                if isinstance(node, ProcessorNode) and isinstance(operation, Combinable):
                    yield Behind(sub, topic, source, node, operation)


def sink_of(built: BuiltTopology, topic: str) -> SinkNode:
    """The one sink that writes a repartition topic."""
    (sink,) = (
        node
        for sub in built.subtopologies
        for node in sub.nodes
        if isinstance(node, SinkNode) and node.topic == topic
    )
    return sink


def why_records(
    built: BuiltTopology, plan: BackfillPlan, updates: Mapping[str, str], *, continues: bool
) -> dict[str, str]:
    """The aggregating steps behind a repartition topic by name, each with the reason why the topic gets each record;
    empty: it gets partials. ``updates`` are the reasons why they do not fold, ``continues`` says that the backfill
    continues an earlier one."""
    return {
        one.node.name: updates[one.node.name] or _why_records(built, plan, one, continues=continues)
        for one in behind_topics(built)
    }


def _why_records(built: BuiltTopology, plan: BackfillPlan, one: Behind, *, continues: bool) -> str:
    if reason := why_each_record(one.operation):
        return reason
    readers = [node for node in _readers(built, one.topic) if node is not one.node]
    if readers:
        return f"{readers[0].name} reads the topic, too"
    if sink_of(built, one.topic).partitioner is not None:
        return "a function chooses the partitions of the topic"
    visits = [input for a_slice in plan.slices for input in a_slice.inputs if input.topic == one.topic]
    if len(visits) > 1 or len(visits[0].upstream) > 1:
        return "the topic is written or read at several visits"
    if continues and isinstance(one.operation, WindowAggregate):
        return "its windows go on from an earlier backfill"
    return ""


def _readers(built: BuiltTopology, topic: str) -> list[Node]:
    """The steps that get the records of a topic."""
    return [
        node
        for sub in built.subtopologies
        for read, source in sub.sources.items()
        if read == topic
        for node in sub.children.get(source.name, ())
    ]
