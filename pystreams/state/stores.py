"""``Stores``: what to hand to ``process`` for a store of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pystreams.errors import TopologyError
from pystreams.serde import serde_for
from pystreams.state.spec import StoreKind, StoreSpec


class Stores:
    """Makes store specs. Serdes are types (``str``, ``int``, ``dict``, a struct …) or serdes; durations timedeltas or
    milliseconds. ``persistent=False`` keeps a store in memory, ``cached=True`` puts the thread's cache before it,
    ``logged=False`` goes without a changelog (and loses the store with the machine); ``changelog_config`` are topic
    settings of the changelog. Source: org.apache.kafka.streams.state.Stores.
    """

    @staticmethod
    def key_value_store(
        name: str,
        key: Any,
        value: Any,
        *,
        persistent: bool = True,
        cached: bool = False,
        logged: bool = True,
        changelog_config: Mapping[str, str] | None = None,
    ) -> StoreSpec:
        """Values by key."""
        return _spec("key_value", name, key, value, persistent, cached, logged, changelog_config)

    @staticmethod
    def lru_map(
        name: str,
        key: Any,
        value: Any,
        *,
        max_entries: int,
        cached: bool = False,
        logged: bool = True,
        changelog_config: Mapping[str, str] | None = None,
    ) -> StoreSpec:
        """Values by key in memory, no more than ``max_entries`` for each partition: one too many deletes the entry that
        was not read or written for longest."""
        if max_entries < 0:
            raise TopologyError("max_entries must not be negative", where=f"store {name}")
        return _spec(
            "key_value", name, key, value, False, cached, logged, changelog_config, max_entries=max_entries
        )

    @staticmethod
    def timestamped_key_value_store(
        name: str,
        key: Any,
        value: Any,
        *,
        persistent: bool = True,
        cached: bool = False,
        logged: bool = True,
        changelog_config: Mapping[str, str] | None = None,
    ) -> StoreSpec:
        """(value, timestamp) by key: what tables and aggregations have."""
        return _spec("timestamped_key_value", name, key, value, persistent, cached, logged, changelog_config)

    @staticmethod
    def list_store(
        name: str,
        key: Any,
        value: Any,
        *,
        persistent: bool = True,
        logged: bool = True,
        changelog_config: Mapping[str, str] | None = None,
    ) -> StoreSpec:
        """Any number of values by key, in the order in which they were put. Never cached; the changelog has a key's
        whole list at each change, so lists should be short. Source: ListValueStore."""
        return _spec("list", name, key, value, persistent, False, logged, changelog_config)

    @staticmethod
    def versioned_store(
        name: str,
        key: Any,
        value: Any,
        *,
        history: timedelta | int,
        segment: timedelta | int | None = None,
        persistent: bool = True,
        logged: bool = True,
        changelog_config: Mapping[str, str] | None = None,
    ) -> StoreSpec:
        """Values by key and time: the latest of each key, and those of ``history`` before the greatest time put. What
        is older goes a ``segment`` at a time (None: as Java chooses). Never cached. Source: KIP-889."""
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
            history_ms=history_ms,
            segment_ms=segment_ms,
        )

    @staticmethod
    def window_store(
        name: str,
        key: Any,
        value: Any,
        *,
        size: timedelta | int,
        retention: timedelta | int,
        retain_duplicates: bool = False,
        persistent: bool = True,
        cached: bool = False,
        logged: bool = True,
        changelog_config: Mapping[str, str] | None = None,
    ) -> StoreSpec:
        """Values by key and window start. With ``retain_duplicates`` a window keeps every value put to it, and is
        never cached."""
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
        )

    @staticmethod
    def timestamped_window_store(
        name: str,
        key: Any,
        value: Any,
        *,
        size: timedelta | int,
        retention: timedelta | int,
        retain_duplicates: bool = False,
        persistent: bool = True,
        cached: bool = False,
        logged: bool = True,
        changelog_config: Mapping[str, str] | None = None,
    ) -> StoreSpec:
        """(value, timestamp) by key and window start: what windowed aggregations have."""
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
        )

    @staticmethod
    def session_store(
        name: str,
        key: Any,
        value: Any,
        *,
        retention: timedelta | int,
        persistent: bool = True,
        cached: bool = False,
        logged: bool = True,
        changelog_config: Mapping[str, str] | None = None,
    ) -> StoreSpec:
        """Values by key, start and end: what aggregations of sessions have."""
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
            retention_ms=retention_ms,
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
) -> StoreSpec:
    size_ms, retention_ms = _milliseconds(size), _milliseconds(retention)
    for what, duration in (("size", size_ms), ("retention", retention_ms)):
        if duration < 0:
            raise TopologyError(f"the {what} of a window store must not be negative", where=f"store {name}")
    if size_ms > retention_ms:
        raise TopologyError(
            "the retention of a window store must be no shorter than its windows",
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
    )


def _milliseconds(duration: timedelta | int) -> int:
    if isinstance(duration, timedelta):
        return duration // timedelta(milliseconds=1)
    return duration
