"""``Stores``: makes descriptions of stores, for ``process`` and the low-level API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from pystreams.errors import TopologyError
from pystreams.misspelt import answers_misspelt
from pystreams.serde import serde_for
from pystreams.serde.base import TypeOrSerde
from pystreams.state.spec import StoreKind, StoreSpec

if TYPE_CHECKING:
    from pystreams.state.stores.key_value import KeyValueStore, TimestampedKeyValueStore
    from pystreams.state.stores.list_store import ListStore
    from pystreams.state.stores.session import SessionStore
    from pystreams.state.stores.versioned import VersionedStore
    from pystreams.state.stores.window import TimestampedWindowStore, WindowStore

K = TypeVar("K")
V = TypeVar("V")


@answers_misspelt
class Stores:
    """Makes store specs. Serdes are types (``str``, ``int``, ``dict``, a struct …) or serdes; durations are
    timedeltas or milliseconds. ``persistent=False`` keeps a store in memory, ``cached=True`` uses the thread's cache,
    ``logged=False`` omits the changelog (the store is then lost with the machine); ``changelog_config`` are topic
    settings of the changelog; ``was`` is the former name of the store, whose content the store takes over.
    Source: org.apache.kafka.streams.state.Stores.
    """

    @staticmethod
    def key_value_store(
        name: str,
        key: TypeOrSerde[K],
        value: TypeOrSerde[V],
        *,
        persistent: bool = True,
        cached: bool = False,
        logged: bool = True,
        changelog_config: Mapping[str, str] | None = None,
        was: str | None = None,
    ) -> StoreSpec[KeyValueStore[K, V]]:
        """Values by key."""
        return _spec("key_value", name, key, value, persistent, cached, logged, changelog_config, was=was)

    @staticmethod
    def lru_map(
        name: str,
        key: TypeOrSerde[K],
        value: TypeOrSerde[V],
        *,
        max_entries: int,
        cached: bool = False,
        logged: bool = True,
        changelog_config: Mapping[str, str] | None = None,
        was: str | None = None,
    ) -> StoreSpec[KeyValueStore[K, V]]:
        """Values by key in memory, at most ``max_entries`` for each partition. When there is one too many, the least
        recently used entry is deleted."""
        most: object = max_entries
        if not isinstance(most, int) or isinstance(most, bool) or most < 0:
            raise TopologyError(f"max_entries={most!r} is not a number of entries", where=f"store {name}")
        return _spec(
            "key_value",
            name,
            key,
            value,
            False,
            cached,
            logged,
            changelog_config,
            max_entries=max_entries,
            was=was,
        )

    @overload
    @staticmethod
    def timestamped_key_value_store(
        name: str,
        key: TypeOrSerde[K],
        value: TypeOrSerde[V],
        *,
        persistent: bool = ...,
        cached: bool = ...,
        logged: bool = ...,
        changelog_config: Mapping[str, str] | None = ...,
        was: str | None = ...,
        headers: Literal[False] = ...,
    ) -> StoreSpec[TimestampedKeyValueStore[K, V]]: ...
    @overload
    @staticmethod
    def timestamped_key_value_store(
        name: str,
        key: TypeOrSerde[K],
        value: TypeOrSerde[V],
        *,
        persistent: bool = ...,
        cached: bool = ...,
        logged: bool = ...,
        changelog_config: Mapping[str, str] | None = ...,
        was: str | None = ...,
        headers: bool,
    ) -> StoreSpec[Any]: ...
    @staticmethod
    def timestamped_key_value_store(
        name: str,
        key: TypeOrSerde[K],
        value: TypeOrSerde[V],
        *,
        persistent: bool = True,
        cached: bool = False,
        logged: bool = True,
        changelog_config: Mapping[str, str] | None = None,
        was: str | None = None,
        headers: bool = False,
    ) -> StoreSpec[Any]:
        """(value, timestamp) by key, as in tables and aggregations. With ``headers`` values are
        ``ValueTimestampHeaders``."""
        return _spec(
            "timestamped_key_value",
            name,
            key,
            value,
            persistent,
            cached,
            logged,
            changelog_config,
            was=was,
            headers=headers,
        )

    @staticmethod
    def list_store(
        name: str,
        key: TypeOrSerde[K],
        value: TypeOrSerde[V],
        *,
        persistent: bool = True,
        logged: bool = True,
        changelog_config: Mapping[str, str] | None = None,
        was: str | None = None,
    ) -> StoreSpec[ListStore[K, V]]:
        """Any number of values by key, in the order in which they were put. Never cached. Each change writes the
        key's whole list to the changelog, so lists should be short. Source: ListValueStore."""
        return _spec("list", name, key, value, persistent, False, logged, changelog_config, was=was)

    @staticmethod
    def versioned_store(
        name: str,
        key: TypeOrSerde[K],
        value: TypeOrSerde[V],
        *,
        history: timedelta | int,
        segment: timedelta | int | None = None,
        persistent: bool = True,
        logged: bool = True,
        changelog_config: Mapping[str, str] | None = None,
        was: str | None = None,
    ) -> StoreSpec[VersionedStore[K, V]]:
        """Values by key and time: the latest of each key, and older ones for ``history`` before the greatest time
        put. Older versions expire a ``segment`` at a time (None: as in Java). Never cached. Source: KIP-889."""
        history_ms = _milliseconds(history)
        segment_ms = 0 if segment is None else _milliseconds(segment)
        if history_ms < 0 or segment_ms < (segment is not None):
            raise TopologyError(
                "a versioned store needs a history that is not negative, and segments of at least 1 ms",
                where=f"store {name}",
            )
        return _spec(
            "versioned",
            name,
            key,
            value,
            persistent,
            False,
            logged,
            changelog_config,
            was=was,
            history_ms=history_ms,
            segment_ms=segment_ms,
        )

    @staticmethod
    def window_store(
        name: str,
        key: TypeOrSerde[K],
        value: TypeOrSerde[V],
        *,
        size: timedelta | int,
        retention: timedelta | int,
        retain_duplicates: bool = False,
        persistent: bool = True,
        cached: bool = False,
        logged: bool = True,
        changelog_config: Mapping[str, str] | None = None,
        was: str | None = None,
    ) -> StoreSpec[WindowStore[K, V]]:
        """Values by key and window start. With ``retain_duplicates`` a window keeps every value put to it, and the
        store is never cached."""
        return _window_spec(
            "window",
            name,
            key,
            value,
            persistent,
            cached,
            logged,
            changelog_config,
            size,
            retention,
            retain_duplicates,
            was=was,
        )

    @overload
    @staticmethod
    def timestamped_window_store(
        name: str,
        key: TypeOrSerde[K],
        value: TypeOrSerde[V],
        *,
        size: timedelta | int,
        retention: timedelta | int,
        retain_duplicates: bool = ...,
        persistent: bool = ...,
        cached: bool = ...,
        logged: bool = ...,
        changelog_config: Mapping[str, str] | None = ...,
        was: str | None = ...,
        headers: Literal[False] = ...,
    ) -> StoreSpec[TimestampedWindowStore[K, V]]: ...
    @overload
    @staticmethod
    def timestamped_window_store(
        name: str,
        key: TypeOrSerde[K],
        value: TypeOrSerde[V],
        *,
        size: timedelta | int,
        retention: timedelta | int,
        retain_duplicates: bool = ...,
        persistent: bool = ...,
        cached: bool = ...,
        logged: bool = ...,
        changelog_config: Mapping[str, str] | None = ...,
        was: str | None = ...,
        headers: bool,
    ) -> StoreSpec[Any]: ...
    @staticmethod
    def timestamped_window_store(
        name: str,
        key: TypeOrSerde[K],
        value: TypeOrSerde[V],
        *,
        size: timedelta | int,
        retention: timedelta | int,
        retain_duplicates: bool = False,
        persistent: bool = True,
        cached: bool = False,
        logged: bool = True,
        changelog_config: Mapping[str, str] | None = None,
        was: str | None = None,
        headers: bool = False,
    ) -> StoreSpec[Any]:
        """(value, timestamp) by key and window start, as in windowed aggregations. With ``headers`` values are
        ``ValueTimestampHeaders``."""
        return _window_spec(
            "timestamped_window",
            name,
            key,
            value,
            persistent,
            cached,
            logged,
            changelog_config,
            size,
            retention,
            retain_duplicates,
            was=was,
            headers=headers,
        )

    @overload
    @staticmethod
    def session_store(
        name: str,
        key: TypeOrSerde[K],
        value: TypeOrSerde[V],
        *,
        retention: timedelta | int,
        persistent: bool = ...,
        cached: bool = ...,
        logged: bool = ...,
        changelog_config: Mapping[str, str] | None = ...,
        was: str | None = ...,
        headers: Literal[False] = ...,
    ) -> StoreSpec[SessionStore[K, V]]: ...
    @overload
    @staticmethod
    def session_store(
        name: str,
        key: TypeOrSerde[K],
        value: TypeOrSerde[V],
        *,
        retention: timedelta | int,
        persistent: bool = ...,
        cached: bool = ...,
        logged: bool = ...,
        changelog_config: Mapping[str, str] | None = ...,
        was: str | None = ...,
        headers: bool,
    ) -> StoreSpec[Any]: ...
    @staticmethod
    def session_store(
        name: str,
        key: TypeOrSerde[K],
        value: TypeOrSerde[V],
        *,
        retention: timedelta | int,
        persistent: bool = True,
        cached: bool = False,
        logged: bool = True,
        changelog_config: Mapping[str, str] | None = None,
        was: str | None = None,
        headers: bool = False,
    ) -> StoreSpec[Any]:
        """Values by key, start and end, as in aggregations of sessions. With ``headers`` values are
        ``AggregationWithHeaders``."""
        retention_ms = _milliseconds(retention)
        if retention_ms < 0:
            raise TopologyError(
                "the retention of a session store must not be negative", where=f"store {name}"
            )
        return _spec(
            "session",
            name,
            key,
            value,
            persistent,
            cached,
            logged,
            changelog_config,
            was=was,
            retention_ms=retention_ms,
            headers=headers,
        )


