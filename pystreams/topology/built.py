"""A topology in the form that an application runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pystreams.state.spec import StoreSpec
from pystreams.topology.names import changelog_topic
from pystreams.topology.nodes import Node, ProcessorNode, SinkNode, SourceNode, source_of


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A topic that the application creates. ``partitions`` None: as many as the topics have that feed it."""

    name: str
    partitions: int | None
    kind: Literal["repartition"]


@dataclass(frozen=True, slots=True)
class SubTopology:
    """Nodes that run in one task per partition. Names of internal topics carry the application id."""

    id: int
    #: In the order in which they were added to the topology: parents before children.
    nodes: tuple[Node, ...]
    #: The child nodes of each node, in the order in which they receive a record.
    children: Mapping[str, tuple[Node, ...]]
    #: By topic, without topics that match a pattern: ``source_for`` finds their nodes.
    sources: Mapping[str, SourceNode]
    pattern_sources: tuple[tuple[re.Pattern[str], SourceNode], ...]
    #: In the order of registration: a commit flushes their caches in this order.
    stores: tuple[StoreSpec, ...]
    #: Sorted, without topics that match a pattern.
    source_topics: tuple[str, ...]
    #: The source topics that the application itself creates.
    repartition_source_topics: Mapping[str, InternalTopic]
    #: Sorted, without topics that are chosen for each record.
    sink_topics: tuple[str, ...]
    #: The changelog topic of each store that has one.
    changelogs: Mapping[str, str]
    #: Names of sources that must be co-partitioned, because their records are joined.
    copartitioned_sources: tuple[frozenset[str], ...]

    @property
    def source_changelogs(self) -> Mapping[str, str]:
        """By store name: the source topic from which the store is restored, for stores that have no changelog of
        their own."""
        return {spec.name: spec.source_topic for spec in self.stores if spec.source_topic is not None}

    @property
    def copartition_groups(self) -> tuple[frozenset[str], ...]:
        """``copartitioned_sources`` as topics, without those that match a pattern."""
        topics = {node.name: node.topics for node in self.nodes if isinstance(node, SourceNode)}
        return tuple(
            frozenset(topic for name in names for topic in topics[name])
            for names in self.copartitioned_sources
        )

    def steps_after(self, node: Node) -> list[ProcessorNode | SinkNode]:
        """All nodes that records of ``node`` can reach, in no certain order."""
        found: dict[str, ProcessorNode | SinkNode] = {}
        todo: list[Node] = list(self.children.get(node.name, ()))
        while todo:
            child = todo.pop()
            if not isinstance(child, SourceNode) and child.name not in found:
                found[child.name] = child
                todo += self.children.get(child.name, ())
        return list(found.values())

    def source_for(self, topic: str) -> SourceNode | None:
        """The node that reads ``topic``, by name or by pattern; None if no node does."""
        return source_of(self.nodes, topic)


@dataclass(frozen=True, slots=True)
class GlobalStore:
    """A store of which every process keeps a full copy, with the topic that fills it and the two nodes that do so."""

    spec: StoreSpec
    topic: str
    source: SourceNode
    processor: ProcessorNode


@dataclass(frozen=True, slots=True)
class BuiltTopology:
    """All sub-topologies of an application; the index of each is its id.

    ``fingerprint`` is 64 hex digits; topology/fingerprint describes its inputs.
    """

    application_id: str
    subtopologies: tuple[SubTopology, ...]
    fingerprint: str
    global_stores: tuple[GlobalStore, ...] = ()

    @property
    def global_topics(self) -> frozenset[str]:
        return frozenset(store.topic for store in self.global_stores)

    @property
    def stores(self) -> tuple[StoreSpec, ...]:
        return tuple(spec for sub in self.subtopologies for spec in sub.stores)

    def changelog(self, store: str) -> str:
        """The changelog topic of the store with this name."""
        return changelog_topic(self.application_id, store)

    @property
    def internal_topics(self) -> Mapping[str, InternalTopic]:
        """All repartition topics by name."""
        return {name: t for sub in self.subtopologies for name, t in sub.repartition_source_topics.items()}
