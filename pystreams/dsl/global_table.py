"""Global tables: topics of which every process keeps all rows, for streams to be joined with by any key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, overload

from pystreams.dsl.context import Context, Place
from pystreams.dsl.materialized import StoreOptions, UntypedStoreArguments
from pystreams.dsl.operators.global_table_join import GlobalTableJoin
from pystreams.dsl.operators.table import TableSource
from pystreams.dsl.serdes import TypeOrSerde, returned_by
from pystreams.dsl.sources import source_node, source_serdes
from pystreams.errors import TopologyError
from pystreams.functions import UserFunction
from pystreams.state.spec import StoreSpec
from pystreams.timestamps import GlobalRecordTimestamp
from pystreams.topology.arguments import checked_store
from pystreams.topology.graph import GlobalStoreGraphNode, ProcessorGraphNode
from pystreams.topology.names import checked
from pystreams.topology.nodes import Operation, Process

if TYPE_CHECKING:
    from pystreams.processor import Processor

K = TypeVar("K")
V = TypeVar("V")


class GlobalKTable(Generic[K, V]):
    """All rows of a topic, whatever partition they are in. Streams join with it; nothing else follows it.

    Source: GlobalKTable, GlobalKTableImpl.
    """

    def __init__(self, context: Context, store: StoreSpec, *, queryable: bool) -> None:
        self._context = context
        self._store = store
        self._queryable = queryable

    def __repr__(self) -> str:
        spec = self._store
        return f"GlobalKTable(store {spec.name!r}, key={spec.key_serde!r}, value={spec.value_serde!r})"

    @property
    def queryable_store_name(self) -> str | None:
        """The store that holds this table, if it was given a name."""
        return self._store.name if self._queryable else None


class GlobalTables:
    """What ``StreamsBuilder`` inherits."""

    def __init__(self) -> None:
        self._context = Context()

    @overload
    def global_table(
        self,
        topic: str,
        *,
        key: TypeOrSerde[K],
        value: TypeOrSerde[V],
        step: str | None = ...,
        **store: Unpack[UntypedStoreArguments],
    ) -> GlobalKTable[K, V]: ...
    @overload
    def global_table(
        self,
        topic: str,
        *,
        key: TypeOrSerde[K],
        step: str | None = ...,
        **store: Unpack[UntypedStoreArguments],
    ) -> GlobalKTable[K, Any]: ...
    @overload
    def global_table(
        self,
        topic: str,
        *,
        value: TypeOrSerde[V],
        step: str | None = ...,
        **store: Unpack[UntypedStoreArguments],
    ) -> GlobalKTable[Any, V]: ...
    @overload
    def global_table(
        self, topic: str, *, step: str | None = ..., **store: Unpack[UntypedStoreArguments]
    ) -> GlobalKTable[Any, Any]: ...
    def global_table(
        self,
        topic: str,
        *,
        key: Any = None,
        value: Any = None,
        step: str | None = None,
        **store: Unpack[UntypedStoreArguments],
    ) -> GlobalKTable[Any, Any]:
        """A topic as a table that every process keeps whole, read to its end before anything else starts. Each record
        replaces the value of its key, None deletes it, a null key is dropped.

        It is small, changes seldom, and may be partitioned in any way. Rows have the time of their records; a timestamp
        extractor is not asked. It has no changelog: the topic is one, and should be compacted.
        """
        names = self._context.names
        options = StoreOptions.of("global_table", store)
        if options.was is not None:
            raise TopologyError(
                "a global table does not take was=",
                why="it is filled from its topic, whatever the store is called",
            )
        # Its topic is its changelog.
        store_name = replace(options, logged=False).named(self._context, f"{topic}-")
        source_name = names.step("KSTREAM-SOURCE-", None if step is None else f"{step}-source")
        name = names.step("KTABLE-SOURCE-", step)
        keys, values = source_serdes(source_name, key, value)
        spec = replace(options.key_value(store_name.name, keys, values), cached=False, logged=False)
        if spec.kind == "versioned":
            raise TopologyError(
                "a global table cannot keep a history",
                where=name,
                hint="leave history= out; join a stream with a table(...) that keeps one",
            )
        self._fill(spec, source_name, topic, name, TableSource(spec.name), key, value)
        return GlobalKTable(self._context, spec, queryable=store_name.by_user)

    def add_global_store(
        self,
        store: StoreSpec,
        topic: str,
        supplier: Callable[[], Processor[Any, Any, Any, Any]],
        *,
        key: TypeOrSerde[Any] | None = None,
        value: TypeOrSerde[Any] | None = None,
        step: str | None = None,
    ) -> None:
        """Add a store that every process keeps whole, and that a processor of yours fills from all partitions of
        ``topic``; ``supplier`` (its class, say) gives a new one. All processors may read it, none may write it.

        The processor is handed the records anew where the store is not there any more, so it must make of them what it
        made before. It can neither forward nor schedule. ``key`` and ``value`` are the types of the topic.
        """
        names = self._context.names
        source_name = names.step("KSTREAM-SOURCE-", None if step is None else f"{step}-source")
        name = names.step("KTABLE-SOURCE-", step)
        if not callable(supplier):
            raise TopologyError(
                f"{name} got {supplier!r}, which is not a processor's class or factory",
                hint="give the class, or a function that makes a new processor at each call",
            )
        UserFunction.of(supplier, "supply", f"add_global_store {name}")
        checked(checked_store(store).name)
        spec = replace(store, cached=False, logged=False)
        self._fill(spec, source_name, topic, name, Process(supplier), key, value)

    def _fill(
        self, spec: StoreSpec, source: str, topic: str, name: str, operation: Operation, key: Any, value: Any
    ) -> None:
        if not isinstance(topic, str):
            raise TopologyError(f"{name} fills a global store from one topic, not from {topic!r}")
        keys, values = source_serdes(source, key, value)
        node = source_node(source, topic, keys, values, GlobalRecordTimestamp(), None)
        self._context.graph.add(GlobalStoreGraphNode(name, node, operation, spec))


def refuse_key_fn(method: str, key_fn: object) -> None:
    """Raise ``TopologyError`` if ``key_fn`` is given where the records' own key decides."""
    if key_fn is not None:
        raise TopologyError(
            f"key_fn= of {method} is for joins with global tables",
            why="other joins are by the records' own key",
            hint="change it before, with select_key, or read the topic with global_table(...)",
        )


