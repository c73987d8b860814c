"""The items that stores read and write: objects before the cache, bytes behind it, for any kind of address."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Any, ClassVar, Generic, Protocol, Self, TypeAlias, TypeVar

from pystreams.errors import SchemaRegistryError
from pystreams.record import NO_HEADERS, Headers, RecordContext
from pystreams.state.cache.item_cache import ItemCache
from pystreams.state.cache.thread_cache import DirtyEntry, entry_bytes
from pystreams.state.formats import TIMESTAMP_BYTES, ValueAndTimestamp, pack_int64, unpack_int64
from pystreams.state.iterators import merge_cached
from pystreams.state.store import StoreContext, wrong_value

A = TypeVar("A")
A_contra = TypeVar("A_contra", contravariant=True)

Encode: TypeAlias = Callable[[Any], bytes]
Decode: TypeAlias = Callable[[bytes], Any]

#: Called for each flushed item with address, new value, old value, timestamp, headers; None stands for no value.
Listener: TypeAlias = Callable[[A, Any, Any, int, Headers], None]


#: Called with the error of an item. It raises the error, or returns if the other items are to be processed.
Failed: TypeAlias = Callable[[Exception], None]


def raised(error: Exception) -> None:
    """Raise the error."""
    raise error


class Below(Protocol[A_contra]):
    """The bytes below the cache, by address."""

    def get(self, address: A_contra, /) -> bytes | None:
        """The bytes at an address, None if there are none."""
        ...

    def put(self, address: A_contra, value: bytes | None, /) -> bytes | None:
        """Write bytes, None deletes. Returns the changelog's key, or None if it equals the address."""
        ...


class WriteItem(Protocol[A_contra]):
    """Sets value (None: delete) and timestamp at an address, as ``ItemCache.write``."""

    def __call__(
        self, address: A_contra, value: Any, timestamp: int, key: bytes | None = None, /
    ) -> None: ...


def identity(value: Any) -> Any:
    """Return the value: cached bytes are stored unchanged, and most keys are their own sort key."""
    return value


