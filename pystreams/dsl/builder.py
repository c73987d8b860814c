"""The start of a program: reads topics as streams and tables."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Protocol, TypeVar, Unpack, overload

from pystreams.config import StreamsConfig
from pystreams.dsl.context import Context, StepPlace
from pystreams.dsl.global_table import GlobalTables
from pystreams.dsl.keywords import suggests_keywords
from pystreams.dsl.materialized import StoreOptions, UntypedStoreArguments
from pystreams.dsl.operators.table import TableSource
from pystreams.dsl.origins import TopicOrigin
from pystreams.dsl.serdes import TypeOrSerde
from pystreams.dsl.sources import Topics, source_node, source_serdes
from pystreams.dsl.stream import KStream
from pystreams.dsl.table import KTable
from pystreams.errors import TopologyError
from pystreams.plural import plural
from pystreams.state.spec import StoreSpec
from pystreams.timestamps import Extractor
from pystreams.topology.arguments import checked_store
from pystreams.topology.built import BuiltTopology
from pystreams.topology.graph import StoreGraphNode, StreamSourceGraphNode, TableSourceGraphNode
from pystreams.topology.names import checked
from pystreams.topology.optimizer import rewritings
from pystreams.topology.topology import Topology

K = TypeVar("K")
V = TypeVar("V")


class Buildable(Protocol):
    """An object that builds a topology: an ``App`` or a ``StreamsBuilder``."""

    def build(self, config: StreamsConfig | None = None) -> Topology: ...


@suggests_keywords
class StreamsBuilder(GlobalTables):
    """Builds a topology of streams and tables.

    ``ensure_explicit_internal_resource_naming``: ``build`` refuses stores and internal topics with generated names.
    Source: org.apache.kafka.streams.StreamsBuilder.
    """

    def __init__(self, *, ensure_explicit_internal_resource_naming: bool = False) -> None:
        self._context = Context()
        self._all_named = ensure_explicit_internal_resource_naming

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._steps()})"

    def _repr_svg_(self) -> str | None:
        """The picture that a notebook shows: the steps so far, before optimization. None if they cannot be built:
        ``build`` raises the reason."""
        try:
            return self._context.graph.write().picture()
        except TopologyError:
            return None

    def _steps(self) -> str:
        n = self._context.graph.size
        return f"{n} {plural(n, 'step')}"

    @overload
    def stream(
        self,
        topics: Topics,
        *,
        key: TypeOrSerde[K],
        value: TypeOrSerde[V],
        timestamp_extractor: Extractor | None = ...,
        auto_offset_reset: str | timedelta | None = ...,
        step: str | None = ...,
    ) -> KStream[K, V]: ...
    @overload
    def stream(
        self,
        topics: Topics,
        *,
        key: TypeOrSerde[K],
        timestamp_extractor: Extractor | None = ...,
        auto_offset_reset: str | timedelta | None = ...,
        step: str | None = ...,
    ) -> KStream[K, Any]: ...
    @overload
    def stream(
        self,
        topics: Topics,
        *,
        value: TypeOrSerde[V],
        timestamp_extractor: Extractor | None = ...,
        auto_offset_reset: str | timedelta | None = ...,
        step: str | None = ...,
    ) -> KStream[Any, V]: ...
    @overload
    def stream(
        self,
        topics: Topics,
        *,
        timestamp_extractor: Extractor | None = ...,
        auto_offset_reset: str | timedelta | None = ...,
        step: str | None = ...,
    ) -> KStream[Any, Any]: ...
    def stream(
        self,
        topics: Topics,
        *,
        key: Any = None,
        value: Any = None,
        timestamp_extractor: Any = None,
        auto_offset_reset: str | timedelta | None = None,
        step: str | None = None,
    ) -> KStream[Any, Any]:
        """Read topics as a stream. Keys and values are bytes unless ``key=`` and ``value=`` or the defaults give a
        type.

        ``timestamp_extractor`` is a function or a name of ``pystreams.timestamps``; ``auto_offset_reset`` ("earliest",
        "latest", "none", "by_duration:PT1H" or a timedelta) says where to start if no offset is committed.
        """
        name = self._context.names.step("KSTREAM-SOURCE-", step)
        keys, values = source_serdes(name, key, value)
        source = source_node(name, topics, keys, values, timestamp_extractor, auto_offset_reset)
        node = StreamSourceGraphNode(name, source)
        self._context.graph.add(node)
        return KStream(StepPlace(self._context, name, node, frozenset({name}), keys, values))

    @overload
    def table(
        self,
        topic: str,
        *,
        key: TypeOrSerde[K],
        value: TypeOrSerde[V],
        timestamp_extractor: Extractor | None = ...,
        auto_offset_reset: str | timedelta | None = ...,
        step: str | None = ...,
        **store: Unpack[UntypedStoreArguments],
    ) -> KTable[K, V]: ...
    @overload
    def table(
        self,
        topic: str,
        *,
        key: TypeOrSerde[K],
        timestamp_extractor: Extractor | None = ...,
        auto_offset_reset: str | timedelta | None = ...,
        step: str | None = ...,
        **store: Unpack[UntypedStoreArguments],
    ) -> KTable[K, Any]: ...
    @overload
    def table(
        self,
        topic: str,
        *,
        value: TypeOrSerde[V],
        timestamp_extractor: Extractor | None = ...,
        auto_offset_reset: str | timedelta | None = ...,
        step: str | None = ...,
        **store: Unpack[UntypedStoreArguments],
    ) -> KTable[Any, V]: ...
    @overload
    def table(
        self,
        topic: str,
        *,
        timestamp_extractor: Extractor | None = ...,
        auto_offset_reset: str | timedelta | None = ...,
        step: str | None = ...,
        **store: Unpack[UntypedStoreArguments],
    ) -> KTable[Any, Any]: ...
    def table(
        self,
        topic: str,
        *,
        key: Any = None,
        value: Any = None,
        timestamp_extractor: Any = None,
        auto_offset_reset: str | timedelta | None = None,
        step: str | None = None,
        **store: Unpack[UntypedStoreArguments],
    ) -> KTable[Any, Any]:
        """Read a topic as a table: each record replaces the value of its key, None deletes it, a null key is dropped.

        The table gets a store if it has a ``name``, or if another step needs the store.
        """
        if not isinstance(topic, str):
            raise TopologyError(
                f"a table is read from one topic, not from {topic!r}",
                hint="read several topics as a stream, and make it a table with to_table()",
            )
        names = self._context.names
        options = StoreOptions.of("table", store)
        store_name = options.named(self._context, f"{topic}-")
        source_name = names.step("KSTREAM-SOURCE-", None if step is None else f"{step}-source")
        name = names.step("KTABLE-SOURCE-", step)
        keys, values = source_serdes(source_name, key, value)
        source = source_node(source_name, topic, keys, values, timestamp_extractor, auto_offset_reset)
        spec = options.key_value(store_name.name, keys, values)
        operation = TableSource(store_name.name if store_name.by_user else None)
        node = TableSourceGraphNode(name, source, operation, spec)
        self._context.graph.add(node)
        place = StepPlace(self._context, name, node, frozenset({source_name}), keys, values)
        return KTable(place, TopicOrigin(operation, spec), spec, queryable=store_name.by_user)

    def add_state_store(self, store: StoreSpec) -> None:
        """Add a store for ``process``, which refers to it with ``stores=``. The factory ``Stores`` makes stores."""
        checked(checked_store(store).name)
        self._context.graph.add(StoreGraphNode(store.name, store))

    def build(self, config: StreamsConfig | None = None) -> Topology:
        """The topology of all steps so far, with the settings of ``config`` applied: ``topology_optimization``,
        ``processor_wrapper``, ``default_dsl_store`` and ``dsl_store_format``.

        Raises ``TopologyError`` if steps contradict each other: a name is used twice, a topic is read in two ways, two
        different stores have one name, joined topics have different fixed partition counts.
        """
        topology = self._context.graph.write(
            rewritings("none" if config is None else config.topology_optimization)
        )
        if self._all_named:
            self._context.check_all_named()
        return topology if config is None else topology.configured(config)


def own_config(application: object) -> StreamsConfig | None:
    """The configuration of an ``App``; None for a builder or a topology, which have none."""
    config = getattr(application, "config", None)
    return config if isinstance(config, StreamsConfig) else None


def topology_of(application: Topology | Buildable, config: StreamsConfig | None = None) -> Topology:
    """The application's topology with ``config`` applied (see ``Topology.configured``). Raises ``TopologyError`` as
    ``build`` does."""
    if not isinstance(application, Topology):
        if not hasattr(application, "build"):
            raise TopologyError(
                f"{type(application).__name__} is not an application",
                hint="give the App, the StreamsBuilder or the Topology, not a stream or table of it",
            )
        return application.build(config)
    return application if config is None else application.configured(config)


def build_topology(application: Topology | Buildable, config: StreamsConfig) -> BuiltTopology:
    """The application's topology as it runs under ``config``. Raises ``TopologyError``."""
    return built_under(topology_of(application, config), config)


def built_under(topology: Topology, config: StreamsConfig) -> BuiltTopology:
    """Build a topology to which ``config`` was applied already. Raises ``TopologyError``."""
    return topology.build(
        config.application_id,
        default_key_serde=config.default_key_serde,
        default_value_serde=config.default_value_serde,
        serde_settings=config.serde_settings,
    )
