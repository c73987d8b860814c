"""The nodes of a sub-topology as a slice runs them: if a repartition topic gets partial aggregates, the steps on both
sides of it are replaced by others."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from pystreams.backfill.plan.combining import Behind, behind_topics, sink_of
from pystreams.dsl.operators.combining import Combines, Merges
from pystreams.dsl.operators.partial_results import QueueOf
from pystreams.serde import BYTES
from pystreams.topology.built import BuiltTopology, SubTopology
from pystreams.topology.nodes import Node, ProcessorNode, SinkNode


def slice_nodes(
    built: BuiltTopology,
    sub: SubTopology,
    combined: Collection[str],
    queues: Callable[[str], QueueOf],
) -> list[Node]:
    """``combined`` are the aggregating steps that get partials, ``queues`` gives the queues of a topic that the
    sub-topology writes."""
    changed: dict[str, Node] = {}
    for behind in behind_topics(built):
        if behind.node.name not in combined:
            continue
        sink = sink_of(built, behind.topic)
        if sink in sub.nodes:
            changed[sink.name] = _combining(behind, sink, queues(behind.topic))
        if behind.sub.id == sub.id:
            changed[behind.source.name] = replace(behind.source, value_serde=BYTES)
            merges = Merges(behind.operation.store, behind.operation, sink)
            changed[behind.node.name] = replace(behind.node, operation=merges)
    return [changed.get(node.name, node) for node in sub.nodes]


def is_combining(node: Node) -> bool:
    """Whether it has replaced a sink."""
    return isinstance(node, ProcessorNode) and isinstance(node.operation, Combines)


def _combining(behind: Behind, sink: SinkNode, queue_of: QueueOf) -> ProcessorNode:
    spec = next(spec for spec in behind.sub.stores if spec.name == behind.operation.store)
    return ProcessorNode(sink.name, sink.parents, Combines(behind.operation, spec, sink, queue_of))
