"""The graph of the DSL: one node per call, written into a ``Topology`` at the end.

It is separate because an operator may become several nodes of the topology, because an operator's effect may depend on
later ones (a table is materialized only if another step needs it), and because optimizations rewrite this graph.
Source: org.apache.kafka.streams.kstream.internals.graph, InternalStreamsBuilder.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pystreams.errors import TopologyError
from pystreams.state.spec import StoreSpec
from pystreams.topology.fingerprint import same_setting
from pystreams.topology.nodes import Operation, SinkNode, SourceNode
from pystreams.topology.topology import Topology
from pystreams.user_code import CodeLine, caller, running_cell


@dataclass(eq=False)
class GraphNode:
    """A node. Nodes are written in the order of ``priority``, each after all its parents."""

    name: str
    parents: list[GraphNode] = field(default_factory=list, init=False)
    children: list[GraphNode] = field(default_factory=list, init=False)
    priority: int = field(default=-1, init=False)
    #: The line of the program that declared it.
    place: CodeLine | None = field(default=None, init=False)
    #: The node may change keys.
    changes_key: bool = field(default=False, kw_only=True)
    changes_value: bool = field(default=False, kw_only=True)
    merges: bool = field(default=False, kw_only=True)
    #: A join that has results for null keys, so that a repartition step before it must not drop them.
    keeps_null_keys: bool = field(default=False, kw_only=True)

    def add_child(self, child: GraphNode) -> None:
        if child not in self.children:
            self.children.append(child)
            child.parents.append(self)

    def remove_child(self, child: GraphNode) -> None:
        self.children.remove(child)
        child.parents.remove(self)

    def name_and_place(self) -> str:
        """The name, and the place of its declaration."""
        return self.name if self.place is None else f"{self.name} ({self.place})"

    def parent_names(self) -> tuple[str, ...]:
        return tuple(parent.name for parent in self.parents)

    def write(self, topology: Topology) -> None:
        """Add the nodes of this call to ``topology``. The root has none."""


@dataclass(eq=False)
class StreamSourceGraphNode(GraphNode):
    """Reads topics as a stream."""

    source: SourceNode

    def key(self) -> frozenset[str] | tuple[str, int]:
        """The topics or the pattern. Sources with equal keys are merged into one node."""
        pattern = self.source.pattern
        return frozenset(self.source.topics) if pattern is None else (pattern.pattern, pattern.flags)

    def write(self, topology: Topology) -> None:
        topology.insert_source(self.source)


@dataclass(eq=False)
class TableSourceGraphNode(GraphNode):
    """Reads a topic as a table: a source and a processor."""

    source: SourceNode
    operation: Operation
    store: StoreSpec
    #: The store has no changelog: it is restored from the topic, which must be compacted.
    reuses_topic: bool = False

    def write(self, topology: Topology) -> None:
        topology.insert_source(self.source)
        topology.insert_processor(self.name, self.operation, (self.source.name,))
        store = self.store
        if self.reuses_topic:
            store = replace(store, logged=False, source_topic=self.source.topics[0])
        add_materialized(topology, self.name, self.operation, store)


@dataclass(eq=False)
class ProcessorGraphNode(GraphNode):
    """A step. ``store`` is its own store, ``connected`` are names of stores of others."""

    operation: Operation
    store: StoreSpec | None = None
    connected: Sequence[str | StoreSpec] = ()

    def write(self, topology: Topology) -> None:
        topology.insert_processor(self.name, self.operation, self.parent_names())
        add_materialized(topology, self.name, self.operation, self.store)
        topology.add_and_connect(self.name, self.connected)


@dataclass(eq=False)
class JoinGraphNode(GraphNode):
    """A join of two tables or streams: a processor for each side, and one with the node's name that merges their
    results.

    ``sides`` has, for the left and then the right side: name, parent step, operation, and the stores that it reads in
    addition. Source: KTableKTableJoinNode, StreamStreamJoinNode.
    """

    sides: tuple[tuple[str, str, Operation, Sequence[str | StoreSpec]], ...]
    merge: Operation
    store: StoreSpec | None = None
    #: For a join of streams: the operation, with its store, that replaces all three if a stream is joined with itself.
    with_itself: tuple[Operation, StoreSpec] | None = None
    is_with_itself: bool = False

    def write(self, topology: Topology) -> None:
        if self.is_with_itself and self.with_itself is not None:
            operation, store = self.with_itself
            topology.insert_processor(self.name, operation, (self.sides[0][1],))
            topology.add_and_connect(self.name, [store])
            return
        for name, parent, operation, _ in self.sides:
            topology.insert_processor(name, operation, (parent,))
        topology.insert_processor(self.name, self.merge, tuple(side[0] for side in self.sides))
        add_materialized(topology, self.name, self.merge, self.store)
        for name, _, _, stores in self.sides:
            topology.add_and_connect(name, stores)


@dataclass(frozen=True, slots=True)
class NullKeyFilter:
    """The step before a repartition topic. It drops null keys unless a later join needs them."""

    name: str
    drop: Operation
    keep: Operation


@dataclass(eq=False)
class RepartitionGraphNode(GraphNode):
    """A repartition topic: sink and source; the node has the source's name.

    ``optimizable``: it may be merged with other repartition topics after the same change of key.
    """

    sink: SinkNode
    source: SourceNode
    partitions: int | None = None
    filter: NullKeyFilter | None = None
    optimizable: bool = False

    def write(self, topology: Topology) -> None:
        topology.add_internal_topic(self.source.topics[0], self.partitions)
        parents = self.parent_names()
        if self.filter is not None:
            wanted = any(node.keeps_null_keys for node in _below(self))
            operation = self.filter.keep if wanted else self.filter.drop
            topology.insert_processor(self.filter.name, operation, parents)
            parents = (self.filter.name,)
        topology.insert_sink(replace(self.sink, parents=parents))
        topology.insert_source(self.source)


@dataclass(eq=False)
class SinkGraphNode(GraphNode):
    """Writes a topic."""

    sink: SinkNode

    def write(self, topology: Topology) -> None:
        topology.insert_sink(replace(self.sink, parents=self.parent_names()))


@dataclass(eq=False)
class StoreGraphNode(GraphNode):
    """A store that the user added; steps connect to it by name."""

    store: StoreSpec

    def write(self, topology: Topology) -> None:
        topology.add_state_store(self.store)


#: Rewrites a graph, given as its nodes in the order in which they were added. Returns the names of removed nodes, each
#: with the name of its replacement.
Rewriting = Callable[[Sequence[GraphNode]], Mapping[str, str]]


@dataclass(eq=False)
class GlobalStoreGraphNode(GraphNode):
    """Fills a store of which every process keeps a full copy: a source and a processor."""

    source: SourceNode
    operation: Operation
    store: StoreSpec

    def write(self, topology: Topology) -> None:
        topology.insert_global_store(self.store, self.source, self.name, self.operation)


def add_materialized(topology: Topology, name: str, operation: Operation, store: StoreSpec | None) -> None:
    """Add the store of a step, if the step has one."""
    if store is not None and getattr(operation, "store", None) == store.name:
        topology.add_and_connect(name, [store])


def _below(node: GraphNode) -> Iterable[GraphNode]:
    """All nodes that records from ``node`` reach, also through topics."""
    seen: set[int] = set()
    pending = list(node.children)
    while pending:
        child = pending.pop()
        if id(child) not in seen:
            seen.add(id(child))
            yield child
            pending.extend(child.children)


class Graph:
    """All nodes, below an empty root."""

    def __init__(self) -> None:
        self.root = GraphNode("root")
        self._priority = 0
        #: In the order in which they were added.
        self._nodes: dict[GraphNode, None] = {}
        self._copartitioned: list[frozenset[str]] = []
        #: Names of removed nodes, each with the name of its replacement.
        self._merged: dict[str, str] = {}
        self._optimized = False
        #: The notebook cells that have added nodes: the number of the run, and the line.
        self._cells: dict[str, tuple[int, CodeLine | None]] = {}

    @property
    def size(self) -> int:
        """The number of nodes."""
        return sum(1 for _ in _below(self.root))

    def add(self, node: GraphNode, *parents: GraphNode) -> None:
        """Add a node below ``parents`` (none: below the root). A second call for a node adds another parent.

        Raises ``TopologyError`` in a notebook, if an earlier run of the current cell has added to the graph.
        """
        node.place = node.place or caller()
        self._check_cell(node.place)
        self._nodes[node] = None
        for parent in parents or (self.root,):
            self._in_force(parent).add_child(node)
            node.priority = self._priority
            self._priority += 1

    def _in_force(self, node: GraphNode) -> GraphNode:
        """``node``, or its replacement if an earlier rewriting of the graph removed it."""
        if node.name not in self._merged:
            return node
        by_name = {one.name: one for one in self._nodes}
        while node.name in self._merged:
            node = by_name[self._merged[node.name]]
        return node

    def _check_cell(self, place: CodeLine | None) -> None:
        cell = running_cell()
        if cell is None:
            return
        number, first = self._cells.setdefault(cell.identity, (cell.number, place))
        if number != cell.number:
            raise TopologyError(
                "an earlier run of this cell has added its steps to the same App",
                why=f"the steps were declared in {first or f'In [{number}]'}, and would now be there twice",
                hint="make the App in the same cell, or first run the cell that makes it again",
            )

    def copartition(self, sources: Iterable[str]) -> None:
        """Require that the topics of these source nodes have equal partition counts."""
        self._copartitioned.append(frozenset(sources))

    def write(self, rewritings: Collection[Rewriting] = ()) -> Topology:
        """A new topology with everything in the graph. The rewritings change the graph itself, at the first call.

        Raises ``TopologyError`` if two calls contradict each other: equal names, overlapping topics.
        """
        self._merge_sources()
        if rewritings and not self._optimized:
            self._optimized = True
            for rewrite in rewritings:
                self._merged.update(rewrite(tuple(self._nodes)))
        topology = Topology()
        for names in self._copartitioned:
            topology.copartition(self._merged.get(name, name) for name in names)
        written: set[int] = set()
        queue = [(self.root.priority, 0, self.root)]
        order = 0
        while queue:
            node = heapq.heappop(queue)[2]
            if id(node) in written or any(id(parent) not in written for parent in node.parents):
                continue
            with topology.declaring(node.place):
                node.write(topology)
            written.add(id(node))
            for child in node.children:
                order += 1
                heapq.heappush(queue, (child.priority, order, child))
        topology.check_copartitions()
        return topology

    def _merge_sources(self) -> None:
        """Merge streams that read the same topics into one source. Source: mergeDuplicateSourceNodes."""
        first: dict[frozenset[str] | tuple[str, int], StreamSourceGraphNode] = {}
        by_topic: dict[str, StreamSourceGraphNode] = {}
        for node in list(self.root.children):
            if not isinstance(node, StreamSourceGraphNode):
                continue
            key = node.key()
            for topic in node.source.topics:
                other = by_topic.setdefault(topic, node)
                if other.key() != key:
                    raise TopologyError(
                        f"topic {topic} is read by two streams whose topics overlap but are not equal",
                        where=f"{other.name_and_place()} and {node.name_and_place()}",
                        hint="read the common topics as one stream and the others as another, and merge the two",
                    )
            main = first.setdefault(key, node)
            if main is not node:
                _merge(main, node)
                self.root.remove_child(node)
                self._merged[node.name] = main.name


def _merge(main: StreamSourceGraphNode, other: StreamSourceGraphNode) -> None:
    if main.source.auto_offset_reset != other.source.auto_offset_reset:
        raise TopologyError(
            "two streams of the same topics have different auto_offset_reset",
            where=f"{main.name_and_place()} and {other.name_and_place()}",
        )
    for what in ("key_serde", "value_serde", "timestamp_extractor"):
        if not same_setting(getattr(main.source, what), getattr(other.source, what)):
            raise TopologyError(
                f"two streams of the same topics have different {what.replace('_serde', ' types')}",
                where=f"{main.name_and_place()} and {other.name_and_place()}",
                hint="read the topics once, and use the stream twice",
            )
    for child in list(other.children):
        other.remove_child(child)
        main.add_child(child)
