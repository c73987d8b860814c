"""Global tables: every process keeps all rows of a topic, and streams join with them by any key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, overload

from pystreams.dsl.context import Context, StepPlace
from pystreams.dsl.expressions import step_function
from pystreams.dsl.keywords import suggests_keywords
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
    """All rows of a topic, from all partitions. Streams can join with it; it has no other operations.

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
        """The name of the table's store, if the program gave one."""
        return self._store.name if self._queryable else None


@suggests_keywords
class GlobalTables:
    """Base class of ``StreamsBuilder``: global tables and stores."""

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
        """Read a topic as a table of which every process keeps a full copy, read to its end before processing starts.
        Each record replaces the value of its key, None deletes it, a null key is dropped.

        It should be small and change seldom, and need not be co-partitioned. Rows have the timestamps of their records;
        timestamp extractors are not called. It has no changelog: it is restored from the topic, which should be
        compacted.
        """
        names = self._context.names
        options = StoreOptions.of("global_table", store)
        if options.was is not None:
            raise TopologyError(
                "a global table does not take was=",
                why="it is filled from its topic, whatever the name of its store is",
            )
        # Its topic serves as its changelog.
        store_name = replace(options, logged=False).named(self._context, f"{topic}-")
        source_name = names.step("KSTREAM-SOURCE-", None if step is None else f"{step}-source")
        name = names.step("KTABLE-SOURCE-", step)
        keys, values = source_serdes(source_name, key, value)
        spec = replace(options.key_value(store_name.name, keys, values), cached=False, logged=False)
        if spec.kind == "versioned":
            raise TopologyError(
                "a global table cannot keep a history",
                where=name,
                hint="leave out history=, or join with a table(...) that keeps one",
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
        """Add a store of which every process keeps a full copy. A processor of yours fills it from all partitions of
        ``topic``; ``supplier`` (its class, for example) makes one. All processors may read it, no other may write it.

        If the store is lost, the processor receives the records again, so it must store the same for the same
        records. It can neither forward nor schedule. ``key`` and ``value`` are the types of the topic.
        """
        names = self._context.names
        source_name = names.step("KSTREAM-SOURCE-", None if step is None else f"{step}-source")
        name = names.step("KTABLE-SOURCE-", step)
        if not callable(supplier):
            raise TopologyError(
                f"{name} got {supplier!r}, which is not a class or function that makes a processor",
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
    """Raise ``TopologyError`` if ``key_fn`` is given for a join by the records' own key."""
    if key_fn is not None:
        raise TopologyError(
            f"key_fn= of {method} is for joins with global tables",
            why="other joins use the records' own key",
            hint="change the key before with select_key, or read the topic with global_table(...)",
        )


def joined_with_global(
    place: StepPlace,
    other: GlobalKTable[Any, Any],
    joiner: Callable[..., Any],
    key_fn: object,
    value: Any,
    step: str | None,
    *,
    left: bool,
) -> StepPlace:
    """A stream joined with a global table, without repartitioning. Source: KStreamImpl.doGlobalTableJoin."""
    method = "left_join" if left else "join"
    if not callable(key_fn):
        raise TopologyError(
            f"{method} with a global table needs key_fn=, a function that returns the key of the row to join with",
            hint="to join by the record's key, give key_fn=lambda key, value: key",
        )
    place.check_same_builder(other._context, f"the global table of store {other._store.name}")
    name = place.context.names.step("KSTREAM-LEFTJOIN-", step)
    operation = GlobalTableJoin(
        other._store.name,
        step_function(key_fn, "value", f"key_fn of {name}", place.value),
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
