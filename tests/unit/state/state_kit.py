"""A task's stores with their changelog in a list, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pystreams.ids import TaskId
from pystreams.record import NO_HEADERS, ContextCell, RecordBatch
from pystreams.serde import INT, STR
from pystreams.state.cache.thread_cache import ThreadCache
from pystreams.state.disk.rocksdb_memory import RocksResources
from pystreams.state.spec import StoreSpec
from pystreams.state.task_stores import TaskStores

RESOURCES = RocksResources(8 * 1024 * 1024, 8 * 1024 * 1024)

#: The settings of a store in a test of what holds for each of them.
VARIANTS = pytest.mark.parametrize(
    "settings",
    [
        {},
        {"cached": True},
        {"persistent": False},
        {"persistent": False, "cached": True},
        {"on_disk": True},
        {"on_disk": True, "cached": True},
    ],
    ids=str,
)


def key_value(name: str = "store", **settings: Any) -> StoreSpec:
    return StoreSpec(name, "key_value", **{"key_serde": STR, "value_serde": STR, **settings})


def timestamped(name: str = "store", **settings: Any) -> StoreSpec:
    return StoreSpec(name, "timestamped_key_value", **{"key_serde": STR, "value_serde": INT, **settings})


def window(name: str = "store", **settings: Any) -> StoreSpec:
    defaults = {"key_serde": STR, "value_serde": STR, "window_size_ms": 10, "retention_ms": 1000}
    return StoreSpec(name, "window", **{**defaults, **settings})


def timestamped_window(name: str = "store", **settings: Any) -> StoreSpec:
    defaults = {"key_serde": STR, "value_serde": INT, "window_size_ms": 10, "retention_ms": 1000}
    return StoreSpec(name, "timestamped_window", **{**defaults, **settings})


def session(name: str = "store", **settings: Any) -> StoreSpec:
    defaults = {"key_serde": STR, "value_serde": STR, "retention_ms": 1000}
    return StoreSpec(name, "session", **{**defaults, **settings})


class Task:
    """An open task. ``changelog`` has (store, key, value, timestamp) of every record that was logged."""

    def __init__(
        self,
        *specs: StoreSpec,
        directory: Path | None = None,
        cache_bytes: int = 10 * 1024 * 1024,
        cache: ThreadCache | None = None,
        task_id: TaskId | None = None,
    ) -> None:
        self.cell = ContextCell()
        self.at(0)
        self.changelog: list[tuple[str, bytes, bytes | None, int | None]] = []
        self.expired = 0
        self.cache = cache or ThreadCache(cache_bytes)
        self.state = TaskStores.open(
            directory,
            specs,
            task_id=task_id or TaskId(0, 0),
            cell=self.cell,
            log_of=self._log_of,
            resources=RESOURCES,
            expired=self._count_expired,
        )
        self.state.attach(self.cache)

    def __enter__(self) -> Task:
        return self

    def __exit__(self, *_: object) -> None:
        self.state.close()

    def __getitem__(self, store: str) -> Any:
        return self.state.stores[store]

    @property
    def store(self) -> Any:
        """The first store."""
        return next(iter(self.state.stores.values()))

    def at(self, timestamp: int, topic: str = "in", offset: int = 0) -> None:
        """Put a record with that timestamp in force."""
        self.cell.record = (topic, 0, offset, timestamp, NO_HEADERS)

    def commit(self, **metadata: bytes | int) -> None:
        """Flush the caches and commit with offsets as if all that was logged were in the changelogs."""
        self.state.flush_caches()
        self.state.commit(self.end_offsets(), metadata)

    def end_offsets(self) -> dict[str, int]:
        offsets = dict.fromkeys(self.state.stores, 0)
        for store, *_ in self.changelog:
            offsets[store] += 1
        return offsets

    def records(self, store: str = "store") -> list[tuple[bytes, bytes | None, int | None]]:
        """(key, value, timestamp) of one store's changelog."""
        return [tuple(record) for name, *record in self.changelog if name == store]

    def _count_expired(self, _: StoreSpec) -> None:
        self.expired += 1

    def _log_of(self, store: str) -> Any:
        def log_change(key: bytes, value: bytes | None, timestamp: int | None, headers: Any) -> None:
            spec = self.state.stores[store].spec
            assert spec.headers or headers == (NO_HEADERS if value is None else spec.changelog_headers)
            self.changelog.append((store, key, value, timestamp))

        return log_change


def batch_of(records: Sequence[tuple[bytes, bytes | None, int | None]], first_offset: int = 0) -> RecordBatch:
    """Changelog records as the broker gives them back."""
    return RecordBatch(
        "changelog",
        0,
        [key for key, _, _ in records],
        [value for _, value, _ in records],
        [timestamp or 0 for _, _, timestamp in records],
        range(first_offset, first_offset + len(records)),
        None,
        first_offset + len(records),
    )


def read_all(iterator: Any) -> list[Any]:
    with iterator as entries:
        return list(entries)
