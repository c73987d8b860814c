"""The origin of a table: how other steps read its rows, and what makes its changes carry old values.

A table is materialized if another step asks for one of these. Source: KTableImpl.valueGetterSupplier,
KTableImpl.enableSendingOldValues and the processor suppliers that they call in turn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeAlias

from pystreams.dsl.operators.aggregate import Aggregate, Reduce
from pystreams.dsl.operators.session_aggregate import SessionAggregate
from pystreams.dsl.operators.sliding_aggregate import SlidingAggregate
from pystreams.dsl.operators.suppress import Suppress, SuppressGetter
from pystreams.dsl.operators.table import TableFilter, TableMapValues, TableSource
from pystreams.dsl.operators.table_aggregate import TableAggregate, TableReduce
from pystreams.dsl.operators.table_join import TableJoin, TableJoinMerge
from pystreams.dsl.operators.transform_values import TableTransformValues, TransformValuesGetter
from pystreams.dsl.operators.value_getter import (
    FilterGetter,
    MapValuesGetter,
    SessionStoreGetter,
    StoreGetter,
    TableJoinGetter,
    ValueGetter,
    WindowStoreGetter,
)
from pystreams.dsl.operators.window_aggregate import WindowAggregate
from pystreams.state.spec import StoreSpec

WindowedAggregate: TypeAlias = WindowAggregate | SlidingAggregate | SessionAggregate
AnyAggregate: TypeAlias = Aggregate | Reduce | WindowedAggregate | TableAggregate | TableReduce
#: The operation of a step on one table.
Derivation: TypeAlias = TableFilter | TableMapValues | TableTransformValues


class TableOrigin(ABC):
    """The origin of one table."""

    def __init__(self, *, history_ms: int | None = None) -> None:
        self._sends_old_values = False
        #: How far back the table keeps versions (ms); None: it is not versioned.
        self.history_ms = history_ms

    @property
    def versioned(self) -> bool:
        """Whether the table is versioned, so that its changes may not be of the latest version. Source: KIP-914."""
        return self.history_ms is not None

    @abstractmethod
    def value_getter(self) -> ValueGetter:
        """How another step reads the table. From now on the table is materialized, by itself or through a parent."""

    def send_old_values(self, *, force: bool) -> bool:
        """Make changes carry old values; returns whether they do. ``force`` materializes a source without a store."""
        if not self._sends_old_values:
            self._sends_old_values = self._send_old_values(force=force)
        return self._sends_old_values

    @abstractmethod
    def _send_old_values(self, *, force: bool) -> bool: ...


class TopicOrigin(TableOrigin):
    """A topic, or a stream that became a table. ``store`` is created as soon as another step needs it."""

    def __init__(self, operation: TableSource, store: StoreSpec) -> None:
        super().__init__(history_ms=store.history_ms)
        self._operation = operation
        self._store = store.name

    def value_getter(self) -> ValueGetter:
        self._operation.store = self._store
        return StoreGetter(self._store)

    def _send_old_values(self, *, force: bool) -> bool:
        if self._operation.store is None and not force:
            return False
        self._operation.store = self._store
        self._operation.send_old_values = True
        return True


class AggregateOrigin(TableOrigin):
    """An aggregation, which always has a store."""

    def __init__(self, operation: AnyAggregate, *, history_ms: int | None = None) -> None:
        super().__init__(history_ms=history_ms)
        self._operation = operation

    def value_getter(self) -> ValueGetter:
        return _getter_of(self._operation)

    def _send_old_values(self, *, force: bool) -> bool:
        self._operation.send_old_values = True
        return True


class CogroupOrigin(TableOrigin):
    """The aggregations of a cogroup, which share a store."""

    def __init__(
        self, operations: Sequence[Aggregate | WindowedAggregate], *, history_ms: int | None = None
    ) -> None:
        super().__init__(history_ms=history_ms)
        self._operations = operations

    def value_getter(self) -> ValueGetter:
        return _getter_of(self._operations[0])

    def _send_old_values(self, *, force: bool) -> bool:
        for operation in self._operations:
            operation.send_old_values = True
        return True


def _getter_of(operation: AnyAggregate) -> ValueGetter:
    if isinstance(operation, SessionAggregate):
        return SessionStoreGetter(operation.store)
    if isinstance(operation, WindowAggregate | SlidingAggregate):
        return WindowStoreGetter(operation.store)
    return StoreGetter(operation.store)


class DerivedOrigin(TableOrigin):
    """A step on another table. Without a store it is computed again each time it is read."""

    def __init__(self, operation: Derivation, parent: TableOrigin, *, history_ms: int | None) -> None:
        super().__init__(history_ms=history_ms)
        self._operation = operation
        self._parent = parent

    def value_getter(self) -> ValueGetter:
        operation = self._operation
        if operation.store is not None:
            return StoreGetter(operation.store)
        below = self._parent.value_getter()
        if isinstance(operation, TableFilter):
            return FilterGetter(below, operation.predicate, operation.negate)
        if isinstance(operation, TableTransformValues):
            return TransformValuesGetter(below, operation.supplier, operation.stores)
        return MapValuesGetter(below, operation.mapper)

    def _send_old_values(self, *, force: bool) -> bool:
        operation = self._operation
        if operation.store is None and not self._parent.send_old_values(force=force):
            return operation.send_old_values
        operation.send_old_values = True
        return True


class SuppressOrigin(TableOrigin):
    """A table whose changes are held back."""

    def __init__(self, operation: Suppress, parent: TableOrigin) -> None:
        super().__init__()
        self._operation = operation
        self._parent = parent

    def value_getter(self) -> ValueGetter:
        return SuppressGetter(self._operation.store, self._parent.value_getter())

    def _send_old_values(self, *, force: bool) -> bool:
        return self._parent.send_old_values(force=force)


class JoinOrigin(TableOrigin):
    """A join of two tables. Without a store it is computed again each time it is read."""

    def __init__(
        self,
        this: TableOrigin,
        other: TableOrigin,
        joins: tuple[TableJoin, TableJoin],
        merge: TableJoinMerge,
        *,
        history_ms: int | None = None,
    ) -> None:
        super().__init__(history_ms=history_ms)
        self._this = this
        self._other = other
        self._joins = joins
        self._merge = merge

    def value_getter(self) -> ValueGetter:
        if self._merge.store is not None:
            return StoreGetter(self._merge.store)
        join = self._joins[0]
        return TableJoinGetter(self._this.value_getter(), self._other.value_getter(), join.joiner, join.kind)

    def _send_old_values(self, *, force: bool) -> bool:
        for origin in (self._this, self._other):
            origin.send_old_values(force=True)
        for operation in (*self._joins, self._merge):
            operation.send_old_values = True
        return True
