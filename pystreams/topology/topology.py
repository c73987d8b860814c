"""The graph of sources, processors, sinks and stores: what the language writes into, and a language of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from pystreams.config import offset_reset, reset_duration_ms
from pystreams.errors import TopologyError
from pystreams.functions import UserFunction
from pystreams.processor import Processor
from pystreams.serde import BYTES, serde_for
from pystreams.serde.base import AnySerde, Serde
from pystreams.serde.primitives import BytesSerde
from pystreams.state.spec import StoreSpec
from pystreams.topology.built import BuiltTopology
from pystreams.topology.deferred import DeferredSerde
from pystreams.topology.describe import describe
from pystreams.topology.groups import Groups
from pystreams.topology.nodes import Node, Operation, Process, ProcessorNode, SinkNode, SourceNode
from pystreams.topology.subtopology import Plan, build


class Topology:
    """Nodes in the order in which they were added, stores, and who uses which.

    Normally ``StreamsBuilder.build`` makes one; written by hand it is the low-level API::

        topology = Topology()
        topology.add_source("in", "lines", value=str)
        topology.add_processor("count", WordCounter, "in", stores=["counts"])
        topology.add_sink("out", "word-counts", "count", key=str, value=int)

    All methods raise ``TopologyError`` for a name that exists already, and for a parent or store that does not exist.
    Source: org.apache.kafka.streams.Topology, processor.internals.InternalTopologyBuilder.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._stores: dict[str, StoreSpec] = {}
        self._users: dict[str, list[str]] = {}
        #: The source that fills each global store.
        self._global_sources: dict[str, str] = {}
        self._global_stores: dict[str, StoreSpec] = {}
        self._internal_topics: dict[str, int | None] = {}
        self._copartitioned: list[frozenset[str]] = []
        self._groups = Groups()

    def __repr__(self) -> str:
        parts = (
            f"{len(self._nodes)} nodes, {len(self._stores)} stores, {len(self.node_groups())} sub-topologies"
        )
        return f"Topology({parts})"

    # What is in it

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Nodes by name, in the order in which they were added."""
        return self._nodes

    @property
    def stores(self) -> Mapping[str, StoreSpec]:
        return self._stores

    @property
    def global_stores(self) -> Mapping[str, StoreSpec]:
        """The stores that every process keeps whole."""
        return self._global_stores

    @property
    def internal_topics(self) -> Mapping[str, int | None]:
        """Topics that the application itself makes, without its id; with the number of partitions if that is fixed."""
        return self._internal_topics

    @property
    def copartitioned(self) -> Sequence[frozenset[str]]:
        """Groups of sources whose topics need equal partitioning, because their records meet."""
        return self._copartitioned

    def node_groups(self) -> list[list[Node]]:
        """The sub-topologies: nodes that are connected, or use the same store. The index is the id in ``describe``,
        which numbers global stores, too."""
        groups: dict[str, list[Node]] = {}
        for name, node in self._nodes.items():
            groups.setdefault(self._groups.root(name), []).append(node)
        return list(groups.values())

    def describe(self) -> str:
        """The text that Java's ``Topology.describe()`` gives, character for character."""
        return describe(self.node_groups(), frozenset(self._global_sources.values()))

    def build(
        self,
        application_id: str,
        *,
        default_key_serde: type | AnySerde | None = None,
        default_value_serde: type | AnySerde | None = None,
    ) -> BuiltTopology:
        """The topology as an application runs it: internal topics carry its id, and every serde is known.

        The defaults are for what was given no type. Without them (or with bytes, the default of the settings) sources
        read bytes, text stays text, and everything else is a ``TopologyError`` that names the step.
        """
        plan = Plan(
            self.node_groups(),
            self._stores,
            self._internal_topics,
            self._copartitioned,
            {source: self._global_stores[store] for store, source in self._global_sources.items()},
        )
        return build(plan, application_id, _default(default_key_serde), _default(default_value_serde))

    # The low-level API

    def add_source(
        self,
        name: str,
        topics: str | Iterable[str] | re.Pattern[str],
        *,
        key: type | AnySerde | None = None,
        value: type | AnySerde | None = None,
        timestamp_extractor: Any = None,
        auto_offset_reset: str | timedelta | None = None,
    ) -> Topology:
        """Read ``topics``: one, several, or all that a pattern matches. ``auto_offset_reset`` is "earliest", "latest",
        "none", "by_duration:PT1H" or a timedelta."""
        pattern = topics if isinstance(topics, re.Pattern) else None
        self.insert_source(
            SourceNode(
                name,
                () if isinstance(topics, re.Pattern) else topic_names(topics),
                pattern,
                _source_serde(key, "key", name),
                _source_serde(value, "value", name),
                timestamp_extractor,
                None if auto_offset_reset is None else checked_offset_reset(auto_offset_reset, name),
            )
        )
        return self

    def add_processor(
        self,
        name: str,
        supplier: Callable[[], Processor[Any, Any, Any, Any]],
        *parents: str,
        stores: Iterable[str | StoreSpec] = (),
    ) -> Topology:
        """Run a ``Processor``; ``supplier`` (its class, say) gives a new one for each task.

        ``stores`` are the names of stores that it may use, or stores that are added with it.
        """
        self.insert_processor(name, Process(supplier), parents)
        self.add_and_connect(name, stores)
        return self

    def add_sink(
        self,
        name: str,
        topic: str | Callable[..., str],
        *parents: str,
        key: type | AnySerde | None = None,
        value: type | AnySerde | None = None,
        partitioner: Any = None,
    ) -> Topology:
        """Write to ``topic``, or to the one that a function of the value, or of key and value, names."""
        self.insert_sink(
            SinkNode(
                name,
                parents,
                topic if isinstance(topic, str) else None,
                topic_chooser(topic, f"sink {name}"),
                DeferredSerde("its keys") if key is None else serde_for(key),
                DeferredSerde("its values") if value is None else serde_for(value),
                checked_partitioner(partitioner, name),
            )
        )
        return self

    def add_state_store(self, store: StoreSpec, *processors: str) -> Topology:
        """Add a store and let ``processors`` use it. Adding the very same store again only connects."""
        known = self._stores.get(store.name)
        if (known is not None and known is not store) or store.name in self._global_stores:
            raise TopologyError(
                f"a different store has already been added with the name {store.name}",
                hint="give one of them another name",
            )
        self._stores[store.name] = store
        self._users.setdefault(store.name, [])
        for processor in processors:
            self.connect_processor_and_state_stores(processor, store.name)
        return self

    def add_global_store(
        self,
        store: StoreSpec,
        source: str,
        topic: str,
        processor: str,
        supplier: Callable[[], Processor[Any, Any, Any, Any]],
        *,
        key: type | AnySerde | None = None,
        value: type | AnySerde | None = None,
    ) -> Topology:
        """Add a store that every process keeps whole, for all processors to read: ``supplier`` gives the processor,
        named ``processor``, that fills it from all partitions of ``topic``, which the source named ``source`` reads."""
        keys, values = _source_serde(key, "key", source), _source_serde(value, "value", source)
        self.insert_global_store(
            store, SourceNode(source, (topic,), None, keys, values), processor, Process(supplier)
        )
        return self

    def connect_processor_and_state_stores(self, processor: str, *stores: str) -> Topology:
        """Let ``processor`` use ``stores``. All users of a store are in one sub-topology."""
        for store in stores:
            if store in self._global_stores:
                raise TopologyError(
                    f"store {store} is a global one, which every processor may read without being connected to it",
                    where=f"stores of {processor}",
                    hint="leave it out of stores=",
                )
            if store not in self._stores:
                raise TopologyError(
                    f"store {store} has not been added",
                    where=f"stores of {processor}",
                    hint="add_state_store comes first",
                )
            node = self._nodes.get(processor)
            if node is None:
                raise TopologyError(
                    f"processor {processor} has not been added", where=f"users of store {store}"
                )
            if not isinstance(node, ProcessorNode):
                raise TopologyError(f"store {store} cannot be connected to {processor}, a source or sink")
            users = self._users[store]
            if users:
                self._groups.unite(users[0], processor)
            if store not in node.stores:
                users.append(processor)
                node.stores.append(store)
        return self

    # What the language uses besides

    def add_and_connect(self, processor: str, stores: Iterable[str | StoreSpec]) -> None:
        """Connect ``processor`` to stores by name, adding those that are given as specs."""
        for store in store_list(stores):
            if isinstance(store, StoreSpec):
                self.add_state_store(store, processor)
            else:
                self.connect_processor_and_state_stores(processor, store)

    def insert_source(self, node: SourceNode) -> None:
        """Add a source whose topics no other source reads."""
        self._check_name(node.name)
        if not node.topics and node.pattern is None:
            raise TopologyError(f"source {node.name} has no topics")
        for topic in node.topics:
            self._check_topic(topic)
        if node.pattern is not None:
            for topic in self._source_topics():
                if node.pattern.fullmatch(topic):
                    raise TopologyError(
                        f"pattern {node.pattern.pattern} matches topic {topic}, which another source reads"
                    )
        self._insert(node, ())

    def insert_global_store(
        self, store: StoreSpec, source: SourceNode, processor: str, operation: Operation
    ) -> None:
        """Add a global store with the source and the step that fill it."""
        if store.name in self._stores or store.name in self._global_stores:
            raise TopologyError(
                f"a different store has already been added with the name {store.name}",
                hint="give one of them another name",
            )
        self.insert_source(source)
        self.insert_processor(processor, operation, (source.name,))
        node = self._nodes[processor]
        assert isinstance(node, ProcessorNode)
        node.stores.append(store.name)
        self._global_stores[store.name] = store
        self._global_sources[store.name] = source.name

    def insert_processor(self, name: str, operation: Operation, parents: Sequence[str]) -> None:
        """Add a step behind ``parents``."""
        self._check_name(name)
        self._check_parents(name, parents)
        self._insert(ProcessorNode(name, tuple(parents), operation), parents)

    def insert_sink(self, node: SinkNode) -> None:
        """Add a sink behind its parents."""
        self._check_name(node.name)
        self._check_parents(node.name, node.parents)
        self._insert(node, node.parents)

    def add_internal_topic(self, topic: str, partitions: int | None) -> None:
        """Declare a topic that the application makes. ``partitions`` None: as many as what feeds it has."""
        self._internal_topics[topic] = partitions

    def copartition(self, sources: Iterable[str]) -> None:
        """Demand that the topics of these source nodes have equal numbers of partitions."""
        self._copartitioned.append(frozenset(sources))

    def check_copartitions(self) -> None:
        """Compare the numbers of partitions that are fixed by the program itself.

        Raises ``TopologyError`` where topics that meet have different ones. Source: validateCopartition.
        """
        for group in self._copartitioned:
            counts: dict[str, int | None] = {}
            for name in group:
                node = self._nodes.get(name)
                if isinstance(node, SourceNode):
                    counts |= {topic: self._internal_topics.get(topic) for topic in node.topics}
            if None not in counts.values() and len(set(counts.values())) > 1:
                spelled = ", ".join(f"{topic} ({count})" for topic, count in sorted(counts.items()))
                raise TopologyError(
                    f"topics that are joined have different numbers of partitions: {spelled}",
                    hint="give both repartition steps the same partitions=",
                )

    # Checks

    def _source_topics(self) -> Iterable[str]:
        for node in self._nodes.values():
            if isinstance(node, SourceNode):
                yield from node.topics

    def _check_name(self, name: str) -> None:
        if name in self._nodes:
            raise TopologyError(f"step {name} has already been added", hint="give one of them another name")

    def _check_topic(self, topic: str) -> None:
        for node in self._nodes.values():
            if not isinstance(node, SourceNode):
                continue
            if topic in node.topics:
                raise TopologyError(
                    f"topic {topic} is already read by source {node.name}",
                    hint="read it once, and use the stream or table twice",
                )
            if node.pattern is not None and node.pattern.fullmatch(topic):
                raise TopologyError(
                    f"topic {topic} matches the pattern {node.pattern.pattern} of source {node.name}"
                )

    def _check_parents(self, name: str, parents: Sequence[str]) -> None:
        if not parents:
            raise TopologyError(f"step {name} has no parents")
        for parent in parents:
            if parent not in self._nodes:
                raise TopologyError(f"parent {parent} of step {name} has not been added")
            if self._is_global(parent):
                raise TopologyError(
                    f"step {name} cannot follow {parent}, which fills a global store",
                    hint="read the topic as a stream of its own application, or join with the global table",
                )
            if isinstance(self._nodes[parent], SinkNode):
                raise TopologyError(f"sink {parent} cannot be the parent of step {name}")

    def _is_global(self, name: str) -> bool:
        roots = {self._groups.root(source) for source in self._global_sources.values()}
        return self._groups.root(name) in roots

    def _insert(self, node: Node, parents: Sequence[str]) -> None:
        self._nodes[node.name] = node
        self._groups.add(node.name)
        for parent in parents:
            self._groups.unite(node.name, parent)


