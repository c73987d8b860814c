"""A topology as an application runs it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pystreams.state.spec import StoreSpec
from pystreams.topology.names import changelog_topic
from pystreams.topology.nodes import Node, ProcessorNode, SourceNode, source_of


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A topic that the application makes. ``partitions`` None: as many as what feeds it has."""

    name: str
    partitions: int | None
    kind: Literal["repartition"]


@dataclass(frozen=True, slots=True)
class SubTopology:
    """Nodes that run in one task per partition. Topic names carry the application id where they are internal."""

    id: int
    #: In the order in which they were added to the topology: parents before children.
    nodes: tuple[Node, ...]
    #: The nodes behind each node, in the order in which they get a record.
    children: Mapping[str, tuple[Node, ...]]
    #: By topic. Topics that a pattern finds are not here but resolved by ``source_for``.
    sources: Mapping[str, SourceNode]
    pattern_sources: tuple[tuple[re.Pattern[str], SourceNode], ...]
    #: In the order of registration, which is the order in which a commit flushes their caches.
    stores: tuple[StoreSpec, ...]
    #: Sorted. Without the topics that patterns find.
    source_topics: tuple[str, ...]
    #: The source topics that the application itself makes.
    repartition_source_topics: Mapping[str, InternalTopic]
    #: Sorted. Without the topics that are chosen by record.
    sink_topics: tuple[str, ...]
    #: The changelog topic of each store that has one.
    changelogs: Mapping[str, str]
    #: Names of sources whose records meet, so that their topics need equal numbers of partitions.
    copartitioned_sources: tuple[frozenset[str], ...]

    @property
    def source_changelogs(self) -> Mapping[str, str]:
        """The topic of each store that is restored from what the sub-topology reads."""
        return {spec.name: spec.source_topic for spec in self.stores if spec.source_topic is not None}

    @property
    def copartition_groups(self) -> tuple[frozenset[str], ...]:
        """``copartitioned_sources`` as topics, without those that patterns find."""
        topics = {node.name: node.topics for node in self.nodes if isinstance(node, SourceNode)}
        return tuple(
            frozenset(topic for name in names for topic in topics[name])
            for names in self.copartitioned_sources
        )

    def source_for(self, topic: str) -> SourceNode | None:
        """The node that reads ``topic``, by name or by pattern."""
        return source_of(self.nodes, topic)


@dataclass(frozen=True, slots=True)
class GlobalStore:
    """A store that every process keeps whole, with the topic that it is filled from and the two nodes that do that."""

    spec: StoreSpec
    topic: str
    source: SourceNode
    processor: ProcessorNode


@dataclass(frozen=True, slots=True)
class BuiltTopology:
    """All sub-topologies of an application; the index of each is its id.

    ``fingerprint`` is 64 hex digits; topology/fingerprint says what it covers.
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
        """The changelog topic of a store of that name."""
        return changelog_topic(self.application_id, store)

    @property
    def internal_topics(self) -> Mapping[str, InternalTopic]:
        """All repartition topics by name."""
        return {name: t for sub in self.subtopologies for name, t in sub.repartition_source_topics.items()}
