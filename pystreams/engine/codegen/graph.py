"""The graph of the nodes to compile: their children, and the kinds of edges between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pystreams.dsl.operators.base import ObjectOperation
from pystreams.dsl.operators.table import TableFilter, TableMapValues
from pystreams.dsl.operators.table_join import TableJoinMerge
from pystreams.dsl.operators.transform_values import TableTransformValues
from pystreams.errors import TopologyError
from pystreams.topology.nodes import Node, ProcessorNode, SourceNode, is_processor, source_of

#: The arguments of a function that takes records of a stream, and of one that takes changes of a table.
STREAM_EDGE = ("key", "value", "timestamp", "headers")
TABLE_EDGE = ("key", "new", "old", "timestamp", "headers", "is_latest")


class Graph:
    """Nodes by name, children in the order in which they were added, and the kind of each edge."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes: Mapping[str, Node] = {node.name: node for node in nodes}
        self._children: dict[str, list[Node]] = {node.name: [] for node in nodes}
        for node in nodes:
            for parent in parents(node):
                self._children[parent].append(node)

    def children(self, node: Node) -> Sequence[Node]:
        return self._children[node.name]

    def sources(self) -> list[SourceNode]:
        return [node for node in self.nodes.values() if isinstance(node, SourceNode)]

    def source_of(self, topic: str) -> SourceNode:
        """The source that reads a topic. Raises ``TopologyError`` if none does."""
        source = source_of(self.nodes.values(), topic)
        if source is None:
            raise TopologyError(
                f"no source reads topic {topic}", hint="the task was given a partition that is not its own"
            )
        return source

    def edge_out(self, node: Node) -> tuple[str, ...]:
        """The kind of data that this node passes to its children."""
        return TABLE_EDGE if isinstance(node, ProcessorNode) and node.operation.emits_changes else STREAM_EDGE

    def edge_into(self, node: Node) -> tuple[str, ...]:
        """The kind of data that this node gets. Raises ``TopologyError`` if its parents disagree."""
        edges = {self.edge_out(self.nodes[parent]) for parent in parents(node)}
        if len(edges) != 1:
            raise TopologyError(
                f"{node.name} has a stream and a table as parents", where=", ".join(parents(node))
            )
        return edges.pop()

    def reaches_processor(self, node: Node) -> bool:
        """True if a user's processor may run while a record of ``node`` is processed, or a transformer, which may be
        called wherever its table is read."""
        if any(isinstance(getattr(n, "operation", None), TableTransformValues) for n in self.nodes.values()):
            return True
        seen: set[str] = set()
        todo = [*self.children(node)]
        while todo:
            child = todo.pop()
            if isinstance(child, ProcessorNode) and is_processor(child):
                return True
            if child.name not in seen:
                seen.add(child.name)
                todo += self.children(child)
        return False


def parents(node: Node) -> tuple[str, ...]:
    return () if isinstance(node, SourceNode) else node.parents


def is_object(node: ProcessorNode) -> bool:
    """Whether an object runs the node: an operator, or a processor of the user's."""
    return is_processor(node) or is_operator(node)


def is_operator(node: ProcessorNode) -> bool:
    """Whether the step is an operator. Table steps that can have a store are inlined when they have none."""
    operation = node.operation
    if isinstance(operation, TableFilter | TableMapValues | TableJoinMerge) and operation.store is None:
        return False
    return isinstance(operation, ObjectOperation)
