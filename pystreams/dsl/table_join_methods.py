"""The joins of a table with other tables, by key and by foreign key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, cast, overload

from pystreams.dsl import foreign_key_joins, table_joins
from pystreams.dsl.foreign_key_joins import ForeignKeyOptions
from pystreams.dsl.keywords import suggests_keywords
from pystreams.dsl.materialized import StoreArguments, StoreOptions
from pystreams.dsl.operators.value_getter import JoinKind
from pystreams.processor import Partitioner

if TYPE_CHECKING:
    from pystreams.dsl.table import KTable

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")
T = TypeVar("T")


@suggests_keywords
class TableJoins(Generic[K, V]):
    """Base class of ``KTable``: joins with other tables."""

    @overload
    def join(
        self,
        other: KTable[K, T],
        joiner: Callable[[V, T], V2],
        *,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> KTable[K, V2]: ...
    @overload
    def join(
        self,
        other: KTable[K, T],
        joiner: Callable[[K, V, T], V2],
        *,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> KTable[K, V2]: ...
    @overload
    def join(
        self,
        other: KTable[K2, T],
        joiner: Callable[[V, T], V2],
        *,
        foreign_key: Callable[[V], K2 | None],
        partitioner: Partitioner[K, Any] | None = ...,
        other_partitioner: Partitioner[K2, Any] | None = ...,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> KTable[K, V2]: ...
    @overload
    def join(
        self,
        other: KTable[K2, T],
        joiner: Callable[[V, T], V2],
        *,
        foreign_key: Callable[[K, V], K2 | None],
        partitioner: Partitioner[K, Any] | None = ...,
        other_partitioner: Partitioner[K2, Any] | None = ...,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> KTable[K, V2]: ...
    @overload
    def join(
        self,
        other: KTable[K2, T],
        joiner: Callable[[K, V, T], V2],
        *,
        foreign_key: Callable[[V], K2 | None],
        partitioner: Partitioner[K, Any] | None = ...,
        other_partitioner: Partitioner[K2, Any] | None = ...,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> KTable[K, V2]: ...
    @overload
    def join(
        self,
        other: KTable[K2, T],
        joiner: Callable[[K, V, T], V2],
        *,
        foreign_key: Callable[[K, V], K2 | None],
        partitioner: Partitioner[K, Any] | None = ...,
        other_partitioner: Partitioner[K2, Any] | None = ...,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> KTable[K, V2]: ...
    def join(
        self,
        other: KTable[Any, Any],
        joiner: Callable[..., Any],
        *,
        foreign_key: Callable[..., Any] | None = None,
        partitioner: Any = None,
        other_partitioner: Any = None,
        step: str | None = None,
        **store: Unpack[StoreArguments],
    ) -> KTable[K, Any]:
        """Join the rows of both tables that have the same key: ``joiner`` takes both values, or key and values.

        Both tables must be co-partitioned. ``value=`` is the type of the result of ``joiner``, ``name=`` gives the
        result a store.

        With ``foreign_key`` (of the value, or key and value) a row is joined with the row of ``other`` whose key it
        returns; None: with no row. The tables need not be co-partitioned then. If a topic is not partitioned by the
        hash of the key, give ``partitioner`` (for this table's) or ``other_partitioner``: functions of (topic, key,
        value, partitions), which are called with None as the value.
        """
        options = StoreOptions.of("join", store)
        if foreign_key is None and partitioner is None and other_partitioner is None:
            return table_joins.joined(self._self, other, joiner, JoinKind.INNER, step, options)
        asked = ForeignKeyOptions(foreign_key, False, step, partitioner, other_partitioner)
        return foreign_key_joins.joined_on_foreign_key(self._self, other, joiner, asked, options)

    @overload
    def left_join(
        self,
        other: KTable[K, T],
        joiner: Callable[[V, T | None], V2],
        *,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> KTable[K, V2]: ...
    @overload
    def left_join(
        self,
        other: KTable[K, T],
        joiner: Callable[[K, V, T | None], V2],
        *,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> KTable[K, V2]: ...
    @overload
    def left_join(
        self,
        other: KTable[K2, T],
        joiner: Callable[[V, T | None], V2],
        *,
        foreign_key: Callable[[V], K2 | None],
        partitioner: Partitioner[K, Any] | None = ...,
        other_partitioner: Partitioner[K2, Any] | None = ...,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> KTable[K, V2]: ...
    @overload
    def left_join(
        self,
        other: KTable[K2, T],
        joiner: Callable[[V, T | None], V2],
        *,
        foreign_key: Callable[[K, V], K2 | None],
        partitioner: Partitioner[K, Any] | None = ...,
        other_partitioner: Partitioner[K2, Any] | None = ...,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> KTable[K, V2]: ...
    @overload
    def left_join(
        self,
        other: KTable[K2, T],
        joiner: Callable[[K, V, T | None], V2],
        *,
        foreign_key: Callable[[V], K2 | None],
        partitioner: Partitioner[K, Any] | None = ...,
        other_partitioner: Partitioner[K2, Any] | None = ...,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> KTable[K, V2]: ...
    @overload
    def left_join(
        self,
        other: KTable[K2, T],
        joiner: Callable[[K, V, T | None], V2],
        *,
        foreign_key: Callable[[K, V], K2 | None],
        partitioner: Partitioner[K, Any] | None = ...,
        other_partitioner: Partitioner[K2, Any] | None = ...,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> KTable[K, V2]: ...
    def left_join(
        self,
        other: KTable[Any, Any],
        joiner: Callable[..., Any],
        *,
        foreign_key: Callable[..., Any] | None = None,
        partitioner: Any = None,
        other_partitioner: Any = None,
        step: str | None = None,
        **store: Unpack[StoreArguments],
    ) -> KTable[K, Any]:
        """As ``join``, also for rows without a row in ``other``: ``joiner`` then gets None as its value."""
        options = StoreOptions.of("left_join", store)
        if foreign_key is None and partitioner is None and other_partitioner is None:
            return table_joins.joined(self._self, other, joiner, JoinKind.LEFT, step, options)
        asked = ForeignKeyOptions(foreign_key, True, step, partitioner, other_partitioner)
        return foreign_key_joins.joined_on_foreign_key(self._self, other, joiner, asked, options)

    @overload
    def outer_join(
        self,
        other: KTable[K, T],
        joiner: Callable[[V | None, T | None], V2],
        *,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> KTable[K, V2]: ...
    @overload
    def outer_join(
        self,
        other: KTable[K, T],
        joiner: Callable[[K, V | None, T | None], V2],
        *,
        step: str | None = ...,
        **store: Unpack[StoreArguments],
    ) -> KTable[K, V2]: ...
    def outer_join(
        self,
        other: KTable[K, Any],
        joiner: Callable[..., Any],
        *,
        step: str | None = None,
        **store: Unpack[StoreArguments],
    ) -> KTable[K, Any]:
        """Join rows of either table: ``joiner`` gets None for a missing value."""
        return table_joins.joined(
            self._self, other, joiner, JoinKind.OUTER, step, StoreOptions.of("outer_join", store)
        )

    @property
    def _self(self) -> KTable[K, V]:
        return cast("KTable[K, V]", self)
