"""The graph of sources, processors, sinks and stores: the target of the DSL, and the low-level API."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Self

from pystreams.config import StreamsConfig
from pystreams.errors import TopologyError
from pystreams.processor import Partitioner, Processor
from pystreams.serde.base import AnySerde
from pystreams.state.spec import StoreSpec
from pystreams.timestamps import Extractor, GlobalRecordTimestamp
from pystreams.topology.arguments import (
    check_supplier,
    checked_offset_reset,
    checked_partitioner,
    checked_store,
    default_serde,
    extractor,
    sink_serde,
    source_serde,
    store_list,
    topic_chooser,
    topic_names,
)
from pystreams.topology.built import BuiltTopology
from pystreams.topology.describe import describe
from pystreams.topology.nodes import Process, ProcessorNode, SinkNode, SourceNode
from pystreams.topology.subtopology import Serdes, TopologyParts, build
from pystreams.topology.wiring import Wiring
from pystreams.topology.wrapping import WrapperSetting, provided_stores, wrapped_supplier
from pystreams.topology.wrapping import processor_wrapper as wrapper_of


class Topology(Wiring):
    """Nodes in the order in which they were added, stores, and the connections between them.

    ``StreamsBuilder.build`` makes one. It can also be written by hand, with the low-level API::

        topology = Topology()
        topology.add_source("in", "lines", value=str)
        topology.add_processor("count", WordCounter, "in", stores=["counts"])
        topology.add_sink("out", "word-counts", "count", key=str, value=int)

    All methods raise ``TopologyError`` for a name that is taken, and for a parent or store that does not exist.
    Source: org.apache.kafka.streams.Topology, processor.internals.InternalTopologyBuilder.
    """

    def __repr__(self) -> str:
        parts = (
            f"{len(self._nodes)} nodes, {len(self._stores)} stores, {len(self.node_groups())} sub-topologies"
        )
        return f"Topology({parts})"

    def _repr_svg_(self) -> str:
        """The picture that a notebook shows."""
        return self.picture()

    def picture(self) -> str:
        """An SVG of the sub-topologies, with their steps and stores, and the topics between them."""
        from pystreams.topology.picture import picture

        fills = frozenset(self._global_sources.values())
        groups = self.node_groups()
        return picture(
            repr(self),
            [nodes for nodes in groups if nodes[0].name not in fills],
            [nodes for nodes in groups if nodes[0].name in fills],
        )

    def describe(self) -> str:
        """The same text as Java's ``Topology.describe()``, character for character."""
        return describe(self.node_groups(), frozenset(self._global_sources.values()))

    def build(
        self,
        application_id: str,
        *,
        default_key_serde: type | AnySerde | None = None,
        default_value_serde: type | AnySerde | None = None,
        serde_settings: Mapping[str, str] | None = None,
    ) -> BuiltTopology:
        """The topology in the form that an application runs: internal topics carry its id, and every serde is known.

        The defaults apply to sources, stores and sinks without a type. Without defaults (or with bytes, the default
        of the settings) sources read bytes, text stays text, and all other unknown types are one ``TopologyError``
        that names the calls which leave them open. ``serde_settings`` are passed to all serdes.
        """
        parts = TopologyParts(
            self.node_groups(),
            self._stores,
            self._internal_topics,
            self._copartitioned,
            {source: self._global_stores[store] for store, source in self._global_sources.items()},
            self._places,
        )
        serdes = Serdes(
            default_serde(default_key_serde), default_serde(default_value_serde), serde_settings or {}
        )
        return build(parts, application_id, serdes)

    def configured(self, config: StreamsConfig) -> Topology:
        """A copy whose DSL stores follow ``default_dsl_store`` and ``dsl_store_format``, and which is ``wrapped`` by
        ``processor_wrapper``."""
        changes: list[Callable[[StoreSpec], StoreSpec]] = []
        if config.default_dsl_store == "in_memory":
            changes.append(StoreSpec.in_memory_by_default)
        if config.dsl_store_format == "HEADERS":
            changes.append(StoreSpec.in_headers_format)
        topology = self._copy() if changes else self
        for change in changes:
            topology.change_stores(change)
        return topology.wrapped(config.processor_wrapper)

    def wrapped(self, processor_wrapper: WrapperSetting | None) -> Topology:
        """A copy with every step wrapped: by a ``ProcessorWrapper`` (or its class) or a function of (name, supplier).
        None wraps nothing, and a topology that is wrapped already stays unchanged: an application with the setting
        ``processor_wrapper`` is wrapped by it before it runs.

        Raises ``ConfigError`` for an invalid wrapper, ``TopologyError`` if the wrapper returns an invalid supplier.
        """
        if processor_wrapper is None or self._is_wrapped:
            return self
        wrapper = wrapper_of(processor_wrapper)
        copy = self._copy()
        copy._is_wrapped = True
        for name, node in self._nodes.items():
            if isinstance(node, ProcessorNode) and name not in self._unwrapped():
                own = [copy._stores[store] for store in self._own_stores.get(name, ())]
                supplier = wrapped_supplier(wrapper, node, own)
                copy._nodes[name] = replace(node, supplier=supplier, stores=list(node.stores))
                for store in provided_stores(supplier):
                    if store.name in self._own_stores.get(name, ()):
                        copy._stores[store.name] = store
                    else:
                        copy.add_state_store(store, name)
        return copy

    def _unwrapped(self) -> set[str]:
        """The steps that fill global and read-only stores. Java does not wrap them."""
        of_global = {n for n in self._nodes if self._is_global(n)} if self._global_sources else set()
        return of_global | self._fillers

    def _copy(self) -> Self:
        copy = type(self)()
        for name, value in vars(self).items():
            setattr(copy, name, dict(value) if isinstance(value, dict) else value)
        copy._users = {store: list(users) for store, users in self._users.items()}
        copy._groups = self._groups.copy()
        return copy

    # The low-level API

    def add_source(
        self,
        name: str,
        topics: str | Iterable[str] | re.Pattern[str],
        *,
        key: type | AnySerde | None = None,
        value: type | AnySerde | None = None,
        timestamp_extractor: Extractor | None = None,
        auto_offset_reset: str | timedelta | None = None,
    ) -> Topology:
        """Read ``topics``: one, several, or all that match a pattern.

        ``timestamp_extractor`` is a name of ``pystreams.timestamps`` or a function, ``auto_offset_reset`` "earliest",
        "latest", "none", "by_duration:PT1H" or a timedelta.
        """
        pattern = topics if isinstance(topics, re.Pattern) else None
        self.insert_source(
            SourceNode(
                name,
                () if isinstance(topics, re.Pattern) else topic_names(topics),
                pattern,
                source_serde(key, "key", name),
                source_serde(value, "value", name),
                extractor(timestamp_extractor),
                None if auto_offset_reset is None else checked_offset_reset(auto_offset_reset, name),
            )
        )
        return self

    def add_processor(
        self,
        name: str,
        supplier: Callable[[], Processor[Any, Any, Any, Any]],
        *parents: str,
        stores: str | StoreSpec | Iterable[str | StoreSpec] = (),
    ) -> Topology:
        """Run a ``Processor``; ``supplier`` (its class, for example) makes one for each task.

        ``stores`` are names of stores that it may use, or stores to add and connect. If ``supplier`` has a method
        ``stores``, the stores that it returns are added, too.
        """
        check_supplier(name, supplier)
        self.insert_processor(name, Process(supplier), parents)
        self.add_and_connect(name, (*provided_stores(supplier), *store_list(stores)))
        return self

    def add_sink(
        self,
        name: str,
        topic: str | Callable[..., str],
        *parents: str,
        key: type | AnySerde | None = None,
        value: type | AnySerde | None = None,
        partitioner: Partitioner[Any, Any] | None = None,
    ) -> Topology:
        """Write to ``topic``. A function of the value, of key and value, or of key, value and ``RecordContext``
        chooses a topic for each record."""
        self.insert_sink(
            SinkNode(
                name,
                parents,
                topic if isinstance(topic, str) else None,
                topic_chooser(topic, f"sink {name}"),
                sink_serde(key, "key", name),
                sink_serde(value, "value", name),
                checked_partitioner(partitioner, name),
            )
        )
        return self

    def add_state_store(self, store: StoreSpec, *processors: str) -> Topology:
        """Add a store and let ``processors`` use it. A second call with the same store only connects it."""
        known = self._stores.get(checked_store(store).name)
        if (known is not None and known is not store) or store.name in self._global_stores:
            raise self._store_twice(store)
        self._stores[store.name] = store
        self._store_places.setdefault(store.name, self._at_work())
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
        """Add a global store: every process keeps a full copy, and all processors may read it. ``supplier`` makes the
        processor, named ``processor``, that fills it from all partitions of ``topic``, which the source named
        ``source`` reads.

        Records keep their own timestamps: extractors are not called.
        """
        check_supplier(processor, supplier)
        keys, values = source_serde(key, "key", source), source_serde(value, "value", source)
        node = SourceNode(source, (topic,), None, keys, values, GlobalRecordTimestamp())
        self.insert_global_store(store, node, processor, Process(supplier))
        return self

    def add_read_only_state_store(
        self,
        store: StoreSpec,
        source: str,
        topic: str,
        processor: str,
        supplier: Callable[[], Processor[Any, Any, Any, Any]],
        *,
        key: type | AnySerde | None = None,
        value: type | AnySerde | None = None,
        timestamp_extractor: Extractor | None = None,
    ) -> Topology:
        """Add a store that ``topic`` fills, partition by partition: the source named ``source`` reads it from its
        beginning, and ``supplier`` makes the processor, named ``processor``, that puts the records into the store.

        The store has no changelog. It is restored from ``topic``, record by record, without the processor: the
        processor must store exactly the topic's records, and the topic should be compacted. Other processors that are
        connected to the store must not write to it. Source: KIP-813.
        """
        self.add_source(
            source,
            topic,
            key=key,
            value=value,
            timestamp_extractor=timestamp_extractor,
            auto_offset_reset="earliest",
        )
        self.add_processor(processor, supplier, source)
        self._fillers.add(processor)
        return self.add_state_store(replace(store, logged=False, source_topic=topic), processor)

    def connect_processor_and_state_stores(self, processor: str, *stores: str) -> Topology:
        """Let ``processor`` use ``stores``. All users of a store become one sub-topology."""
        if not stores:
            raise TopologyError(f"{processor} cannot be connected to stores, because none is named")
        for store in stores:
            if store in self._global_stores:
                raise TopologyError(
                    f"store {store} is a global store, which every processor may read without a connection",
                    where=f"stores of {processor}",
                    hint="leave it out of stores=",
                )
            if store not in self._stores:
                raise TopologyError(
                    f"store {store} has not been added",
                    where=f"stores of {processor}",
                    hint="call add_state_store first",
                )
            node = self._nodes.get(processor)
            if node is None:
                raise TopologyError(
                    f"processor {processor} has not been added", where=f"users of store {store}"
                )
            if not isinstance(node, ProcessorNode):
                raise TopologyError(f"store {store} cannot be connected to {processor}, a source or sink")
            if self._is_global(processor):
                raise TopologyError(
                    f"{processor} fills a global store, and cannot use other stores",
                    where=f"users of store {store}",
                    why="global stores are filled in every process, but other stores belong to a task",
                    hint="read the topic also as a stream, or let another processor read the global store",
                )
            users = self._users[store]
            if users:
                self._groups.unite(users[0], processor)
            if store not in node.stores:
                users.append(processor)
                node.stores.append(store)
        return self

    # For the DSL

    def add_and_connect(self, processor: str, stores: Iterable[str | StoreSpec]) -> None:
        """Connect ``processor`` to stores by name; stores that are given as specs are added first."""
        for store in store_list(stores):
            if isinstance(store, StoreSpec):
                self.add_state_store(store, processor)
                self._own_stores.setdefault(processor, []).append(store.name)
            else:
                self.connect_processor_and_state_stores(processor, store)