class Items(Generic[A]):
    """The items of a store: in the thread's cache if there is one; as bytes below; every change in the changelog.

    An *address* identifies an item in a kind of store: the bytes of a key, or a tuple of such bytes (the *record key*)
    and times. If it is a tuple, methods also get the record key. An *item* is a value, or a value with its timestamp,
    depending on the subclass. It is cached as an object if its type is immutable, else as bytes.
    """

    #: If False, items are always cached as bytes.
    caches_objects: ClassVar[bool] = True

    #: The parts of an item besides the value, for messages.
    form: ClassVar[str] = ""

    __slots__ = (
        "_below",
        "_cell",
        "_decode_flushed",
        "_failed",
        "_listener",
        "_log",
        "_put_below",
        "_send_old_values",
        "_shows_headers",
        "_spec",
        "cache",
        "cached_objects",
        "decode",
        "encode",
        "read",
    )

    def __init__(self, context: StoreContext, below: Below[A], cache: type[ItemCache]) -> None:
        serde = context.spec.value_serde
        self._spec = context.spec
        encode_value, decode_value = serde.serializer(context.topic), serde.deserializer(context.topic)
        #: Serializes and deserializes an item.
        self.encode, self.decode = self._codec(encode_value, decode_value)
        self._cell = context.cell
        self._log = _log_of(context)
        self._below = below.get
        self._put_below = below.put
        self._listener: Listener[A] | None = None
        self._failed: Failed = raised
        #: Deserializes flushed bytes for the listener.
        self._decode_flushed: Decode = self.decode
        self._send_old_values = False
        #: Whether programs see the headers of values.
        self._shows_headers = True
        self.cached_objects = context.cached and serde.immutable and self.caches_objects
        self.cache: ItemCache | None = None
        #: Reads the item at an address, or None. It is bound once, so that a cached object costs a single call.
        self.read: Callable[[A], Any] = self.read_flushed
        if context.cached and context.cache is not None:
            self.cache = cache(
                context.cache,
                context.namespace,
                context.cell,
                below.get,
                self.decode if self.cached_objects else identity,
                encode_value,
            )
            self.cache.listener = self._flushed
            self.read = self.cache.read if self.cached_objects else self._read_cached_bytes

    # The form of items, implemented by subclasses.

    def _codec(self, encode_value: Encode, decode_value: Decode) -> tuple[Encode, Decode]:
        """Functions that serialize and deserialize items."""
        raise NotImplementedError

    def public(self, item: Any) -> Any:
        """The item in the form for programs; None stays None."""
        raise NotImplementedError

    def _write_bytes(self, address: A, raw: bytes | None) -> None:
        """Write bytes to the store below and to the changelog."""
        raise NotImplementedError

    def _write_object(self, address: A, item: Any) -> None:
        """Write an item to the store below and to the changelog."""
        self._write_bytes(address, None if item is None else self.encode(item))

    def _forward(self, listener: Listener[A], address: A, new: Any, old: Any) -> None:
        """Call ``listener`` for a change from item ``old`` to item ``new``."""
        raise NotImplementedError

    # Reading and writing.

    def without_headers(self) -> Self:
        """The same items, for programs that read values without headers."""
        twin = copy(self)
        twin._shows_headers = False
        return twin

    def get(self, address: A) -> Any:
        """The item at an address in the form for programs, or None."""
        return self.public(self.read(address))

    def _raw(self, address: A) -> bytes | None:
        """The bytes at an address, unless the cache has objects."""
        return self._below(address) if self.cache is None else self.cache.read(address)

    def read_flushed(self, address: A) -> Any:
        """The item at an address as last forwarded: changes that the cache holds back are ignored."""
        raw = self._below(address)
        return None if raw is None else self.decode(raw)

    def peek(self, address: A) -> Any:
        """As ``read``, but the item does not become recently used."""
        entry = None if self.cache is None else self.cache.entries.get(address)
        if entry is None:
            return self.read_flushed(address)
        item = entry.item
        return item if self.cached_objects or item is None else self.decode(item)

    def _read_cached_bytes(self, address: A) -> Any:
        assert self.cache is not None
        raw = self.cache.read(address)
        return None if raw is None else self.decode(raw)

    def put(self, address: A, item: Any, key: bytes | None = None) -> None:
        """Set an item; None deletes it. Raises ``TypeError`` if it cannot be serialized."""
        try:
            raw = None if item is None else self.encode(item)
        except SchemaRegistryError:
            raise
        except Exception as error:
            raise wrong_value(self._spec, item, error, self.form) from error
        self.put_encoded(address, item, raw, key)

    def put_encoded(self, address: A, item: Any, raw: bytes | None, key: bytes | None = None) -> None:
        """Set an item whose bytes are known, so that serialization cannot fail."""
        if self.cache is None:
            self._write_bytes(address, raw)
        else:
            self._put_cached(self.cache, address, item if self.cached_objects else raw, raw, key)

    def _put_cached(
        self, cache: ItemCache, address: Any, cached: Any, raw: bytes | None, key: bytes | None
    ) -> None:
        context = self._cell.record
        key_bytes = cache.address_bytes + len(address if key is None else key)
        size = entry_bytes(key_bytes, 0 if raw is None else len(raw), context)
        cache.put(address, cached, context, size, dirty=True)

    def on_flush(self, listener: Listener[A], send_old_values: bool, failed: Failed = raised) -> None:
        """Call ``listener`` for each item that the cache flushes, with the record context of its entry.

        Old values are read only if they are to be sent. A deletion of an item that is not stored below is neither
        written nor forwarded. ``failed`` is called with the item's context if a value cannot be deserialized, or if
        ``listener`` raises. Source: CachingKeyValueStore.putAndMaybeForward, CachingWindowStore.putAndMaybeForward.
        """
        self._listener = listener
        self._failed = failed
        self._send_old_values = send_old_values

    def _flushed(self, batch: list[DirtyEntry]) -> None:
        cell, listener, failed, send_old = self._cell, self._listener, self._failed, self._send_old_values
        write = self._write_object if self.cached_objects else self._write_bytes
        as_item = identity if self.cached_objects else self._decode_flushed
        in_force = cell.record
        try:
            for address, cached, context in batch:
                cell.record = context
                old_raw = None
                if listener is not None and (send_old or cached is None):
                    old_raw = self._below(address)
                    if old_raw is None and cached is None:
                        continue
                write(address, cached)
                if listener is not None:
                    try:
                        new = None if cached is None else as_item(cached)
                        old = self.decode(old_raw) if send_old and old_raw is not None else None
                        self._forward(listener, address, new, old)
                    except Exception as error:  # noqa: BLE001 - serdes of users raise what they like
                        # The entries after this one must still be flushed.
                        failed(error)
        finally:
            cell.record = in_force

    # Scanning.

    def over_stored(
        self,
        cached: Iterator[tuple[Any, Any]],
        stored: Iterator[tuple[Any, Any]],
        *,
        order: Callable[[Any], Any] = identity,
        reverse: bool,
    ) -> Iterator[tuple[Any, bytes | None]]:
        """(key, bytes) of cached entries merged over stored ones; ``order`` returns the sort key of a key."""
        for key, item, from_cache in merge_cached(cached, stored, order, reverse=reverse):
            yield key, self.encode(item) if from_cache and self.cached_objects and item is not None else item

    def item_of(self, raw: bytes | None) -> Any:
        """The item for bytes."""
        return None if raw is None else self.decode(raw)

    def public_of(self, raw: bytes | None) -> Any:
        """The form for programs of an item's bytes."""
        return None if raw is None else self.public(self.decode(raw))


