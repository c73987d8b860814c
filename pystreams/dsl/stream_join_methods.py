"""Joins of a stream with a table or another stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, overload

from pystreams.dsl import stream_joins, table, table_grace
from pystreams.dsl.context import StepPlace
from pystreams.dsl.durations import Duration
from pystreams.dsl.global_table import GlobalKTable, joined_with_global, refuse_key_fn
from pystreams.dsl.join_windows import JoinWindows
from pystreams.dsl.keywords import suggests_keywords
from pystreams.dsl.operators.stream_table_join import StreamTableJoin
from pystreams.dsl.operators.value_getter import JoinKind
from pystreams.dsl.repartition import repartition_node
from pystreams.dsl.serdes import TypeOrSerde, check_keys_meet, returned_by
from pystreams.dsl.stream_joins import JoinStoreArguments
from pystreams.errors import TopologyError
from pystreams.functions import UserFunction
from pystreams.serde.base import AnySerde
from pystreams.topology.graph import ProcessorGraphNode, RepartitionGraphNode

if TYPE_CHECKING:
    from pystreams.dsl.stream import KStream

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")
T = TypeVar("T")


@suggests_keywords
class Joins(Generic[K, V]):
    """Base class of ``KStream``: joins."""

    def __init__(self, place: StepPlace) -> None:
        self._place = place
        self._repartition_node: RepartitionGraphNode | None = None

    @overload
    def join(
        self,
        other: table.KTable[K, T],
        joiner: Callable[[V, T], V2],
        *,
        grace: Duration | None = ...,
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K, V2]: ...
    @overload
    def join(
        self,
        other: table.KTable[K, T],
        joiner: Callable[[K, V, T], V2],
        *,
        grace: Duration | None = ...,
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K, V2]: ...
    @overload
    def join(
        self,
        other: KStream[K, T],
        joiner: Callable[[V, T], V2],
        *,
        windows: JoinWindows,
        key: TypeOrSerde[K] | None = ...,
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
        **stores: Unpack[JoinStoreArguments],
    ) -> KStream[K, V2]: ...
    @overload
    def join(
        self,
        other: KStream[K, T],
        joiner: Callable[[K, V, T], V2],
        *,
        windows: JoinWindows,
        key: TypeOrSerde[K] | None = ...,
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
        **stores: Unpack[JoinStoreArguments],
    ) -> KStream[K, V2]: ...
    @overload
    def join(
        self,
        other: GlobalKTable[K2, T],
        joiner: Callable[[V, T], V2],
        *,
        key_fn: Callable[[V], K2 | None],
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K, V2]: ...
    @overload
    def join(
        self,
        other: GlobalKTable[K2, T],
        joiner: Callable[[V, T], V2],
        *,
        key_fn: Callable[[K, V], K2 | None],
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K, V2]: ...
    @overload
    def join(
        self,
        other: GlobalKTable[K2, T],
        joiner: Callable[[K, V, T], V2],
        *,
        key_fn: Callable[[V], K2 | None],
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K, V2]: ...
    @overload
    def join(
        self,
        other: GlobalKTable[K2, T],
        joiner: Callable[[K, V, T], V2],
        *,
        key_fn: Callable[[K, V], K2 | None],
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K, V2]: ...
    def join(
        self,
        other: Any,
        joiner: Callable[..., Any],
        *,
        key_fn: Callable[..., Any] | None = None,
        windows: JoinWindows | None = None,
        grace: Duration | None = None,
        key: Any = None,
        value: Any = None,
        step: str | None = None,
        **stores: Any,
    ) -> KStream[K, Any]:
        """With a table: join each record with the table's current row of its key; a record without a row has no
        result. A table with a ``history`` gives the row of the record's own time; with ``grace`` the record first
        waits this long, in stream time, for late rows.

        With a global table: join each record with the row whose key ``key_fn`` (of the value, or key and value)
        returns.

        With a stream: join each pair of records with the same key and with timestamps within ``windows``, as soon as
        both have arrived. The result has the later timestamp. Null keys and null values are dropped.

        ``value`` is the type of the result of ``joiner``, ``key`` the type of both streams' keys. ``step`` also names
        the repartition topics, if the join needs any. ``name``, ``logged``, ``persistent`` and ``changelog_config``
        are for the stores of a join of two streams.
        """
        if grace is not None:
            table_grace.refuse_grace("join", other)
        if isinstance(other, Joins):
            refuse_key_fn("join", key_fn)
            return self._join_stream(other, joiner, JoinKind.INNER, windows, (key, value), step, stores)
        stream_joins.refuse_stream_arguments("join", windows, key, stores)
        if isinstance(other, GlobalKTable):
            return self._at(joined_with_global(self._place, other, joiner, key_fn, value, step, left=False))
        refuse_key_fn("join", key_fn)
        return self._join_table(other, joiner, value, step, grace, left=False)

    @overload
    def left_join(
        self,
        other: table.KTable[K, T],
        joiner: Callable[[V, T | None], V2],
        *,
        grace: Duration | None = ...,
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K, V2]: ...
    @overload
    def left_join(
        self,
        other: table.KTable[K, T],
        joiner: Callable[[K, V, T | None], V2],
        *,
        grace: Duration | None = ...,
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K, V2]: ...
    @overload
    def left_join(
        self,
        other: KStream[K, T],
        joiner: Callable[[V, T | None], V2],
        *,
        windows: JoinWindows,
        key: TypeOrSerde[K] | None = ...,
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
        **stores: Unpack[JoinStoreArguments],
    ) -> KStream[K, V2]: ...
    @overload
    def left_join(
        self,
        other: KStream[K, T],
        joiner: Callable[[K, V, T | None], V2],
        *,
        windows: JoinWindows,
        key: TypeOrSerde[K] | None = ...,
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
        **stores: Unpack[JoinStoreArguments],
    ) -> KStream[K, V2]: ...
    @overload
    def left_join(
        self,
        other: GlobalKTable[K2, T],
        joiner: Callable[[V, T | None], V2],
        *,
        key_fn: Callable[[V], K2 | None],
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K, V2]: ...
    @overload
    def left_join(
        self,
        other: GlobalKTable[K2, T],
        joiner: Callable[[V, T | None], V2],
        *,
        key_fn: Callable[[K, V], K2 | None],
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K, V2]: ...
    @overload
    def left_join(
        self,
        other: GlobalKTable[K2, T],
        joiner: Callable[[K, V, T | None], V2],
        *,
        key_fn: Callable[[V], K2 | None],
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K, V2]: ...
    @overload
    def left_join(
        self,
        other: GlobalKTable[K2, T],
        joiner: Callable[[K, V, T | None], V2],
        *,
        key_fn: Callable[[K, V], K2 | None],
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K, V2]: ...
    def left_join(
        self,
        other: Any,
        joiner: Callable[..., Any],
        *,
        key_fn: Callable[..., Any] | None = None,
        windows: JoinWindows | None = None,
        grace: Duration | None = None,
        key: Any = None,
        value: Any = None,
        step: str | None = None,
        **stores: Any,
    ) -> KStream[K, Any]:
        """As ``join``, but a record without a match is joined with None.

        With a stream, this is known only when the record's window has closed, grace included. Until a later record of
        either stream moves stream time that far, the record waits in a store; the result has its timestamp. A record
        that arrives too late for any match, and one without a key, is joined with None at once.
        """
        if grace is not None:
            table_grace.refuse_grace("left_join", other)
        if isinstance(other, Joins):
            refuse_key_fn("left_join", key_fn)
            return self._join_stream(other, joiner, JoinKind.LEFT, windows, (key, value), step, stores)
        stream_joins.refuse_stream_arguments("left_join", windows, key, stores)
        if isinstance(other, GlobalKTable):
            return self._at(joined_with_global(self._place, other, joiner, key_fn, value, step, left=True))
        refuse_key_fn("left_join", key_fn)
        return self._join_table(other, joiner, value, step, grace, left=True)

    @overload
    def outer_join(
        self,
        other: KStream[K, T],
        joiner: Callable[[V | None, T | None], V2],
        *,
        windows: JoinWindows,
        key: TypeOrSerde[K] | None = ...,
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
        **stores: Unpack[JoinStoreArguments],
    ) -> KStream[K, V2]: ...
    @overload
    def outer_join(
        self,
        other: KStream[K, T],
        joiner: Callable[[K, V | None, T | None], V2],
        *,
        windows: JoinWindows,
        key: TypeOrSerde[K] | None = ...,
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
        **stores: Unpack[JoinStoreArguments],
    ) -> KStream[K, V2]: ...
    def outer_join(
        self,
        other: Any,
        joiner: Callable[..., Any],
        *,
        windows: JoinWindows | None = None,
        key: Any = None,
        value: Any = None,
        step: str | None = None,
        **stores: Any,
    ) -> KStream[K, Any]:
        """As ``left_join`` with a stream, but records of the other stream may be without a match, too."""
        if not isinstance(other, Joins):
            raise TopologyError(
                f"outer_join of a stream takes a stream, not {type(other).__name__}",
                why="a table's rows have no window after which they would count as unmatched",
                hint="use left_join, or join the streams that both come from",
            )
        return self._join_stream(other, joiner, JoinKind.OUTER, windows, (key, value), step, stores)

    def _join_stream(
        self,
        other: Joins[K, Any],
        joiner: Callable[..., Any],
        kind: JoinKind,
        windows: object,
        types: tuple[Any, Any],
        step: str | None,
        stores: dict[str, Any],
    ) -> KStream[K, Any]:
        return self._at(stream_joins.joined(self, other, joiner, kind, windows, types, step, stores))

    def _join_table(
        self,
        other: table.KTable[K, Any],
        joiner: Callable[..., Any],
        value: Any,
        step: str | None,
        grace: Duration | None,
        *,
        left: bool,
    ) -> KStream[K, Any]:
        method = "left_join" if left else "join"
        if not isinstance(other, table.KTable):
            raise TopologyError(
                f"{method} takes a table or a stream, not {type(other).__name__}",
                hint="read a topic as a table with table(...), or as a stream with stream(...)",
            )
        place = self._place
        check_keys_meet(method, place.name, place.key, other._place.name, other._place.key)
        if place.needs_repartition:
            place = self._repartitioned_for_join(step, place.key)
        sources = place.copartitioned_with(other._place)
        prefix = "KSTREAM-LEFTJOIN-" if left else "KSTREAM-JOIN-"
        name = place.context.names.step(prefix, step)
        function = UserFunction.of(joiner, "join", f"{method} {name}")
        getter = other._origin.value_getter()
        operation = StreamTableJoin(getter, function, left)
        spec = None
        if grace is not None:
            spec = table_grace.buffer(place, name, step, other._origin, grace)
            operation.store, operation.grace_ms = spec.name, spec.retention_ms
        node = ProcessorGraphNode(
            name,
            operation,
            spec,
            connected=getter.store_names(),
            keeps_null_keys=left,
        )
        place.add(node)
        serde = returned_by(
            value, f"the value that {name} computes", function, place.value, other._place.value
        )
        return self._at(StepPlace(place.context, name, node, sources, place.key, serde))

    def _repartitioned_for_join(self, topic: str | None, key: AnySerde) -> StepPlace:
        """The place after the repartition topic, whose keys have this serde. Unnamed joins share the topic, as in
        Java."""
        place = self._place
        node = repartition_node(
            place.context, topic or place.name, key, place.value, named_by_user=topic is not None
        )
        if self._repartition_node is None or (topic is not None and topic != place.name):
            self._repartition_node = node
            place.add(node)
        return self._behind(self._repartition_node, added=True)

    def _behind(self, node: RepartitionGraphNode, *, added: bool = False) -> StepPlace:
        """The place after a repartition topic, with the serdes that read it."""
        place = self._place
        if not added:
            place.add(node)
        key, value = node.source.key_serde, node.source.value_serde
        assert key is not None
        assert value is not None
        return StepPlace(place.context, node.name, node, frozenset({node.name}), key, value)

    def _at(self, place: StepPlace) -> KStream[K, Any]:
        """A stream of the same class that continues from another place."""
        made: Any = type(self)(place)
        found: KStream[K, Any] = made
        return found
