"""Streams grouped by key, for aggregation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar, Unpack, overload

from pystreams.dsl import cogroup, session_windowed, table, windowed
from pystreams.dsl.aggregates import declaring
from pystreams.dsl.aggregates.declaring import declared, split
from pystreams.dsl.context import StepPlace
from pystreams.dsl.durations import Duration
from pystreams.dsl.keywords import suggests_keywords
from pystreams.dsl.materialized import AnyTimeWindows, StoreArguments, StoreName, StoreOptions
from pystreams.dsl.operators.aggregate import Aggregate, Reduce
from pystreams.dsl.operators.folding import ONE_MORE, SUM, ZERO, merging
from pystreams.dsl.origins import AggregateOrigin, WindowedAggregate
from pystreams.dsl.prefixes import AGGREGATE, REDUCE
from pystreams.dsl.repartition import repartition_node
from pystreams.dsl.serdes import TypeOrSerde, aggregate_serde
from pystreams.dsl.windows import SessionWindows, checked_windows
from pystreams.functions import UserFunction
from pystreams.serde import INT
from pystreams.serde.base import AnySerde
from pystreams.state.spec import StoreSpec
from pystreams.topology.graph import ProcessorGraphNode, RepartitionGraphNode

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


@suggests_keywords
class KGroupedStream(Generic[K, V]):
    """A stream grouped by key. If the key was changed before, an aggregation first writes a repartition topic.

    Null keys and null values are dropped and counted (null values not in every kind of window). Source: KGroupedStream,
    GroupedStreamAggregateBuilder.
    """

    def __init__(self, place: StepPlace, repartition: str | None) -> None:
        self._place = place
        self._repartition = repartition
        self._repartition_node: RepartitionGraphNode | None = None

    def __repr__(self) -> str:
        return f"KGroupedStream({self._place!r})"

    def count(self, *, step: str | None = None, **store: Unpack[StoreArguments]) -> table.KTable[K, int]:
        """Count the records of each key."""
        options = StoreOptions.of("count", store)
        name = options.named_for_count(self._place.context, AGGREGATE)
        return self._aggregated(
            Aggregate(name.name, ZERO, ONE_MORE, SUM), AGGREGATE, step, options, name, INT
        )

    @overload
    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        merge: Callable[[V, V], V] | None = ...,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> table.KTable[K, V]: ...
    @overload
    def reduce(
        self,
        reducer: Callable[[K, V, V], V],
        *,
        merge: Callable[[V, V], V] | None = ...,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> table.KTable[K, V]: ...
    def reduce(
        self,
        reducer: Callable[..., Any],
        *,
        merge: Callable[[V, V], V] | None = None,
        step: str | None = None,
        **store: Unpack[StoreArguments],
    ) -> table.KTable[K, V]:
        """Combine the values of each key: ``reducer(aggregate, value)``. The first value is the first aggregate.

        None deletes the row: a function that changes its aggregate in place must also return it.

        ``merge(one, two)`` makes one aggregate of two, and declares that the order of the records does not matter: a
        backfill then combines before a repartition topic. A sum has ``merge=operator.add``.
        """
        options = StoreOptions.of("reduce", store)
        name = options.named(self._place.context, REDUCE)
        function = UserFunction.of(reducer, "aggregate", f"reduce {name.name}")
        operation = Reduce(name.name, function, merging(merge, f"reduce {name.name}"))
        return self._aggregated(operation, REDUCE, step, options, name, self._place.value)

    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[A, V], A],
        *,
        merge: Callable[[A, A], A] | None = ...,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> table.KTable[K, A]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, A, V], A],
        *,
        merge: Callable[[A, A], A] | None = ...,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> table.KTable[K, A]: ...
    @overload
    def aggregate(
        self,
        *,
        step: str | None = ...,
        name: str = ...,
        was: str = ...,
        key: TypeOrSerde[Any] = ...,
        value: type[A],
        cached: bool = ...,
        logged: bool = ...,
        persistent: bool = ...,
        changelog_config: Mapping[str, str] = ...,
        history: Duration = ...,
        history_segment: Duration = ...,
        max_entries: int = ...,
        **fields: declaring.Aggregate,
    ) -> table.KTable[K, A]: ...
    @overload
    def aggregate(
        self,
        *,
        step: str | None = ...,
        name: str = ...,
        was: str = ...,
        key: TypeOrSerde[Any] = ...,
        cached: bool = ...,
        logged: bool = ...,
        persistent: bool = ...,
        changelog_config: Mapping[str, str] = ...,
        history: Duration = ...,
        history_segment: Duration = ...,
        max_entries: int = ...,
        **fields: declaring.Aggregate,
    ) -> table.KTable[K, Any]: ...
    def aggregate(
        self,
        initializer: Any = None,
        aggregator: Any = None,
        *,
        merge: Any = None,
        step: str | None = None,
        **store: Any,
    ) -> table.KTable[K, Any]:
        """Aggregate the values of each key: ``aggregator(aggregate, value)`` returns the next aggregate.

        The first aggregate is ``initializer()``. None deletes the row: a function that changes its aggregate in place
        must also return it. ``value=`` is the type of the aggregate; it is not needed if ``initializer`` is that type
        (``int``, ``dict``).

        ``merge(one, two)`` makes one aggregate of two that each began with ``initializer()``, and declares that the
        order of the records does not matter: a backfill then combines before a repartition topic.

        Instead of the functions, keyword arguments may declare the fields of the aggregate: ``total=agg.sum("cents")``
        (``pystreams.agg``).
        """
        fields, arguments = split(store, step, merge, initializer=initializer, aggregator=aggregator)
        options = StoreOptions.of("aggregate", arguments)
        name = options.named(self._place.context, AGGREGATE)
        if fields:
            rows, stored, shown, options = declared(fields, options, name, self._place.value)
            adding = Aggregate(name.name, rows.initializer, rows.aggregator, rows.merger)
            return self._aggregated(adding, AGGREGATE, step, options, name, stored, shown)
        operation = Aggregate(
            name.name,
            UserFunction.of(initializer, "supply", f"aggregate {name.name}"),
            UserFunction.of(aggregator, "aggregate", f"aggregate {name.name}"),
            merging(merge, f"aggregate {name.name}"),
        )
        value = aggregate_serde(operation.initializer, name.name)
        return self._aggregated(operation, AGGREGATE, step, options, name, value)

    @overload
    def windowed_by(self, windows: AnyTimeWindows) -> windowed.TimeWindowedKStream[K, V]: ...
    @overload
    def windowed_by(self, windows: SessionWindows) -> session_windowed.SessionWindowedKStream[K, V]: ...
    def windowed_by(
        self, windows: AnyTimeWindows | SessionWindows
    ) -> windowed.TimeWindowedKStream[K, V] | session_windowed.SessionWindowedKStream[K, V]:
        """Aggregate each window of event time, or each session, separately."""
        checked_windows(windows)
        if isinstance(windows, SessionWindows):
            return session_windowed.SessionWindowedKStream(self, windows)
        return windowed.TimeWindowedKStream(self, windows)

    @overload
    def cogroup(self, aggregator: Callable[[A, V], A]) -> cogroup.CogroupedKStream[K, A]: ...
    @overload
    def cogroup(self, aggregator: Callable[[K, A, V], A]) -> cogroup.CogroupedKStream[K, A]: ...
    def cogroup(self, aggregator: Callable[..., Any]) -> cogroup.CogroupedKStream[K, Any]:
        """Start an aggregation of several grouped streams: ``aggregator(aggregate, value)`` adds the values of this
        one; ``CogroupedKStream.cogroup`` adds further streams."""
        cogrouped: cogroup.CogroupedKStream[K, Any] = cogroup.CogroupedKStream()
        return cogrouped.cogroup(self, aggregator)

    def _aggregated(
        self,
        operation: Aggregate | Reduce,
        prefix: str,
        step: str | None,
        options: StoreOptions,
        store: StoreName,
        value: AnySerde,
        shown: AnySerde | None = None,
    ) -> table.KTable[K, Any]:
        spec = options.key_value(store.name, self._place.key, value)
        by_user = store.by_user
        return self._table(operation, spec, spec.key_serde, prefix, step, shown, store_by_user=by_user)

    def _table(
        self,
        operation: Aggregate | Reduce | WindowedAggregate,
        spec: StoreSpec,
        key: AnySerde,
        prefix: str,
        step: str | None,
        shown: AnySerde | None = None,
        *,
        store_by_user: bool,
    ) -> table.KTable[Any, Any]:
        """Add an aggregation to the stream, after a repartition topic if the key was changed, and return its table.

        ``key`` is the serde of the table's keys, which may be windowed; ``spec`` is the store; ``shown`` is the serde
        of the table's values, if it is not that of the store.
        """
        place = self._place
        name = place.context.names.step(prefix, step)
        if place.needs_repartition:
            place = self._repartitioned(spec.name, store_by_user)
        node = ProcessorGraphNode(name, operation, spec)
        place.add(node)
        behind = StepPlace(place.context, name, node, place.sources, key, shown or spec.value_serde)
        origin = AggregateOrigin(operation, history_ms=spec.history_ms)
        return table.KTable(behind, origin, spec, queryable=store_by_user)

    def _repartitioned(self, store: str, store_by_user: bool) -> StepPlace:
        """The place after the repartition topic. A topic with a name given by the user is shared by all
        aggregations."""
        place, given = self._place, self._repartition
        named = given is not None or store_by_user
        node = repartition_node(place.context, given or store, place.key, place.value, named_by_user=named)
        if self._repartition_node is None or given is None:
            self._repartition_node = node
        node = self._repartition_node
        place.add(node)
        return replace(place, node=node, sources=frozenset({node.name}))
