"""The base of all stores."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias, cast

from pystreams.errors import SchemaRegistryError, reason, summarize
from pystreams.record import ContextCell, Headers
from pystreams.state.cache.thread_cache import NamedCache, ThreadCache
from pystreams.state.iterators import StoreIterator
from pystreams.state.spec import StoreSpec

log = logging.getLogger(__name__)

#: Appends (key, value, timestamp, headers) to a store's changelog; value None deletes.
LogChange: TypeAlias = Callable[[bytes, "bytes | None", "int | None", Headers], None]

#: The last record of a key in a store's changelog: key, value, timestamp (None: the store keeps none). In a versioned
#: store, all records of a key's versions; a value None deletes. In a store with headers they precede the value
#: (``headers_and_value``).
Logged: TypeAlias = "tuple[bytes, bytes | None, int | None]"

#: The methods with which programs read, of all or some kinds of stores; and those with which they write.
READS: Final = (
    "get",
    "versions",
    "range",
    "reverse_range",
    "prefix_scan",
    "all",
    "reverse_all",
    "approximate_count",
    "fetch",
    "backward_fetch",
    "fetch_range",
    "backward_fetch_range",
    "fetch_all",
    "backward_fetch_all",
    "backward_all",
    "fetch_session",
    "find_sessions",
    "backward_find_sessions",
    "find_sessions_range",
    "backward_find_sessions_range",
)
_WRITES: Final = ("put", "put_if_absent", "put_all", "delete", "remove")

#: The greatest byte value.
_BYTE_MAX = 0xFF


@dataclass(frozen=True, slots=True)
class StoreContext:
    """The context that a task gives its store.

    ``topic`` is the changelog's name, which serdes receive; ``log`` is None for stores without a changelog, ``cache``
    None if caching is off; ``namespace`` is unique among the stores of the thread; ``expired`` is called for each write
    that a window store drops because its window is past its retention.
    """

    spec: StoreSpec
    topic: str
    cell: ContextCell
    log: LogChange | None
    cache: ThreadCache | None
    namespace: str
    expired: Callable[[], None]

    @property
    def cached(self) -> bool:
        """Whether the store has a cache. Stores with duplicates have none, because a cache holds one value per
        window."""
        return self.spec.cached and self.cache is not None and not self.spec.retain_duplicates

    @property
    def log_change(self) -> LogChange:
        """``log``, or a function without effect if there is no changelog."""
        return self.log or no_log


def no_log(key: bytes, value: bytes | None, timestamp: int | None, headers: Headers) -> None:
    """The function for stores without a changelog: does nothing."""


class Store:
    """A store of one task. Only the task's thread uses it.

    A kind of store implements ``logged``, and the methods with which operators or programs read and write. It keeps no
    content of its own, because it is made again when it gets a cache, and for each view of a commit: each write goes to
    the overlay (or layer) below the store and to its changelog; ``stores.list_store`` is the shortest of
    those for programs.
    """

    __slots__ = ("_iterators", "cache", "cached", "decode_key", "encode_key", "name", "spec")

    #: Whether the changelog is written at each commit, instead of at each change.
    logs_at_commit: ClassVar[bool] = False

    def __init__(self, context: StoreContext) -> None:
        spec = context.spec
        self.spec = spec
        self.name = spec.name
        #: Serializes and deserializes a key.
        self.encode_key: Callable[[Any], bytes] = spec.key_serde.key_serializer(context.topic)
        self.decode_key: Callable[[bytes], Any] = spec.key_serde.deserializer(context.topic)
        self.cached = context.cached
        self.cache: NamedCache | None = None
        self._iterators: weakref.WeakSet[StoreIterator[Any, Any]] = weakref.WeakSet()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, key={self.spec.key_serde!r}, value={self.spec.value_serde!r})"

    if not TYPE_CHECKING:  # Type checkers know the methods and find misspelt ones.

        def __getattr__(self, name: str) -> Any:
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            # ``copy`` looks up attributes of an object before it has set any.
            if name.startswith("_") or name in Store.__slots__:
                raise AttributeError(message)
            has = ", ".join(one for one in (*READS, *_WRITES) if hasattr(type(self), one))
            raise AttributeError(f"{message}: store {self.name} has {has}")

    @property
    def persistent(self) -> bool:
        """Whether the store survives the process."""
        return self.spec.persistent

    def logged(self) -> Iterator[Logged]:
        """All entries of the store in the format of its changelog, without windows past their retention. The cache must
        be flushed before."""
        raise NotImplementedError

    def without_headers(self) -> Self:
        """The same store for programs that read values without headers."""
        return self

    def _with_items(self, items: object) -> Self:
        twin: Any = copy(self)
        twin._items = items
        return cast("Self", twin)

    def flush_cache(self) -> None:
        """Forward and log the dirty entries of the cache, in the order of their last update."""
        if self.cache is not None:
            self.cache.flush()

    def log_held_changes(self) -> None:
        """Log the changes since the last call, if the store ``logs_at_commit``."""

    def abort_cache(self) -> None:
        """Drop all entries of the cache."""
        if self.cache is not None:
            self.cache.clear()

    def close(self) -> None:
        """Close open iterators and unregister from the thread's cache, without a flush."""
        for iterator in list(self._iterators):
            iterator.close()
        if self.cache is not None:
            self.cache.close()

    def _encoded(self, key: Any) -> bytes:
        if key is None:
            # This is a mistake of the caller, and the store is intact, so the processing handler decides.
            raise TypeError(f"the key must not be None in store {self.name}, a {self.spec.kind} store")
        try:
            return self.encode_key(key)
        except SchemaRegistryError:
            raise
        except Exception as error:
            raise self.wrong_key(key) from error

    def wrong_key(self, key: Any) -> TypeError:
        """The error for a ``key`` that cannot be serialized."""
        return TypeError(
            f"a key of type {type(key).__name__} does not fit store {self.name}, "
            f"whose keys are {self.spec.key_serde!r}: give the store or table the type of its keys (key=)"
        )

    def _bound(self, key: Any) -> bytes | None:
        return None if key is None else self._encoded(key)

    def _ms(self, time: object) -> int:
        """A time given by a program, checked."""
        if not isinstance(time, int):
            raise TypeError(
                f"times of store {self.name} are whole numbers of milliseconds since 1970, not {time!r}"
            )
        return time

    def _reversed_bounds(self, lower: bytes | None, upper: bytes | None) -> bool:
        """Whether a range is empty because its first key sorts after its last; logs a warning."""
        if lower is None or upper is None or lower <= upper:
            return False
        log.warning(
            "store %s: a range is empty because its first key sorts after its last; keys sort by their bytes, in which "
            "negative numbers follow the positive ones",
            self.name,
        )
        return True

    def _tracked(self, iterator: StoreIterator[Any, Any]) -> StoreIterator[Any, Any]:
        self._iterators.add(iterator)
        return iterator


def wrong_value(spec: StoreSpec, value: object, error: Exception | str, form: str = "") -> TypeError:
    """The error for a value of a program that a store cannot serialize. ``form``: the tuple that contains the value."""
    takes = f"{form} with values" if form else "values"
    why = error if isinstance(error, str) else ": ".join(filter(None, (summarize(error), reason(error))))
    return TypeError(
        f"store {spec.name} takes {takes} of type {spec.value_serde!r}, not this {type(value).__name__}: {why}"
    )


def plain_pairs(pairs: Iterable[tuple[bytes, bytes]]) -> Iterator[Logged]:
    """Stored pairs of a store with plain values, in the form of its changelog."""
    return ((key, stored, None) for key, stored in pairs)


def after_prefix(prefix: bytes) -> bytes | None:
    """The smallest key after all keys with this prefix; None if there is none (only 0xFF bytes)."""
    stripped = prefix.rstrip(bytes((_BYTE_MAX,)))
    if not stripped:
        return None
    return stripped[:-1] + bytes((stripped[-1] + 1,))
