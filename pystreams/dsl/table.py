"""Tables: the latest value of each key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, Unpack, cast, overload

from pystreams.dsl import stream, suppressed, table_grouped
from pystreams.dsl.annotations import Returned
from pystreams.dsl.context import StepPlace
from pystreams.dsl.expressions import step_function
from pystreams.dsl.keywords import suggests_keywords
from pystreams.dsl.materialized import StoreArguments, StoreOptions
from pystreams.dsl.operators.table import TableFilter, TableMapValues, TableRepartition, TableToStream
from pystreams.dsl.operators.transform_values import TableTransformValues
from pystreams.dsl.origins import Derivation, DerivedOrigin, TableOrigin
from pystreams.dsl.serdes import TypeOrSerde, computed, given_or, returned_by
from pystreams.dsl.table_join_methods import TableJoins
from pystreams.functions import UserFunction
from pystreams.processor import ValueTransformer
from pystreams.state.spec import StoreSpec
from pystreams.topology.arguments import store_list
from pystreams.topology.graph import ProcessorGraphNode
from pystreams.topology.wrapping import provided_stores

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")
T = TypeVar("T")


@suggests_keywords
class KTable(TableJoins[K, V]):
    """A stream of changes, read as a table: each record replaces the value of its key, and None deletes it.

    Steps return new tables; nothing runs before the topology is built and started. Source: KTable, KTableImpl.
    """

    def __init__(
        self,
        place: StepPlace,
        origin: TableOrigin,
        store: StoreSpec | None,
        *,
        queryable: bool,
    ) -> None:
        self._place = place
        self._origin = origin
        self._store = store
        self._queryable = queryable

    def __repr__(self) -> str:
        store = self.queryable_store_name
        return f"KTable({self._place!r}{'' if store is None else f', store {store!r}'})"

    @property
    def queryable_store_name(self) -> str | None:
        """The name of the table's store, if the program gave one."""
        return self._store.name if self._store is not None and self._queryable else None

    @overload
    def filter(
        self, predicate: Callable[[V], object], *, step: str | None = ..., **store: Unpack[StoreArguments]
    ) -> KTable[K, V]: ...
    @overload
    def filter(
        self, predicate: Callable[[K, V], object], *, step: str | None = ..., **store: Unpack[StoreArguments]
    ) -> KTable[K, V]: ...
    def filter(
        self, predicate: Callable[..., object], *, step: str | None = None, **store: Unpack[StoreArguments]
    ) -> KTable[K, V]:
        """Keep the rows for which ``predicate`` (of the value, or key and value) is true; others are deleted."""
        return self._filter("filter", predicate, False, step, StoreOptions.of("filter", store))

    @overload
    def filter_not(
        self, predicate: Callable[[V], object], *, step: str | None = ..., **store: Unpack[StoreArguments]
    ) -> KTable[K, V]: ...
    @overload
    def filter_not(
        self, predicate: Callable[[K, V], object], *, step: str | None = ..., **store: Unpack[StoreArguments]
    ) -> KTable[K, V]: ...
    def filter_not(
        self, predicate: Callable[..., object], *, step: str | None = None, **store: Unpack[StoreArguments]
    ) -> KTable[K, V]:
        """Keep the rows for which ``predicate`` is false."""
        return self._filter("filter_not", predicate, True, step, StoreOptions.of("filter_not", store))

    def _filter(
        self,
        method: str,
        predicate: Callable[..., object],
        negate: bool,
        step: str | None,
        options: StoreOptions,
    ) -> KTable[K, V]:
        prefix = "KTABLE-FILTER-"
        name, store_name = self._draw_names(prefix, step, options)
        function = step_function(predicate, "predicate", f"{method} {name}", self._place.value)
        operation = TableFilter(function, negate, store_name)
        # If old values are available anyway, they save tombstones for rows that never passed the filter.
        operation.send_old_values = self._origin.send_old_values(force=False)
        operation.from_versioned = self._origin.versioned
        key, value = given_or(options.key, self._place.key), given_or(options.value, self._place.value)
        store = None if store_name is None else options.key_value(store_name, key, value)
        return cast("KTable[K, V]", self._derived(name, operation, options, store, key, value))

    @overload
    def map_values(
        self, mapper: Callable[[V], V2], *, step: str | None = ..., **store: Unpack[StoreArguments]
    ) -> KTable[K, V2]: ...
    @overload
    def map_values(
        self, mapper: Callable[[K, V], V2], *, step: str | None = ..., **store: Unpack[StoreArguments]
    ) -> KTable[K, V2]: ...
    def map_values(
        self, mapper: Callable[..., Any], *, step: str | None = None, **store: Unpack[StoreArguments]
    ) -> KTable[K, Any]:
        """Replace the value of each row by the result of ``mapper`` (of the value, or key and value).

        The mapper is not called for None. ``value=`` is the type of the result; it is not needed if ``mapper`` is that
        type (``int``).
        """
        options = StoreOptions.of("map_values", store)
        name, store_name = self._draw_names("KTABLE-MAPVALUES-", step, options)
        function = step_function(mapper, "value", f"map_values {name}", self._place.value)
        operation = TableMapValues(function, store_name)
        key = given_or(options.key, self._place.key)
        value = returned_by(options.value, f"the value that {name} computes", function, self._place.value)
        spec = None if store_name is None else options.key_value(store_name, key, value)
        return self._derived(name, operation, options, spec, key, value)

    def transform_values(
        self,
        supplier: Callable[[], ValueTransformer[K, V, V2]],
        *,
        stores: str | StoreSpec | Iterable[str | StoreSpec] = (),
        step: str | None = None,
        **store: Unpack[StoreArguments],
    ) -> KTable[K, V2]:
        """Replace the value of each row by the result of a ``ValueTransformer``; ``supplier`` (its class, for example)
        makes one for each task. It is called for deleted rows, too.

        ``stores`` are names of stores that it may use, or stores to add and connect. If ``supplier`` has a method
        ``stores``, the stores that it returns are added, too. ``value=`` is the type of the result.
        """
        options = StoreOptions.of("transform_values", store)
        prefix = "KTABLE-TRANSFORMVALUES-"
        # Unlike in other steps, no number is used up for a store that it does not have.
        store_name = None if options.name is None else options.named(self._place.context, prefix).name
        name = self._place.context.names.step(prefix, step)
        function = UserFunction.of(supplier, "supply", f"transform_values {name}")
        connected = (*provided_stores(supplier), *store_list(stores))
        names = tuple(store if isinstance(store, str) else store.name for store in connected)
        operation = TableTransformValues(function, names, store_name)
        key = given_or(options.key, self._place.key)
        value = computed(
            options.value, f"the value that {name} computes", function.location, self._place.value
        )
        spec = None if store_name is None else options.key_value(store_name, key, value)
        return self._derived(name, operation, options, spec, key, value, connected)

    @overload
    def to_stream(self, *, step: str | None = ...) -> stream.KStream[K, V]: ...
    @overload
    def to_stream(
        self, key_fn: Callable[[V], K2], *, key: TypeOrSerde[K2] | None = ..., step: str | None = ...
    ) -> stream.KStream[K2, V]: ...
    @overload
    def to_stream(
        self, key_fn: Callable[[K, V], K2], *, key: TypeOrSerde[K2] | None = ..., step: str | None = ...
    ) -> stream.KStream[K2, V]: ...
    def to_stream(
        self, key_fn: Callable[..., Any] | None = None, *, key: Any = None, step: str | None = None
    ) -> stream.KStream[Any, V]:
        """The changes as a stream; a deleted row is a record with the value None. ``key_fn`` returns a new key."""
        name = self._place.context.names.step("KTABLE-TOSTREAM-", step)
        node = ProcessorGraphNode(name, TableToStream())
        self._place.add(node)
        place = self._place
        result: stream.KStream[Any, V] = stream.KStream(
            StepPlace(place.context, name, node, place.sources, place.key, place.value)
        )
        return result if key_fn is None else result.select_key(key_fn, key=key)

    def suppress(
        self, until: suppressed.Suppressed[K], *, step: str | None = None, was: str | None = None
    ) -> KTable[K, V]:
        """Hold back the table's changes as ``until`` says, and emit only the last of several changes of a key.
        ``Suppressed.until_window_closes()`` gives the final result of each window.

        Only stream time releases changes: they wait until later records arrive, of any key of the partition. ``step``
        also names the buffer (``<step>-store``); ``was``, which needs ``step``, is the former name of the buffer.
        """
        return suppressed.suppressed(self, until, step, was)

    @overload
    def group_by(
        self,
        mapper: Callable[[V], tuple[K2, V2]],
        *,
        key: TypeOrSerde[K2] | None = ...,
        value: TypeOrSerde[V2] | None = ...,
        repartition: str | None = ...,
    ) -> table_grouped.KGroupedTable[K2, V2]: ...
    @overload
    def group_by(
        self,
        mapper: Callable[[K, V], tuple[K2, V2]],
        *,
        key: TypeOrSerde[K2] | None = ...,
        value: TypeOrSerde[V2] | None = ...,
        repartition: str | None = ...,
    ) -> table_grouped.KGroupedTable[K2, V2]: ...
    def group_by(
        self,
        mapper: Callable[..., tuple[Any, Any]],
        *,
        key: Any = None,
        value: Any = None,
        repartition: str | None = None,
    ) -> table_grouped.KGroupedTable[Any, Any]:
        """Group rows under another key, for aggregation: ``mapper`` returns (key, value).

        A change removes the old row from its group and adds the new row to its group. ``repartition`` names the
        repartition topic and this step.
        """
        place = self._place
        name = place.context.names.step("KTABLE-SELECT-", repartition)
        function = UserFunction.of(mapper, "value", f"group_by {name}")
        node = ProcessorGraphNode(name, TableRepartition(function, self._origin.versioned))
        place.add(node)
        self._origin.send_old_values(force=True)
        what = f"that {name} computes"
        new_key = returned_by(key, f"the key {what}", function, place.value, part=Returned.KEY)
        new_value = returned_by(value, f"the value {what}", function, place.value, part=Returned.VALUE)
        grouped = StepPlace(place.context, name, node, place.sources, new_key, new_value)
        return table_grouped.KGroupedTable(grouped, repartition)

    def _draw_names(self, prefix: str, step: str | None, options: StoreOptions) -> tuple[str, str | None]:
        """The names of a step and its store. Without a name there is no store, but its number is used up."""
        names = self._place.context.names
        store_name = options.named(self._place.context, prefix).name if options.name is not None else None
        if options.given and options.name is None:
            names.store(prefix)
        return names.step(prefix, step), store_name

    def _derived(
        self,
        name: str,
        operation: Derivation,
        options: StoreOptions,
        store: StoreSpec | None,
        key: Any,
        value: Any,
        connected: Sequence[str | StoreSpec] = (),
    ) -> KTable[K, Any]:
        node = ProcessorGraphNode(name, operation, store, connected)
        self._place.add(node)
        place = StepPlace(self._place.context, name, node, self._place.sources, key, value)
        # A table without a store and without store arguments is versioned if its parent is.
        own = None if store is None else store.history_ms
        history_ms = own if options.given else self._origin.history_ms
        origin = DerivedOrigin(operation, self._origin, history_ms=history_ms)
        return KTable(place, origin, store, queryable=store is not None)
