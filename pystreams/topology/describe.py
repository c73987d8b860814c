"""The text form of a topology, as Java prints it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pystreams.topology.java_collections import TreeSet, copied_hash_set_order, hash_set_order
from pystreams.topology.nodes import Node, ProcessorNode, SinkNode, SourceNode


class _Described:
    """A node with its neighbours, in sets ordered by the size of the subtree when each neighbour was added."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.size = 1
        self.before: TreeSet[_Described] = TreeSet(_compare)
        self.after: TreeSet[_Described] = TreeSet(_compare)

    def grow(self, delta: int) -> None:
        self.size += delta
        for above in self.before:
            above.grow(delta)


def _compare(one: _Described, other: _Described) -> int:
    if one.size != other.size:
        return other.size - one.size
    return (one.node.name > other.node.name) - (one.node.name < other.node.name)


def describe(subtopologies: Sequence[Sequence[Node]], global_sources: frozenset[str] = frozenset()) -> str:
    """``TopologyDescription.toString()`` of Java, with the iteration order of its collections. ``global_sources`` are
    the sources that fill global stores."""
    text = "Topologies:\n "
    for i, nodes in enumerate(subtopologies):
        is_global = nodes[0].name in global_sources
        text += f"  Sub-topology: {i}{' for global store (will not generate tasks)' if is_global else ''}\n"
        for described in _connect(nodes):
            text += f"    {_node_text(described)}\n"
        text += "" if is_global else "\n"
    return text


def _connect(nodes: Sequence[Node]) -> TreeSet[_Described]:
    by_name = {node.name: _Described(node) for node in nodes}
    for name in hash_set_order(by_name):
        described = by_name[name]
        for parent in () if isinstance(described.node, SourceNode) else described.node.parents:
            above = by_name[parent]
            described.before.add(above)
            above.after.add(described)
            above.grow(described.size)
    ordered: TreeSet[_Described] = TreeSet(_compare)
    for described in by_name.values():
        ordered.add(described)
    return ordered


def _node_text(described: _Described) -> str:
    node = described.node
    after = f"\n      --> {_names(described.after)}"
    before = f"\n      <-- {_names(described.before)}"
    if isinstance(node, SourceNode):
        topics = _java_set(node.topics) if node.pattern is None else node.pattern.pattern
        return f"Source: {node.name} (topics: {topics}){after}"
    if isinstance(node, ProcessorNode):
        return f"Processor: {node.name} (stores: {_java_set(node.stores)}){after}{before}"
    return f"Sink: {node.name} ({_sink_target(node)}){before}"


def _sink_target(node: SinkNode) -> str:
    if node.topic_chooser is None:
        return f"topic: {node.topic}"
    return f"extractor class: {getattr(node.topic_chooser.call, '__name__', 'topic chooser')}"


def _java_set(texts: Iterable[str]) -> str:
    return f"[{', '.join(copied_hash_set_order(texts))}]"


def _names(nodes: Iterable[_Described]) -> str:
    return ", ".join(described.node.name for described in nodes) or "none"