def topic_names(topics: str | Iterable[str]) -> tuple[str, ...]:
    """One topic or several as a tuple."""
    if isinstance(topics, str):
        return (topics,)
    if not isinstance(topics, Iterable):
        raise TopologyError(
            f"{topics!r} names no topics", hint="give a name, several, or a pattern: re.compile(...)"
        )
    return tuple(topics)


def store_list(stores: str | StoreSpec | Iterable[str | StoreSpec]) -> tuple[str | StoreSpec, ...]:
    """One store or several as a tuple. A text is one name, though its letters could be names, too."""
    return (stores,) if isinstance(stores, str | StoreSpec) else tuple(stores)


def topic_chooser(topic: str | Callable[..., str], step: str) -> UserFunction | None:
    """The function that names a topic for each record, if ``topic`` is one and not a name."""
    if isinstance(topic, str):
        return None
    if not callable(topic):
        raise TopologyError(f"{step} takes the name of a topic, or a function that gives it, not {topic!r}")
    return UserFunction.of(topic, "value", step)


def checked_partitioner(partitioner: Any, step: str) -> Any:
    """``partitioner``: None, or a function of (topic, key, value, partitions). Raises ``TopologyError`` for others."""
    if partitioner is not None:
        UserFunction.of(partitioner, "partition", f"the partitioner of {step}")
    return partitioner


def checked_offset_reset(given: object, step: str) -> str:
    """Where a source begins without a committed offset, as text: equal durations have equal texts. Raises
    ``TopologyError`` for what is none of the strategies, and for a duration below zero."""
    try:
        strategy = offset_reset(given)
    except ValueError as error:
        raise TopologyError(
            f"auto_offset_reset={given!r} is unknown", where=step, hint=f"one of {error}"
        ) from None
    duration_ms = reset_duration_ms(strategy)
    return strategy if duration_ms is None else offset_reset(timedelta(milliseconds=duration_ms))


def _source_serde(given: type | Serde[Any] | None, part: str, name: str) -> AnySerde:
    return DeferredSerde(f"the {part}s of {name}", BYTES) if given is None else serde_for(given)


def _default(configured: type | AnySerde | None) -> AnySerde | None:
    """Bytes as a default say only that nobody chose one: a function that returns bytes is told by its type."""
    serde = None if configured is None else serde_for(configured)
    return None if isinstance(serde, BytesSerde) else serde
