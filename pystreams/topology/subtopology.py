"""Makes sub-topologies of the graph, with an application's topic names and serdes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pystreams.errors import TopologyError, declared_at
from pystreams.serde.base import AnySerde
from pystreams.state.spec import StoreSpec
from pystreams.topology.built import BuiltTopology, GlobalStore, InternalTopic, SubTopology
from pystreams.topology.deferred import DeferredSerde, Origin, resolved
from pystreams.topology.fingerprint import fingerprint
from pystreams.topology.java_collections import hash_set_order
from pystreams.topology.missing_types import MissingType, MissingTypes
from pystreams.topology.names import changelog_topic
from pystreams.topology.nodes import Node, ProcessorNode, SinkNode, SourceNode
from pystreams.user_code import CodeLine

N = TypeVar("N", SourceNode, SinkNode)


@dataclass(frozen=True, slots=True)
class TopologyParts:
    """The contents of a ``Topology``: its nodes by sub-topology, its stores, the internal topics (without application
    id) and the sources whose topics must be co-partitioned."""

    groups: Sequence[Sequence[Node]]
    stores: Mapping[str, StoreSpec]
    internal_topics: Mapping[str, int | None]
    copartitioned: Sequence[frozenset[str]]
    #: By source: the global store that it fills.
    global_stores: Mapping[str, StoreSpec]
    #: The lines of the program that declared the nodes.
    places: Mapping[str, CodeLine | None]


@dataclass(frozen=True, slots=True)
class Serdes:
    """The default serdes, and the settings for all serdes."""

    default_key: AnySerde | None
    default_value: AnySerde | None
    settings: Mapping[str, str]

    def known(self, serde: AnySerde, argument: str, missing: Callable[[Origin], None]) -> AnySerde:
        """The final serde. ``missing`` is called if it is not known."""
        found = resolved(serde, self.default_key if argument == "key" else self.default_value, missing)
        return found.configured(self.settings) if self.settings else found


def build(parts: TopologyParts, application_id: str, serdes: Serdes) -> BuiltTopology:
    """Add the application id to internal topics, resolve serdes, and order everything as Java does.

    Raises ``TopologyError`` with all types that are missing.
    """
    builder = _Builder(parts, application_id, serdes)
    of_tasks = [nodes for nodes in parts.groups if nodes[0].name not in parts.global_stores]
    subtopologies = tuple(builder.subtopology(i, nodes) for i, nodes in enumerate(of_tasks))
    global_stores = tuple(
        builder.global_store(nodes) for nodes in parts.groups if nodes[0].name in parts.global_stores
    )
    builder.missing.check()
    _check_former_names([spec for sub in subtopologies for spec in sub.stores])
    digest = fingerprint(subtopologies, global_stores)
    return BuiltTopology(application_id, subtopologies, digest, global_stores)


def _check_former_names(stores: Sequence[StoreSpec]) -> None:
    """Raise ``TopologyError`` if ``was=`` names a store that exists, or that another store claims, too."""
    names, taken = {spec.name for spec in stores}, dict[str, str]()
    for spec in stores:
        if spec.was is None:
            continue
        if spec.was in names:
            raise TopologyError(
                f"store {spec.name} cannot have been {spec.was}: the application still has a store {spec.was}",
                hint=f"leave out was={spec.was!r}, or rename the other store",
            )
        if spec.was in taken:
            raise TopologyError(f"stores {taken[spec.was]} and {spec.name} cannot both have been {spec.was}")
        taken[spec.was] = spec.name


class _Builder:
    def __init__(self, parts: TopologyParts, application_id: str, serdes: Serdes) -> None:
        self._parts = parts
        self._application_id = application_id
        self._serdes = serdes
        self.missing = MissingTypes()

    def subtopology(self, id: int, group: Sequence[Node]) -> SubTopology:
        nodes = tuple(self._node(node) for node in group)
        sources = [node for node in nodes if isinstance(node, SourceNode)]
        stores = self._stores(nodes)
        by_topic = {topic: node for node in sources for topic in node.topics}
        internal = self._internal_topics()
        sinks = {node.topic for node in nodes if isinstance(node, SinkNode) and node.topic is not None}
        return SubTopology(
            id,
            nodes,
            _children(nodes),
            by_topic,
            tuple((node.pattern, node) for node in sources if node.pattern is not None),
            stores,
            tuple(sorted(by_topic)),
            {topic: internal[topic] for topic in sorted(by_topic) if topic in internal},
            tuple(sorted(sinks)),
            {spec.name: changelog_topic(self._application_id, spec.name) for spec in stores if spec.logged},
            self._copartitioned(sources),
        )

    def global_store(self, group: Sequence[Node]) -> GlobalStore:
        source, processor = (self._node(node) for node in group)
        assert isinstance(source, SourceNode)
        assert isinstance(processor, ProcessorNode)
        spec = self._store(self._parts.global_stores[source.name], self._parts.places[source.name])
        return GlobalStore(spec, source.topics[0], source, processor)

    def _node(self, node: Node) -> Node:
        with declared_at(self._parts.places[node.name]):
            return self._resolved(node)

    def _resolved(self, node: Node) -> Node:
        if isinstance(node, SourceNode):
            return replace(
                self._with_serdes(node), topics=tuple(self._decorate(topic) for topic in node.topics)
            )
        if isinstance(node, SinkNode):
            topic = None if node.topic is None else self._decorate(node.topic)
            return replace(self._with_serdes(node), topic=topic)

        def resolve(serde: AnySerde, argument: str) -> AnySerde:
            return self._known(serde, argument, node.name, self._parts.places[node.name])

        return replace(
            node, stores=hash_set_order(node.stores), operation=node.operation.with_serdes(resolve)
        )

    def _with_serdes(self, node: N) -> N:
        place = self._parts.places[node.name]
        key = self._known(node.key_serde, "key", node.name, place)
        value = self._known(node.value_serde, "value", node.name, place)
        return replace(node, key_serde=key, value_serde=value)

    def _known(
        self, serde: AnySerde | None, argument: str, needed_by: str, needed_at: CodeLine | None
    ) -> AnySerde:
        """The final serde; if its type is missing, that is noted."""
        if serde is None:
            serde = DeferredSerde(Origin(f"its {argument}s", call=None))

        def missing(origin: Origin) -> None:
            self.missing.add(MissingType(origin, argument, needed_by, needed_at))

        return self._serdes.known(serde, argument, missing)

    def _stores(self, nodes: Sequence[Node]) -> tuple[StoreSpec, ...]:
        stores: dict[str, StoreSpec] = {}
        for node in nodes:
            place = self._parts.places[node.name]
            with declared_at(place):
                for name in node.stores if isinstance(node, ProcessorNode) else ():
                    if name not in stores:
                        stores[name] = self._store(self._parts.stores[name], place)
        return tuple(stores.values())

    def _store(self, spec: StoreSpec, place: CodeLine | None) -> StoreSpec:
        needed_by = f"store {spec.name}"
        key = self._known(spec.key_serde, "key", needed_by, place)
        value = self._known(spec.value_serde, "value", needed_by, place)
        return replace(spec, key_serde=key, value_serde=value)

    def _decorate(self, topic: str) -> str:
        return f"{self._application_id}-{topic}" if topic in self._parts.internal_topics else topic

    def _internal_topics(self) -> dict[str, InternalTopic]:
        return {
            self._decorate(topic): InternalTopic(self._decorate(topic), partitions, "repartition")
            for topic, partitions in self._parts.internal_topics.items()
        }

    def _copartitioned(self, sources: Sequence[SourceNode]) -> tuple[frozenset[str], ...]:
        """The groups with any of these sources; overlapping groups are united."""
        names = {node.name for node in sources}
        groups: list[frozenset[str]] = []
        for group in self._parts.copartitioned:
            if group <= names:
                overlapping = [g for g in groups if g & group]
                groups = [g for g in groups if not g & group]
                groups.append(group.union(*overlapping))
        return tuple(groups)


def _children(nodes: Sequence[Node]) -> dict[str, tuple[Node, ...]]:
    children: dict[str, list[Node]] = {node.name: [] for node in nodes}
    for node in nodes:
        for parent in () if isinstance(node, SourceNode) else node.parents:
            children[parent].append(node)
    return {name: tuple(below) for name, below in children.items()}