def _spec(
    kind: StoreKind,
    name: str,
    key: Any,
    value: Any,
    persistent: bool,
    cached: bool,
    logged: bool,
    changelog_config: Mapping[str, str] | None,
    **window: Any,
) -> StoreSpec:
    return StoreSpec(
        name=name,
        kind=kind,
        key_serde=serde_for(key),
        value_serde=serde_for(value),
        persistent=persistent,
        cached=cached,
        logged=logged,
        changelog_config=dict(changelog_config or {}),
        **window,
    )


def _window_spec(
    kind: StoreKind,
    name: str,
    key: Any,
    value: Any,
    persistent: bool,
    cached: bool,
    logged: bool,
    changelog_config: Mapping[str, str] | None,
    size: timedelta | int,
    retention: timedelta | int,
    retain_duplicates: bool,
    *,
    was: str | None,
    headers: bool = False,
) -> StoreSpec:
    size_ms, retention_ms = _milliseconds(size), _milliseconds(retention)
    for what, duration in (("size", size_ms), ("retention", retention_ms)):
        if duration < 0:
            raise TopologyError(f"the {what} of a window store must not be negative", where=f"store {name}")
    if size_ms > retention_ms:
        raise TopologyError(
            "the retention of a window store must not be shorter than its windows",
            where=f"store {name}",
            why=f"retention is {retention_ms} ms, size {size_ms} ms",
        )
    return _spec(
        kind,
        name,
        key,
        value,
        persistent,
        cached and not retain_duplicates,
        logged,
        changelog_config,
        window_size_ms=size_ms,
        retention_ms=retention_ms,
        retain_duplicates=retain_duplicates,
        was=was,
        headers=headers,
    )


def _milliseconds(duration: object) -> int:
    if isinstance(duration, timedelta):
        return duration // timedelta(milliseconds=1)
    if not isinstance(duration, int) or isinstance(duration, bool):
        raise TopologyError(
            f"{duration!r} is not a duration of a store", hint="give a timedelta, or milliseconds as an int"
        )
    return duration
