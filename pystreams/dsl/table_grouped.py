"""Tables grouped by another key, for aggregation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, Unpack, overload

from pystreams.dsl import table
from pystreams.dsl.aggregates.declaring import refuse
from pystreams.dsl.context import StepPlace
from pystreams.dsl.keywords import suggests_keywords
from pystreams.dsl.materialized import StoreArguments, StoreName, StoreOptions
from pystreams.dsl.operators.table_aggregate import TableAggregate, TableReduce
from pystreams.dsl.origins import AggregateOrigin
from pystreams.dsl.repartition import table_repartition_node
from pystreams.dsl.serdes import aggregate_serde
from pystreams.functions import UserFunction
from pystreams.serde import INT, ChangeSerde
from pystreams.serde.base import AnySerde
from pystreams.topology.deferred import wrapped
from pystreams.topology.graph import ProcessorGraphNode, RepartitionGraphNode
from pystreams.topology.names import REPARTITION_SUFFIX, checked

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")

_STORE_PREFIX = "KTABLE-AGGREGATE-"


@suggests_keywords
class KGroupedTable(Generic[K, V]):
    """A table with grouped rows. A changed row is first subtracted from its old group, then added to its new one.

    Source: KGroupedTable, KGroupedTableImpl.
    """

    def __init__(self, place: StepPlace, repartition: str | None) -> None:
        self._place = place
        self._repartition = repartition
        self._repartition_node: RepartitionGraphNode | None = None

    def __repr__(self) -> str:
        return f"KGroupedTable({self._place!r})"

    def count(self, *, step: str | None = None, **store: Unpack[StoreArguments]) -> table.KTable[K, int]:
        """Count the rows of each group."""
        options = StoreOptions.of("count", store)
        name = options.named(self._place.context, _STORE_PREFIX)
        operation = TableAggregate(
            name.name,
            UserFunction.of(lambda: 0, "supply", "count"),
            UserFunction.of(lambda count, _: count + 1, "aggregate", "count"),
            UserFunction.of(lambda count, _: count - 1, "aggregate", "count"),
        )
        return self._table(operation, "KTABLE-AGGREGATE-", step, options, name, INT)

    @overload
    def reduce(
        self,
        adder: Callable[[V, V], V],
        subtractor: Callable[[V, V], V],
        *,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> table.KTable[K, V]: ...
    @overload
    def reduce(
        self,
        adder: Callable[[K, V, V], V],
        subtractor: Callable[[K, V, V], V],
        *,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> table.KTable[K, V]: ...
    def reduce(
        self,
        adder: Callable[..., Any],
        subtractor: Callable[..., Any],
        *,
        step: str | None = None,
        **store: Unpack[StoreArguments],
    ) -> table.KTable[K, V]:
        """Combine the rows of each group: ``adder(aggregate, value)`` adds a row, ``subtractor`` removes one."""
        options = StoreOptions.of("reduce", store)
        name = options.named(self._place.context, _STORE_PREFIX)
        operation = TableReduce(
            name.name,
            UserFunction.of(adder, "aggregate", f"reduce {name.name}"),
            UserFunction.of(subtractor, "aggregate", f"reduce {name.name}"),
        )
        return self._table(operation, "KTABLE-REDUCE-", step, options, name, self._place.value)

    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[A, V], A],
        subtractor: Callable[[A, V], A],
        *,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> table.KTable[K, A]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, A, V], A],
        subtractor: Callable[[K, A, V], A],
        *,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> table.KTable[K, A]: ...
    def aggregate(
        self,
        initializer: Any = None,
        adder: Any = None,
        subtractor: Any = None,
        *,
        step: str | None = None,
        **store: Unpack[StoreArguments],
    ) -> table.KTable[K, Any]:
        """Aggregate the rows of each group, starting with ``initializer()``.

        ``value=`` is the type of the aggregate; it is not needed if ``initializer`` is that type, as in
        ``aggregate(int, ...)``.
        """
        refuse(store, "a grouped table", "its rows are also removed: give initializer, adder and subtractor")
        options = StoreOptions.of("aggregate", store)
        name = options.named(self._place.context, _STORE_PREFIX)
        operation = TableAggregate(
            name.name,
            UserFunction.of(initializer, "supply", f"aggregate {name.name}"),
            UserFunction.of(adder, "aggregate", f"aggregate {name.name}"),
            UserFunction.of(subtractor, "aggregate", f"aggregate {name.name}"),
        )
        value = aggregate_serde(operation.initializer, name.name)
        return self._table(operation, "KTABLE-AGGREGATE-", step, options, name, value)

    def _table(
        self,
        operation: TableAggregate | TableReduce,
        prefix: str,
        step: str | None,
        options: StoreOptions,
        store: StoreName,
        value: AnySerde,
    ) -> table.KTable[K, Any]:
        names = self._place.context.names
        sink = names.step("KSTREAM-SINK-", None if step is None else f"{step}-sink")
        source = names.step("KSTREAM-SOURCE-", None if step is None else f"{step}-source")
        name = names.step(prefix, step)
        topic = checked(f"{self._repartition or store.name}{REPARTITION_SUFFIX}")
        middle = self._repartition_node
        if middle is None or self._repartition is None:
            change = wrapped(self._place.value, ChangeSerde)
            middle = table_repartition_node(sink, source, topic, self._place.key, change)
            self._repartition_node = middle
        self._place.add(middle)
        spec = options.key_value(store.name, self._place.key, value)
        node = ProcessorGraphNode(name, operation, spec)
        self._place.context.graph.add(node, middle)
        place = StepPlace(
            self._place.context, name, node, frozenset({middle.name}), spec.key_serde, spec.value_serde
        )
        origin = AggregateOrigin(operation, history_ms=spec.history_ms)
        return table.KTable(place, origin, spec, queryable=store.by_user)
