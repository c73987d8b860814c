"""The nodes and stores of a topology, their connections, and the checks when one is added."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pystreams.errors import TopologyError, declared_at
from pystreams.state.spec import StoreSpec
from pystreams.topology.groups import Groups
from pystreams.topology.names import REPARTITION_SUFFIX
from pystreams.topology.nodes import Node, Operation, ProcessorNode, SinkNode, SourceNode
from pystreams.user_code import CodeLine, caller


class Wiring:
    """Base class of ``Topology``."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._stores: dict[str, StoreSpec] = {}
        self._users: dict[str, list[str]] = {}
        #: By step: the stores that were added together with it.
        self._own_stores: dict[str, list[str]] = {}
        #: The steps that fill read-only stores.
        self._fillers: set[str] = set()
        self._is_wrapped = False
        #: By global store: the source that fills it.
        self._global_sources: dict[str, str] = {}
        self._global_stores: dict[str, StoreSpec] = {}
        self._internal_topics: dict[str, int | None] = {}
        self._copartitioned: list[frozenset[str]] = []
        self._groups = Groups()
        #: The lines of the program that declared nodes, and the lines that declared stores.
        self._places: dict[str, CodeLine | None] = {}
        self._store_places: dict[str, CodeLine | None] = {}
        #: The line of the current declaration, if it is not the line that is running.
        self._place: CodeLine | None = None

    @contextmanager
    def declaring(self, place: CodeLine | None) -> Iterator[None]:
        """Nodes and stores that are added inside were declared at ``place``. Errors name this place, too."""
        self._place = place
        try:
            with declared_at(place):
                yield
        finally:
            self._place = None

    # Contents

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Nodes by name, in the order in which they were added."""
        return self._nodes

    @property
    def stores(self) -> Mapping[str, StoreSpec]:
        return self._stores

    @property
    def global_stores(self) -> Mapping[str, StoreSpec]:
        """The stores of which every process keeps a full copy."""
        return self._global_stores

    @property
    def internal_topics(self) -> Mapping[str, int | None]:
        """The topics that the application creates, without its id, with their partition counts if the program fixes
        them."""
        return self._internal_topics

    @property
    def copartitioned(self) -> Sequence[frozenset[str]]:
        """Groups of sources whose topics must be co-partitioned, because their records are joined."""
        return self._copartitioned

    def node_groups(self) -> list[list[Node]]:
        """The sub-topologies: groups of nodes that are connected or share a store. The index is the id in ``describe``,
        which numbers global stores, too."""
        groups: dict[str, list[Node]] = {}
        for name, node in self._nodes.items():
            groups.setdefault(self._groups.root(name), []).append(node)
        return list(groups.values())

    # Additions by the DSL

    def insert_source(self, node: SourceNode) -> None:
        """Add a source. Its topics must not be read by another source."""
        self._check_name(node.name)
        if not node.topics and node.pattern is None:
            raise TopologyError(f"source {node.name} has no topics")
        for n, topic in enumerate(node.topics):
            self._check_topic(topic)
            if topic in node.topics[:n]:
                raise TopologyError(f"source {node.name} names topic {topic} twice")
        if node.pattern is not None:
            for topic in self._source_topics():
                if node.pattern.fullmatch(topic):
                    raise TopologyError(
                        f"pattern {node.pattern.pattern} matches topic {topic}, which another source reads",
                        hint="change the pattern so that it does not match the topic, or leave out the topic's source",
                    )
        self._insert(node, ())

    def insert_global_store(
        self, store: StoreSpec, source: SourceNode, processor: str, operation: Operation
    ) -> None:
        """Add a global store with the source and the step that fill it."""
        if store.name in self._stores or store.name in self._global_stores:
            raise self._store_twice(store)
        self.insert_source(source)
        self.insert_processor(processor, operation, (source.name,))
        node = self._nodes[processor]
        assert isinstance(node, ProcessorNode)
        node.stores.append(store.name)
        self._global_stores[store.name] = store
        self._store_places[store.name] = self._at_work()
        self._global_sources[store.name] = source.name

    def insert_processor(self, name: str, operation: Operation, parents: Sequence[str]) -> None:
        """Add a step below ``parents``."""
        self._check_name(name)
        self._check_parents(name, parents)
        self._insert(ProcessorNode(name, tuple(parents), operation), parents)

    def insert_sink(self, node: SinkNode) -> None:
        """Add a sink below its parents."""
        self._check_name(node.name)
        self._check_parents(node.name, node.parents)
        self._insert(node, node.parents)

    def add_internal_topic(self, topic: str, partitions: int | None) -> None:
        """Declare a topic that the application creates. ``partitions`` None: as many as the topics have that feed
        it."""
        self._internal_topics[topic] = partitions

    def copartition(self, sources: Iterable[str]) -> None:
        """Require that the topics of these source nodes have equal partition counts."""
        self._copartitioned.append(frozenset(sources))

    def check_copartitions(self) -> None:
        """Compare the partition counts that the program itself fixes.

        Raises ``TopologyError`` if those of co-partitioned topics differ. Source: validateCopartition.
        """
        for group in self._copartitioned:
            counts: dict[str, int | None] = {}
            for name in group:
                node = self._nodes.get(name)
                if isinstance(node, SourceNode):
                    counts |= {topic: self._internal_topics.get(topic) for topic in node.topics}
            if None not in counts.values() and len(set(counts.values())) > 1:
                spelled = ", ".join(f"{topic} ({count})" for topic, count in sorted(counts.items()))
                places = sorted({str(place) for name in group if (place := self._places.get(name))})
                raise TopologyError(
                    f"topics that are joined have different numbers of partitions: {spelled}",
                    where=" and ".join(places),
                    hint="give both repartition steps the same partitions=",
                )

    def change_stores(self, change: Callable[[StoreSpec], StoreSpec]) -> None:
        """Replace each store by the result of ``change``."""
        for stores in (self._stores, self._global_stores):
            stores.update({name: change(spec) for name, spec in stores.items()})

    # Checks

    def _source_topics(self) -> Iterable[str]:
        for node in self._nodes.values():
            if isinstance(node, SourceNode):
                yield from node.topics

    def _check_name(self, name: str) -> None:
        given: object = name
        if not isinstance(given, str) or not given:
            raise TopologyError(f"a step cannot be called {name!r}", hint="give it a text as its name")
        if name in self._nodes:
            of_topic = f"{REPARTITION_SUFFIX}-" in name
            raise TopologyError(
                f"step {name} has already been added",
                why=("two repartition topics would have the same name; " if of_topic else "")
                + _earlier(self._places[name]),
                hint="give them different names: group_by(..., repartition=...)"
                if of_topic
                else "give one of them another name",
            )

    def _check_topic(self, topic: str) -> None:
        for node in self._nodes.values():
            if not isinstance(node, SourceNode):
                continue
            if topic in node.topics:
                raise TopologyError(
                    f"topic {topic} is already read by source {node.name}",
                    why=_earlier(self._places[node.name]),
                    hint="read it once, and use the stream or table twice",
                )
            if node.pattern is not None and node.pattern.fullmatch(topic):
                raise TopologyError(
                    f"topic {topic} matches the pattern {node.pattern.pattern} of source {node.name}",
                    why=_earlier(self._places[node.name]),
                )

    def _check_parents(self, name: str, parents: Sequence[str]) -> None:
        if not parents:
            raise TopologyError(f"step {name} has no parents")
        for parent in parents:
            if not isinstance(parent, str):
                raise TopologyError(
                    f"step {name} got {parent!r} for a parent",
                    hint="name the parents one by one, after the other arguments: ..., 'first', 'second'",
                )
            if parent not in self._nodes:
                raise TopologyError(f"parent {parent} of step {name} has not been added")
            if self._is_global(parent):
                raise TopologyError(
                    f"step {name} cannot follow {parent}, which fills a global store",
                    hint="read the topic as a stream in another application, or join with the global table",
                )
            if isinstance(self._nodes[parent], SinkNode):
                raise TopologyError(f"sink {parent} cannot be the parent of step {name}")

    def _is_global(self, name: str) -> bool:
        roots = {self._groups.root(source) for source in self._global_sources.values()}
        return self._groups.root(name) in roots

    def _insert(self, node: Node, parents: Sequence[str]) -> None:
        self._nodes[node.name] = node
        self._places[node.name] = self._at_work()
        self._groups.add(node.name)
        for parent in parents:
            self._groups.unite(node.name, parent)

    def _store_twice(self, store: StoreSpec) -> TopologyError:
        return TopologyError(
            f"a different store has already been added with the name {store.name}",
            why=_earlier(self._store_places.get(store.name)),
            hint="give one of them another name",
        )

    def _at_work(self) -> CodeLine | None:
        return self._place or caller()


def _earlier(place: CodeLine | None) -> str:
    return f"that one was declared in {place or 'another place'}"
