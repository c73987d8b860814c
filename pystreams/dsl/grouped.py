"""Streams whose records are grouped by key, ready to be aggregated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar, Unpack, overload

from pystreams.dsl import table
from pystreams.dsl.context import Place
from pystreams.dsl.materialized import StoreArguments, StoreName, StoreOptions, WindowStoreArguments
from pystreams.dsl.operators.aggregate import Aggregate, Reduce
from pystreams.dsl.operators.window_aggregate import WindowAggregate
from pystreams.dsl.origins import AggregateOrigin
from pystreams.dsl.repartition import repartition_node
from pystreams.dsl.serdes import aggregate_serde
from pystreams.dsl.windows import TimeWindows
from pystreams.errors import TopologyError
from pystreams.functions import UserFunction
from pystreams.serde import INT, TimeWindowedSerde
from pystreams.serde.base import AnySerde
from pystreams.state.spec import StoreSpec
from pystreams.topology.deferred import wrapped
from pystreams.topology.graph import ProcessorGraphNode, RepartitionGraphNode
from pystreams.windowed import Windowed

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")

_AGGREGATE = "KSTREAM-AGGREGATE-"
_REDUCE = "KSTREAM-REDUCE-"

_ZERO = UserFunction(lambda: 0, False, "count")
_ONE_MORE = UserFunction(lambda count, _: count + 1, False, "count")
_NOTHING = UserFunction(lambda: None, False, "reduce")


class KGroupedStream(Generic[K, V]):
    """Records by key. If the key was changed before, an aggregation first writes them to a repartition topic.

    Null keys and null values are dropped and counted. Source: KGroupedStream, GroupedStreamAggregateBuilder.
    """

    def __init__(self, place: Place, repartition: str | None) -> None:
        self._place = place
        self._repartition = repartition
        self._repartition_node: RepartitionGraphNode | None = None

    def __repr__(self) -> str:
        return f"KGroupedStream({self._place!r})"

    def count(self, *, step: str | None = None, **store: Unpack[StoreArguments]) -> table.KTable[K, int]:
        """The number of records of each key."""
        options = StoreOptions.of("count", store)
        name = options.named_for_count(self._place.context, _AGGREGATE)
        return self._aggregated(Aggregate(name.name, _ZERO, _ONE_MORE), _AGGREGATE, step, options, name, INT)

    @overload
    def reduce(
        self, reducer: Callable[[V, V], V], *, step: str | None = ..., **store: Unpack[StoreArguments]
    ) -> table.KTable[K, V]: ...
    @overload
    def reduce(
        self, reducer: Callable[[K, V, V], V], *, step: str | None = ..., **store: Unpack[StoreArguments]
    ) -> table.KTable[K, V]: ...
    def reduce(
        self, reducer: Callable[..., Any], *, step: str | None = None, **store: Unpack[StoreArguments]
    ) -> table.KTable[K, V]:
        """The values of a key combined: ``reducer(aggregate, value)``. The first value is the first aggregate.

        None deletes the row: a function that changes its aggregate in place must return it.
        """
        options = StoreOptions.of("reduce", store)
        name = options.named(self._place.context, _REDUCE)
        operation = Reduce(name.name, UserFunction.of(reducer, "aggregate", f"reduce {name.name}"))
        return self._aggregated(operation, _REDUCE, step, options, name, self._place.value)

    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[A, V], A],
        *,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> table.KTable[K, A]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, A, V], A],
        *,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> table.KTable[K, A]: ...
    def aggregate(
        self,
        initializer: Callable[[], Any],
        aggregator: Callable[..., Any],
        *,
        step: str | None = None,
        **store: Unpack[StoreArguments],
    ) -> table.KTable[K, Any]:
        """The values of a key folded into something else: ``aggregator(aggregate, value)`` gives the next aggregate.

        It starts with ``initializer()``. None deletes the row: a function that changes its aggregate in place must
        return it. ``value=`` is the type of the aggregate; it is not needed where ``initializer`` is that type
        (``int``, ``dict``).
        """
        options = StoreOptions.of("aggregate", store)
        name = options.named(self._place.context, _AGGREGATE)
        operation = Aggregate(
            name.name,
            UserFunction.of(initializer, "supply", f"aggregate {name.name}"),
            UserFunction.of(aggregator, "aggregate", f"aggregate {name.name}"),
        )
        value = aggregate_serde(operation.initializer, name.name)
        return self._aggregated(operation, _AGGREGATE, step, options, name, value)

    def windowed_by(self, windows: TimeWindows) -> TimeWindowedKStream[K, V]:
        """Aggregate each window of event time apart."""
        if not isinstance(windows, TimeWindows):
            raise TopologyError(
                f"windowed_by takes windows, not {windows!r}",
                hint="give TimeWindows.tumbling(size) or TimeWindows.hopping(size, advance=...)",
            )
        return TimeWindowedKStream(self, windows)

    def _aggregated(
        self,
        operation: Aggregate | Reduce,
        prefix: str,
        step: str | None,
        options: StoreOptions,
        store: StoreName,
        value: AnySerde,
    ) -> table.KTable[K, Any]:
        name = self._place.context.names.step(prefix, step)
        spec = options.key_value(store.name, self._place.key, value)
        place = self._attach(name, operation, spec, store.by_user)
        return table.KTable(place, AggregateOrigin(operation), spec, queryable=store.by_user)

    def _attach(
        self, name: str, operation: Aggregate | Reduce | WindowAggregate, spec: StoreSpec, store_by_user: bool
    ) -> Place:
        """Put an aggregation behind the stream, and a repartition topic between them if the key was changed."""
        place = self._place
        if place.needs_repartition:
            place = self._repartitioned(spec.name, store_by_user)
        node = ProcessorGraphNode(name, operation, spec)
        place.add(node)
        return Place(place.context, name, node, place.sources, spec.key_serde, spec.value_serde)

    def _repartitioned(self, store: str, store_by_user: bool) -> Place:
        """Behind the repartition topic. One that the user named is made once and serves all aggregations."""
        place, given = self._place, self._repartition
        named = given is not None or store_by_user
        node = repartition_node(place.context, given or store, place.key, place.value, named_by_user=named)
        if self._repartition_node is None or given is None:
            self._repartition_node = node
        node = self._repartition_node
        place.add(node)
        return replace(place, node=node, sources=frozenset({node.name}))


class TimeWindowedKStream(Generic[K, V]):
    """Records by key and window. Late ones, past the window's grace, are dropped and counted.

    The store keeps windows for size and grace, or for ``retention=``. Source: TimeWindowedKStreamImpl.
    """

    def __init__(self, grouped: KGroupedStream[K, V], windows: TimeWindows) -> None:
        self._grouped = grouped
        self._windows = windows

    def __repr__(self) -> str:
        return f"TimeWindowedKStream({self._grouped._place!r}, {self._windows})"

    def count(
        self, *, step: str | None = None, **store: Unpack[WindowStoreArguments]
    ) -> table.KTable[Windowed[K], int]:
        """The number of records of each key and window."""
        options = StoreOptions.of("count", store)
        name = options.named_for_count(self._grouped._place.context, _AGGREGATE)
        return self._aggregated(_ZERO, _ONE_MORE, _AGGREGATE, step, options, name, INT)

    @overload
    def reduce(
        self, reducer: Callable[[V, V], V], *, step: str | None = ..., **store: Unpack[WindowStoreArguments]
    ) -> table.KTable[Windowed[K], V]: ...
    @overload
    def reduce(
        self,
        reducer: Callable[[K, V, V], V],
        *,
        step: str | None = ...,
        **store: Unpack[WindowStoreArguments],
    ) -> table.KTable[Windowed[K], V]: ...
    def reduce(
        self, reducer: Callable[..., Any], *, step: str | None = None, **store: Unpack[WindowStoreArguments]
    ) -> table.KTable[Windowed[K], V]:
        """The values of a key and window combined. The first value is the first aggregate."""
        options = StoreOptions.of("reduce", store)
        name = options.named(self._grouped._place.context, _REDUCE)
        aggregator = _from_reducer(UserFunction.of(reducer, "aggregate", f"reduce {name.name}"))
        value = self._grouped._place.value
        return self._aggregated(_NOTHING, aggregator, _REDUCE, step, options, name, value)

    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[A, V], A],
        *,
        step: str | None = ...,
        **store: Unpack[WindowStoreArguments],
    ) -> table.KTable[Windowed[K], A]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, A, V], A],
        *,
        step: str | None = ...,
        **store: Unpack[WindowStoreArguments],
    ) -> table.KTable[Windowed[K], A]: ...
    def aggregate(
        self,
        initializer: Callable[[], Any],
        aggregator: Callable[..., Any],
        *,
        step: str | None = None,
        **store: Unpack[WindowStoreArguments],
    ) -> table.KTable[Windowed[K], Any]:
        """The values of a key and window folded into something else, as ``KGroupedStream.aggregate``."""
        options = StoreOptions.of("aggregate", store)
        name = options.named(self._grouped._place.context, _AGGREGATE)
        start = UserFunction.of(initializer, "supply", f"aggregate {name.name}")
        function = UserFunction.of(aggregator, "aggregate", f"aggregate {name.name}")
        value = aggregate_serde(start, name.name)
        return self._aggregated(start, function, _AGGREGATE, step, options, name, value)

    def _aggregated(
        self,
        initializer: UserFunction,
        aggregator: UserFunction,
        prefix: str,
        step: str | None,
        options: StoreOptions,
        store: StoreName,
        value: AnySerde,
    ) -> table.KTable[Windowed[K], Any]:
        place, windows = self._grouped._place, self._windows
        name = place.context.names.step(prefix, step)
        spec = options.window(store.name, place.key, value, windows)
        operation = WindowAggregate(
            store.name, windows.size_ms, windows.advance_ms, windows.grace_ms, initializer, aggregator
        )
        behind = self._grouped._attach(name, operation, spec, store.by_user)
        key = wrapped(spec.key_serde, lambda inner: TimeWindowedSerde(inner, windows.size_ms))
        return table.KTable(
            replace(behind, key=key), AggregateOrigin(operation), spec, queryable=store.by_user
        )


def _from_reducer(reducer: UserFunction) -> UserFunction:
    """A reducer as an aggregator that starts with None."""
    combine = reducer.call
    if reducer.takes_key:
        return replace(reducer, call=lambda k, a, v: v if a is None else combine(k, a, v))
    return replace(reducer, call=lambda a, v: v if a is None else combine(a, v))