def joined_with_global(
    place: Place,
    other: GlobalKTable[Any, Any],
    joiner: Callable[..., Any],
    key_fn: object,
    value: Any,
    step: str | None,
    *,
    left: bool,
) -> Place:
    """A stream joined with a global table, which needs no repartitioning. Source: KStreamImpl.doGlobalTableJoin."""
    method = "left_join" if left else "join"
    if not callable(key_fn):
        raise TopologyError(
            f"{method} with a global table needs key_fn=, a function that names the row to join with",
            hint="key_fn=lambda key, value: key joins by the record's key",
        )
    if other._context is not place.context:
        raise TopologyError(
            f"{place.name} and the global table of store {other._store.name} belong to different builders",
            hint="use one App for all",
        )
    name = place.context.names.step("KSTREAM-LEFTJOIN-", step)
    operation = GlobalTableJoin(
        other._store.name,
        UserFunction.of(key_fn, "value", f"key_fn of {name}"),
        UserFunction.of(joiner, "join", f"{method} {name}"),
        left,
    )
    node = ProcessorGraphNode(name, operation, keeps_null_keys=left)
    place.add(node)
    serde = returned_by(
        value,
        f"the value that {name} computes",
        operation.joiner,
        place.value,
        other._store.value_serde,
    )
    return replace(place, name=name, node=node, value=serde)
