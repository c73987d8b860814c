"""Iterators over stores, and merging of a store's layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from pystreams.errors import StateError

K = TypeVar("K")
V = TypeVar("V")

_FETCH: Any = object()
_END: Any = object()


class StoreIterator(Generic[K, V]):
    """(key, value) pairs of a store, in the order of their bytes. Close it, or use it in ``with``: until then it may
    keep a snapshot of the database. It closes itself at its end, and when its store closes."""

    __slots__ = ("__weakref__", "_closed", "_decode", "_pairs", "_peeked", "_store")

    def __init__(
        self, store: str, pairs: Iterator[tuple[Any, Any]], decode: Callable[[Any, Any], tuple[K, V]]
    ) -> None:
        self._store = store
        self._pairs: Iterator[tuple[Any, Any]] = pairs
        self._decode = decode
        self._peeked: Any = _FETCH
        self._closed = False

    def __iter__(self) -> StoreIterator[K, V]:
        return self

    def __next__(self) -> tuple[K, V]:
        if self._peeked is not _FETCH:
            peeked: tuple[K, V] = self._peeked
            self._peeked = _FETCH
            return peeked
        if self._closed:
            raise StateError(f"iterator of store {self._store} is closed")
        try:
            key, value = next(self._pairs)
        except StopIteration:
            self._pairs = iter(())
            raise
        return self._decode(key, value)

    def peek_key(self) -> K | None:
        """The next key, without moving on; None at the end."""
        if self._peeked is _FETCH:
            try:
                self._peeked = next(self)
            except StopIteration:
                return None
        key: K = self._peeked[0]
        return key

    def close(self) -> None:
        """Release the iterator's resources. A later read raises ``StateError``."""
        self._closed = True
        self._peeked = _FETCH
        self._pairs = iter(())

    def __enter__(self) -> StoreIterator[K, V]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_to_end(result: Any) -> Any:
    """The list of the entries of an iterator; anything else unchanged."""
    if not isinstance(result, StoreIterator):
        return result
    with result:
        return list(result)


def override(
    changes: Iterable[tuple[Any, bytes | None]], stored: Iterator[tuple[Any, bytes]], *, reverse: bool
) -> Iterator[tuple[Any, bytes]]:
    """Merge changes over stored entries, both in order: a change replaces the stored entry, None deletes it."""
    left = iter(changes)
    change = next(left, None)
    for entry in stored:
        key = entry[0]
        while change is not None:
            changed, value = change
            if changed == key or (changed > key) is not reverse:
                break
            change = next(left, None)
            if value is not None:
                yield changed, value
        if change is not None and change[0] == key:
            value = change[1]
            change = next(left, None)
            if value is not None:
                yield key, value
        else:
            yield entry
    while change is not None:
        changed, value = change
        change = next(left, None)
        if value is not None:
            yield changed, value


def merge_cached(
    cached: Iterator[tuple[Any, Any]],
    stored: Iterator[tuple[Any, Any]],
    order: Callable[[Any], Any],
    *,
    reverse: bool,
) -> Iterator[tuple[Any, Any, bool]]:
    """(key, item, from cache) of a cache merged over a store; if both have a key, the cache wins.

    ``order`` returns the sort key of a key. Cached entries are read one by one, not in advance. Like Kafka Streams'
    AbstractMergedSortedCacheStoreIterator, it treats tombstones specially in reverse order: one that sorts before the
    next stored key is skipped (and no longer hides its own stored entry), one that sorts after it is returned as None.
    Programs see the same as in Java.
    """
    top: Any = _FETCH
    bottom: Any = _FETCH
    while True:
        if bottom is _FETCH:
            bottom = next(stored, _END)
        if top is _FETCH:
            top = next(cached, _END)
        if top is _END and bottom is _END:
            return
        if top is _END or bottom is _END:
            found = -1 if bottom is _END else 1
        else:
            first, second = order(top[0]), order(bottom[0])
            found = 0 if first == second else (-1 if first < second else 1)
        if top is not _END and top[1] is None and found <= 0:
            top = _FETCH
            if found == 0:
                bottom = _FETCH
            continue
        # If one side has ended, the other is read. Otherwise the direction decides.
        from_cache = bottom is _END or (top is not _END and (found == 0 or (found < 0) is not reverse))
        if not from_cache:
            key, item = bottom
            bottom = _FETCH
            yield key, item, False
        else:
            key, item = top
            top = _FETCH
            if found == 0:
                bottom = _FETCH
            yield key, item, True
