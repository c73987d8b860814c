"""Aggregates several grouped streams into one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Generic, TypeAlias, TypeVar, Unpack, overload

from pystreams.dsl import grouped, table
from pystreams.dsl.aggregates.declaring import refuse
from pystreams.dsl.context import Context, StepPlace
from pystreams.dsl.keywords import suggests_keywords
from pystreams.dsl.materialized import (
    AnyTimeWindows,
    StoreArguments,
    StoreName,
    StoreOptions,
    WindowStoreArguments,
)
from pystreams.dsl.operators.aggregate import Aggregate
from pystreams.dsl.operators.pass_through import TablePassThrough
from pystreams.dsl.origins import CogroupOrigin, WindowedAggregate
from pystreams.dsl.repartition import repartition_node
from pystreams.dsl.serdes import aggregate_serde
from pystreams.dsl.session_windowed import session_key, session_operation
from pystreams.dsl.windowed import window_operation, windowed_key
from pystreams.dsl.windows import SessionWindows, checked_windows
from pystreams.errors import TopologyError
from pystreams.functions import UserFunction
from pystreams.serde.base import AnySerde
from pystreams.state.spec import StoreSpec
from pystreams.topology.graph import ProcessorGraphNode
from pystreams.windowed import Windowed

K = TypeVar("K")
A = TypeVar("A")
T = TypeVar("T")

_AGGREGATE = "COGROUPKSTREAM-AGGREGATE-"
_MERGE = "COGROUPKSTREAM-MERGE-"

_Operation: TypeAlias = Aggregate | WindowedAggregate


@suggests_keywords
class CogroupedKStream(Generic[K, A]):
    """Grouped streams, each with an aggregator, and one common aggregate for each key.

    Their topics must be co-partitioned; a stream whose key was changed is written to a repartition topic first. If
    several are, they need names: ``group_by(..., repartition=...)``. Null keys and null values are dropped and counted.
    Source: CogroupedKStream, CogroupedStreamAggregateBuilder.
    """

    def __init__(self) -> None:
        self._aggregators: dict[grouped.KGroupedStream[K, Any], Callable[..., Any]] = {}
        self._parents: dict[grouped.KGroupedStream[K, Any], StepPlace] = {}

    def __repr__(self) -> str:
        return f"CogroupedKStream({', '.join(repr(stream) for stream in self._aggregators)})"

    @overload
    def cogroup(
        self, stream: grouped.KGroupedStream[K, T], aggregator: Callable[[A, T], A]
    ) -> CogroupedKStream[K, A]: ...
    @overload
    def cogroup(
        self, stream: grouped.KGroupedStream[K, T], aggregator: Callable[[K, A, T], A]
    ) -> CogroupedKStream[K, A]: ...
    def cogroup(
        self, stream: grouped.KGroupedStream[K, Any], aggregator: Callable[..., Any]
    ) -> CogroupedKStream[K, A]:
        """Add another grouped stream: ``aggregator(aggregate, value)``, or with the key first, adds its values. Returns
        this object, which is changed."""
        if not isinstance(stream, grouped.KGroupedStream):
            raise TopologyError(
                f"cogroup takes a grouped stream, not {type(stream).__name__}",
                hint="group it first: group_by_key() or group_by(...)",
            )
        UserFunction.of(aggregator, "aggregate", "cogroup")
        self._aggregators[stream] = aggregator
        return self

    @overload
    def windowed_by(self, windows: AnyTimeWindows) -> TimeWindowedCogroupedKStream[K, A]: ...
    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedCogroupedKStream[K, A]: ...
    def windowed_by(
        self, windows: AnyTimeWindows | SessionWindows
    ) -> TimeWindowedCogroupedKStream[K, A] | SessionWindowedCogroupedKStream[K, A]:
        """Aggregate each window of event time, or each session, separately."""
        checked_windows(windows)
        if isinstance(windows, SessionWindows):
            return SessionWindowedCogroupedKStream(self, windows)
        return TimeWindowedCogroupedKStream(self, windows)

    def aggregate(
        self,
        initializer: Callable[[], A] | None = None,
        *,
        step: str | None = None,
        **store: Unpack[StoreArguments],
    ) -> table.KTable[K, A]:
        """Aggregate the values of each key, from all streams, starting with ``initializer()``."""
        build = _Build(self, initializer, step, store)
        spec = build.options.key_value(build.store.name, build.key, build.value)
        return build.table(
            spec,
            spec.key_serde,
            lambda aggregator: Aggregate(build.store.name, build.initializer, aggregator),
        )


@suggests_keywords
class TimeWindowedCogroupedKStream(Generic[K, A]):
    """``CogroupedKStream`` with windows. Source: TimeWindowedCogroupedKStream, SlidingWindowedCogroupedKStreamImpl."""

    def __init__(self, cogrouped: CogroupedKStream[K, A], windows: AnyTimeWindows) -> None:
        self._cogrouped = cogrouped
        self._windows = windows

    def __repr__(self) -> str:
        return f"TimeWindowedCogroupedKStream({self._cogrouped!r}, {self._windows})"

    def aggregate(
        self,
        initializer: Callable[[], A] | None = None,
        *,
        step: str | None = None,
        **store: Unpack[WindowStoreArguments],
    ) -> table.KTable[Windowed[K], A]:
        """Aggregate the values of each key and window, from all streams."""
        windows, build = self._windows, _Build(self._cogrouped, initializer, step, store)
        spec = build.options.window(build.store.name, build.key, build.value, windows)
        return build.table(
            spec,
            windowed_key(spec, windows),
            lambda aggregator: window_operation(build.store.name, windows, build.initializer, aggregator),
        )


@suggests_keywords
class SessionWindowedCogroupedKStream(Generic[K, A]):
    """``CogroupedKStream`` with sessions. Source: SessionWindowedCogroupedKStream."""

    def __init__(self, cogrouped: CogroupedKStream[K, A], windows: SessionWindows) -> None:
        self._cogrouped = cogrouped
        self._windows = windows

    def __repr__(self) -> str:
        return f"SessionWindowedCogroupedKStream({self._cogrouped!r}, {self._windows})"

    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        merger: Callable[[A, A], A],
        *,
        step: str | None = ...,
        **store: Unpack[WindowStoreArguments],
    ) -> table.KTable[Windowed[K], A]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        merger: Callable[[K, A, A], A],
        *,
        step: str | None = ...,
        **store: Unpack[WindowStoreArguments],
    ) -> table.KTable[Windowed[K], A]: ...
    def aggregate(
        self,
        initializer: Any = None,
        merger: Any = None,
        *,
        step: str | None = None,
        **store: Unpack[WindowStoreArguments],
    ) -> table.KTable[Windowed[K], Any]:
        """Aggregate the values of each key and session, from all streams. ``merger(one, two)``, or with the key first,
        merges the aggregates of two sessions."""
        windows, build = self._windows, _Build(self._cogrouped, initializer, step, store)
        merging = UserFunction.of(merger, "merge", f"aggregate {build.store.name}")
        spec = build.options.session(build.store.name, build.key, build.value, windows)
        return build.table(
            spec,
            session_key(spec),
            lambda aggregator: session_operation(
                build.store.name, windows, build.initializer, aggregator, merging
            ),
        )


class _Build:
    """The common part of the aggregations of cogrouped streams. Names are generated in Java's order."""

    def __init__(
        self,
        cogrouped: CogroupedKStream[Any, Any],
        initializer: Callable[[], Any] | None,
        step: str | None,
        store: Mapping[str, Any],
    ) -> None:
        self._aggregators = cogrouped._aggregators
        self._parents = cogrouped._parents
        first = next(iter(self._aggregators))._place
        self._step = step
        refuse(store, "a cogroup", "give an initializer, and an aggregator for each stream")
        if initializer is None:
            raise TopologyError(
                "aggregate of a cogroup needs an initializer",
                hint="aggregate(initializer): a function without arguments that gives the first aggregate of a key",
            )
        self._context: Context = first.context
        self.options = StoreOptions.of("aggregate", store)
        self.key: AnySerde = first.key
        self.store: StoreName = self.options.named(self._context, _AGGREGATE)
        what = f"aggregate {self.store.name}"
        self.initializer = UserFunction.of(initializer, "supply", what)
        self.value: AnySerde = aggregate_serde(self.initializer, self.store.name)
        self._functions = [
            UserFunction.of(function, "aggregate", what) for function in self._aggregators.values()
        ]

    def table(
        self, spec: StoreSpec, key: AnySerde, operation_of: Callable[[UserFunction], _Operation]
    ) -> table.KTable[Any, Any]:
        """Add an aggregation for each stream, all with the same store, and return the resulting table."""
        places = self._places()
        sources = reduce(
            lambda known, place: replace(known, sources=known.copartitioned_with(place)), places
        ).sources
        operations, nodes = self._aggregations(spec, places, operation_of)
        name = self._name("-cogroup-merge", _MERGE)
        merge = ProcessorGraphNode(name, TablePassThrough(spec.name))
        self._context.graph.add(merge, *nodes)
        place = StepPlace(self._context, name, merge, sources, key, spec.value_serde)
        origin = CogroupOrigin(operations, history_ms=spec.history_ms)
        return table.KTable(place, origin, spec, queryable=self.store.by_user)

    def _aggregations(
        self,
        spec: StoreSpec,
        places: Sequence[StepPlace],
        operation_of: Callable[[UserFunction], _Operation],
    ) -> tuple[list[_Operation], list[ProcessorGraphNode]]:
        operations: list[_Operation] = []
        nodes: list[ProcessorGraphNode] = []
        for number, (place, function) in enumerate(zip(places, self._functions, strict=True)):
            operation = operation_of(function)
            node = ProcessorGraphNode(self._name(f"-cogroup-agg-{number}", _AGGREGATE), operation, spec)
            place.add(node)
            operations.append(operation)
            nodes.append(node)
        return operations, nodes

    def _places(self) -> list[StepPlace]:
        """The parent step of each aggregation: behind the stream's repartition topic, if the stream needs one."""
        for stream in self._aggregators:
            place = stream._place
            if not place.needs_repartition:
                self._parents[stream] = place
                continue
            given = stream._repartition
            named = given is not None or self.store.by_user
            node = repartition_node(
                place.context, given or self.store.name, place.key, place.value, named_by_user=named
            )
            if stream not in self._parents:
                place.add(node)
                self._parents[stream] = replace(place, node=node, sources=frozenset({node.name}))
        return [self._parents[stream] for stream in self._aggregators]

    def _name(self, suffix: str, prefix: str) -> str:
        return self._context.names.step(prefix, None if self._step is None else self._step + suffix)
