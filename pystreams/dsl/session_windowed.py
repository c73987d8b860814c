"""Grouped streams in sessions, for aggregation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, Unpack, overload

from pystreams.dsl import grouped, table
from pystreams.dsl.aggregates.declaring import Aggregate, declared, split
from pystreams.dsl.durations import Duration
from pystreams.dsl.keywords import suggests_keywords
from pystreams.dsl.materialized import StoreName, StoreOptions, WindowStoreArguments
from pystreams.dsl.operators.folding import NOTHING, ONE_MORE, SUM, ZERO, aggregator_of
from pystreams.dsl.operators.session_aggregate import SessionAggregate
from pystreams.dsl.prefixes import AGGREGATE, REDUCE
from pystreams.dsl.serdes import TypeOrSerde, aggregate_serde
from pystreams.dsl.windows import EmitStrategy, SessionWindows, emits_on_close
from pystreams.functions import UserFunction
from pystreams.serde import INT, SessionWindowedSerde
from pystreams.serde.base import AnySerde
from pystreams.state.spec import StoreSpec
from pystreams.topology.deferred import wrapped
from pystreams.windowed import Windowed

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


@suggests_keywords
class SessionWindowedKStream(Generic[K, V]):
    """A stream grouped by key and session. Records later than the session's gap and grace are dropped and counted. So
    are null keys; null values are aggregated, as in Java.

    A session that grows or merges with others gets a new key: each old session is deleted, with a change of its own.
    The store keeps sessions for gap and grace, or for ``retention=``. Source: SessionWindowedKStreamImpl.
    """

    def __init__(self, grouped: grouped.KGroupedStream[K, V], windows: SessionWindows) -> None:
        self._grouped = grouped
        self._windows = windows
        self._on_close = False

    def __repr__(self) -> str:
        return f"SessionWindowedKStream({self._grouped._place!r}, {self._windows})"

    def emit_strategy(self, strategy: EmitStrategy) -> SessionWindowedKStream[K, V]:
        """Choose when results are emitted: ``EmitStrategy.on_window_update()`` (default) or ``on_window_close()``.

        On close, each session is emitted once, when a record moves stream time past its end, gap and grace, even far
        past. Java loses a session that its store has expired by then.
        """
        self._on_close = emits_on_close(strategy)
        return self

    def count(
        self, *, step: str | None = None, **store: Unpack[WindowStoreArguments]
    ) -> table.KTable[Windowed[K], int]:
        """Count the records of each key and session."""
        options = StoreOptions.of("count", store)
        name = options.named_for_count(self._grouped._place.context, AGGREGATE)
        return self._aggregated(ZERO, ONE_MORE, SUM, AGGREGATE, step, options, name, INT)

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
        """Combine the values of each key and session. The first value is the first aggregate."""
        options = StoreOptions.of("reduce", store)
        name = options.named(self._grouped._place.context, REDUCE)
        aggregator = aggregator_of(UserFunction.of(reducer, "aggregate", f"reduce {name.name}"))
        value = self._grouped._place.value
        return self._aggregated(NOTHING, aggregator, aggregator, REDUCE, step, options, name, value)

    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[A, V], A],
        merger: Callable[[A, A], A],
        *,
        step: str | None = ...,
        **store: Unpack[WindowStoreArguments],
    ) -> table.KTable[Windowed[K], A]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[A, V], A],
        merger: Callable[[K, A, A], A],
        *,
        step: str | None = ...,
        **store: Unpack[WindowStoreArguments],
    ) -> table.KTable[Windowed[K], A]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, A, V], A],
        merger: Callable[[A, A], A],
        *,
        step: str | None = ...,
        **store: Unpack[WindowStoreArguments],
    ) -> table.KTable[Windowed[K], A]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, A, V], A],
        merger: Callable[[K, A, A], A],
        *,
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
        merger: Any = None,
        *,
        step: str | None = None,
        **store: Any,
    ) -> table.KTable[Windowed[K], Any]:
        """Aggregate the values of each key and session, as ``KGroupedStream.aggregate``.

        ``merger(one, two)``, or with the key first, merges two aggregates: that of the new session, which starts with
        ``initializer()``, and those of the sessions that it replaces, in the order of their ends.
        """
        fields, arguments = split(store, step, initializer=initializer, aggregator=aggregator, merger=merger)
        options = StoreOptions.of("aggregate", arguments)
        name = options.named(self._grouped._place.context, AGGREGATE)
        if fields:
            rows, stored, shown, options = declared(fields, options, name, self._grouped._place.value)
            begin, add, merge = rows.initializer, rows.aggregator, rows.merger
            return self._aggregated(begin, add, merge, AGGREGATE, step, options, name, stored, shown)
        start = UserFunction.of(initializer, "supply", f"aggregate {name.name}")
        function = UserFunction.of(aggregator, "aggregate", f"aggregate {name.name}")
        merging = UserFunction.of(merger, "merge", f"aggregate {name.name}")
        value = aggregate_serde(start, name.name)
        return self._aggregated(start, function, merging, AGGREGATE, step, options, name, value)

    def _aggregated(
        self,
        initializer: UserFunction,
        aggregator: UserFunction,
        merger: UserFunction,
        prefix: str,
        step: str | None,
        options: StoreOptions,
        store: StoreName,
        value: AnySerde,
        shown: AnySerde | None = None,
    ) -> table.KTable[Windowed[K], Any]:
        windows, on_close = self._windows, self._on_close
        spec = options.session(store.name, self._grouped._place.key, value, windows, on_close=on_close)
        operation = session_operation(store.name, windows, initializer, aggregator, merger, on_close=on_close)
        key = session_key(spec)
        by_user = store.by_user
        return self._grouped._table(operation, spec, key, prefix, step, shown, store_by_user=by_user)


def session_operation(
    store: str,
    windows: SessionWindows,
    initializer: UserFunction,
    aggregator: UserFunction,
    merger: UserFunction,
    *,
    on_close: bool = False,
) -> SessionAggregate:
    """The operation that aggregates into a session store."""
    gap_ms, grace_ms = windows.gap_ms, windows.grace_ms
    return SessionAggregate(store, gap_ms, grace_ms, initializer, aggregator, merger, on_close=on_close)


def session_key(spec: StoreSpec) -> AnySerde:
    """The keys of a table of sessions, whose store has the plain ones."""
    return wrapped(spec.key_serde, SessionWindowedSerde)
