"""Grouped streams in windows of event time, for aggregation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, Unpack, overload

from pystreams.dsl import grouped, table
from pystreams.dsl.aggregates.declaring import Aggregate, declared, split
from pystreams.dsl.durations import Duration
from pystreams.dsl.keywords import suggests_keywords
from pystreams.dsl.materialized import AnyTimeWindows, StoreName, StoreOptions, WindowStoreArguments
from pystreams.dsl.operators.folding import NOTHING, ONE_MORE, SUM, ZERO, aggregator_of, merging
from pystreams.dsl.operators.sliding_aggregate import SlidingAggregate
from pystreams.dsl.operators.window_aggregate import WindowAggregate
from pystreams.dsl.prefixes import AGGREGATE, REDUCE
from pystreams.dsl.serdes import TypeOrSerde, aggregate_serde
from pystreams.dsl.windows import EmitStrategy, SlidingWindows, UnlimitedWindows, emits_on_close
from pystreams.errors import TopologyError
from pystreams.functions import UserFunction
from pystreams.serde import INT, TimeWindowedSerde
from pystreams.serde.base import AnySerde
from pystreams.state.spec import StoreSpec
from pystreams.topology.deferred import wrapped
from pystreams.windowed import Windowed

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


@suggests_keywords
class TimeWindowedKStream(Generic[K, V]):
    """A stream grouped by key and window. Records later than the window's grace are dropped and counted. So are null
    keys, and null values in sliding windows; in other windows null values are aggregated, as in Java.

    The store keeps windows for size and grace (sliding windows: twice the time difference, and grace), or for
    ``retention=``. Source: TimeWindowedKStreamImpl, SlidingWindowedKStreamImpl.
    """

    def __init__(self, grouped: grouped.KGroupedStream[K, V], windows: AnyTimeWindows) -> None:
        self._grouped = grouped
        self._windows = windows
        self._on_close = False

    def __repr__(self) -> str:
        return f"TimeWindowedKStream({self._grouped._place!r}, {self._windows})"

    def emit_strategy(self, strategy: EmitStrategy) -> TimeWindowedKStream[K, V]:
        """Choose when results are emitted: ``EmitStrategy.on_window_update()`` (default) or ``on_window_close()``.

        On close, each window is emitted once, when a record moves stream time past its end and grace, even far past.
        Java loses a window that its store has expired by then.
        """
        self._on_close = emits_on_close(strategy)
        if self._on_close and isinstance(self._windows, UnlimitedWindows):
            raise TopologyError(
                "unlimited windows never close, so they cannot be emitted on close",
                hint="give EmitStrategy.on_window_update(), or windows that end",
            )
        return self

    def count(
        self, *, step: str | None = None, **store: Unpack[WindowStoreArguments]
    ) -> table.KTable[Windowed[K], int]:
        """Count the records of each key and window."""
        options = StoreOptions.of("count", store)
        context = self._grouped._place.context
        if isinstance(self._windows, SlidingWindows):
            name = options.named(context, AGGREGATE)
        else:
            name = options.named_for_count(context, AGGREGATE)
        return self._aggregated(ZERO, ONE_MORE, SUM, AGGREGATE, step, options, name, INT)

    @overload
    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        merge: Callable[[V, V], V] | None = ...,
        step: str | None = ...,
        **store: Unpack[WindowStoreArguments],
    ) -> table.KTable[Windowed[K], V]: ...
    @overload
    def reduce(
        self,
        reducer: Callable[[K, V, V], V],
        *,
        merge: Callable[[V, V], V] | None = ...,
        step: str | None = ...,
        **store: Unpack[WindowStoreArguments],
    ) -> table.KTable[Windowed[K], V]: ...
    def reduce(
        self,
        reducer: Callable[..., Any],
        *,
        merge: Callable[[V, V], V] | None = None,
        step: str | None = None,
        **store: Unpack[WindowStoreArguments],
    ) -> table.KTable[Windowed[K], V]:
        """Combine the values of each key and window. The first value is the first aggregate. ``merge``: see
        ``KGroupedStream.reduce``."""
        options = StoreOptions.of("reduce", store)
        name = options.named(self._grouped._place.context, REDUCE)
        aggregator = aggregator_of(UserFunction.of(reducer, "aggregate", f"reduce {name.name}"))
        value, merger = self._grouped._place.value, merging(merge, f"reduce {name.name}")
        return self._aggregated(NOTHING, aggregator, merger, REDUCE, step, options, name, value)

    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[A, V], A],
        *,
        merge: Callable[[A, A], A] | None = ...,
        step: str | None = ...,
        **store: Unpack[WindowStoreArguments],
    ) -> table.KTable[Windowed[K], A]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, A, V], A],
        *,
        merge: Callable[[A, A], A] | None = ...,
        step: str | None = ...,
        **store: Unpack[WindowStoreArguments],
    ) -> table.KTable[Windowed[K], A]: ...
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
        retention: Duration = ...,
        **fields: Aggregate,
    ) -> table.KTable[Windowed[K], A]: ...
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
        retention: Duration = ...,
        **fields: Aggregate,
    ) -> table.KTable[Windowed[K], Any]: ...
    def aggregate(
        self,
        initializer: Any = None,
        aggregator: Any = None,
        *,
        merge: Any = None,
        step: str | None = None,
        **store: Any,
    ) -> table.KTable[Windowed[K], Any]:
        """Aggregate the values of each key and window, as ``KGroupedStream.aggregate``."""
        fields, arguments = split(store, step, merge, initializer=initializer, aggregator=aggregator)
        options = StoreOptions.of("aggregate", arguments)
        name = options.named(self._grouped._place.context, AGGREGATE)
        if fields:
            rows, stored, shown, options = declared(fields, options, name, self._grouped._place.value)
            begin, add, merger = rows.initializer, rows.aggregator, rows.merger
            return self._aggregated(begin, add, merger, AGGREGATE, step, options, name, stored, shown)
        start = UserFunction.of(initializer, "supply", f"aggregate {name.name}")
        function = UserFunction.of(aggregator, "aggregate", f"aggregate {name.name}")
        value, merging_by = aggregate_serde(start, name.name), merging(merge, f"aggregate {name.name}")
        return self._aggregated(start, function, merging_by, AGGREGATE, step, options, name, value)

    def _aggregated(
        self,
        initializer: UserFunction,
        aggregator: UserFunction,
        merger: UserFunction | None,
        prefix: str,
        step: str | None,
        options: StoreOptions,
        store: StoreName,
        value: AnySerde,
        shown: AnySerde | None = None,
    ) -> table.KTable[Windowed[K], Any]:
        windows, on_close = self._windows, self._on_close
        spec = options.window(store.name, self._grouped._place.key, value, windows, on_close=on_close)
        operation = window_operation(store.name, windows, initializer, aggregator, merger, on_close=on_close)
        key = windowed_key(spec, windows)
        by_user = store.by_user
        return self._grouped._table(operation, spec, key, prefix, step, shown, store_by_user=by_user)


def window_operation(
    store: str,
    windows: AnyTimeWindows,
    initializer: UserFunction,
    aggregator: UserFunction,
    merger: UserFunction | None = None,
    *,
    on_close: bool = False,
) -> WindowAggregate | SlidingAggregate:
    """The operation that aggregates into a window store."""
    if isinstance(windows, SlidingWindows):
        return SlidingAggregate(
            store, windows.difference_ms, windows.grace_ms, initializer, aggregator, on_close=on_close
        )
    if isinstance(windows, UnlimitedWindows):
        size = windows.size_ms
        return WindowAggregate(
            store, size, size, 0, initializer, aggregator, merger, start_ms=windows.start_ms
        )
    return WindowAggregate(
        store,
        windows.size_ms,
        windows.advance_ms,
        windows.grace_ms,
        initializer,
        aggregator,
        merger,
        on_close=on_close,
    )


def windowed_key(spec: StoreSpec, windows: AnyTimeWindows) -> AnySerde:
    """The serde of a windowed table's keys; its store has the inner keys."""
    size_ms = windows.size_ms
    return wrapped(spec.key_serde, lambda inner: TimeWindowedSerde(inner, size_ms))