def _log_of(context: StoreContext) -> Callable[[Any, bytes | None, int, Headers], None]:
    """The function that appends to the changelog, without headers unless the spec has them logged."""
    log, cell = context.log_change, context.cell
    if not context.spec.logs_headers or context.spec.headers:
        return log
    return lambda key, value, timestamp, _: log(key, value, timestamp, cell.record[4])


class PlainItems(Items[A]):
    """Items that are plain values."""

    __slots__ = ()

    def _codec(self, encode_value: Encode, decode_value: Decode) -> tuple[Encode, Decode]:
        return encode_value, decode_value

    def public(self, item: Any) -> Any:
        return item

    def _write_bytes(self, address: A, raw: bytes | None) -> None:
        self._log(self._put_below(address, raw) or address, raw, self._cell.record[3], NO_HEADERS)

    def _forward(self, listener: Listener[A], address: A, new: Any, old: Any) -> None:
        context = self._cell.record
        listener(address, new, old, context[3], context[4])


class TimestampedItems(Items[A]):
    """Tuples ``(value, timestamp)``; in bytes the timestamp precedes the value. In the changelog the value is plain,
    and the timestamp is the record's. Source: ChangeLoggingTimestampedKeyValueBytesStore."""

    form: ClassVar[str] = "(value, timestamp)"

    __slots__ = ("_encode_value", "write")

    def __init__(self, context: StoreContext, below: Below[A], cache: type[ItemCache]) -> None:
        super().__init__(context, below, cache)
        #: Sets value (None: delete) and timestamp. It is bound once, like ``read``.
        self.write: WriteItem[A]
        if self.cache is None:
            self.write = self._write_through
        elif self.cached_objects:
            self.write = self.cache.write
        else:
            self.write = self._write_cached_bytes

    def _codec(self, encode_value: Encode, decode_value: Decode) -> tuple[Encode, Decode]:
        self._encode_value = encode_value

        def encode(item: tuple[Any, int]) -> bytes:
            value, timestamp = item
            return pack_int64(timestamp) + encode_value(value)

        def decode(raw: bytes) -> tuple[Any, int]:
            return decode_value(raw[TIMESTAMP_BYTES:]), unpack_int64(raw)[0]

        return encode, decode

    def public(self, item: Any) -> Any:
        return None if item is None else ValueAndTimestamp(*item)

    def encoded(self, value: Any, timestamp: int) -> bytes | None:
        """The bytes of a value and its timestamp, for ``put_encoded``."""
        return None if value is None else self.encode((value, timestamp))

    def write_past_cache(self, values: Iterable[tuple[A, Any, int, RecordContext]]) -> None:
        """Write and forward values (None: delete) with their timestamps, as a flush of the cache would. The cache must
        not have any of these addresses."""
        if self.cached_objects:
            self._flushed(
                [
                    (address, None if value is None else (value, timestamp), context)
                    for address, value, timestamp, context in values
                ]
            )
        else:
            self._flushed(
                [
                    (address, self.encoded(value, timestamp), context)
                    for address, value, timestamp, context in values
                ]
            )

    def put(self, address: A, item: Any, key: bytes | None = None) -> None:
        if item is not None:
            if not isinstance(item, tuple | list):
                raise wrong_value(self._spec, item, "the timestamp is missing", self.form)
            # As in Java, None with a timestamp is a deletion, too (ValueAndTimestamp.make).
            item = tuple(item) if item and item[0] is not None else None
        super().put(address, item, key)

    def _write_through(self, address: A, value: Any, timestamp: int, key: bytes | None = None) -> None:
        if value is None:
            self._write_bytes(address, None)
            return
        data = self._encode_value(value)
        changelog_key = self._put_below(address, pack_int64(timestamp) + data) or address
        self._log(changelog_key, data, timestamp, NO_HEADERS)

    def _write_cached_bytes(self, address: A, value: Any, timestamp: int, key: bytes | None = None) -> None:
        assert self.cache is not None
        raw = None if value is None else pack_int64(timestamp) + self._encode_value(value)
        self._put_cached(self.cache, address, raw, raw, key)

    def _write_bytes(self, address: A, raw: bytes | None) -> None:
        changelog_key = self._put_below(address, raw) or address
        if raw is None:
            self._log(changelog_key, None, self._cell.record[3], NO_HEADERS)
        else:
            self._log(changelog_key, raw[TIMESTAMP_BYTES:], unpack_int64(raw)[0], NO_HEADERS)

    def _write_object(self, address: A, item: Any) -> None:
        if item is None:
            self._write_bytes(address, None)
        else:
            self._write_through(address, *item)

    def _forward(self, listener: Listener[A], address: A, new: Any, old: Any) -> None:
        context = self._cell.record
        value, timestamp = (None, context[3]) if new is None else new
        listener(address, value, None if old is None else old[0], timestamp, context[4])
