"""Session stores: values by key, start and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, Self, TypeVar, cast

from pystreams.record import NO_HEADERS, ContextCell, Headers
from pystreams.state.cache.item_cache import ItemCache
from pystreams.state.formats import unpack_int64
from pystreams.state.iterators import StoreIterator
from pystreams.state.layers.session_layer import (
    SESSION_SUFFIX_BYTES,
    SessionLayer,
    session_key,
    session_matches,
    split_session_key,
)
from pystreams.state.sorted_map import SortedKeys
from pystreams.state.store import LogChange, Logged, Store, StoreContext
from pystreams.state.stores.header_items import PlainHeaderItems
from pystreams.state.stores.items import Failed, PlainItems, raised
from pystreams.stream_time import TIME_MAX
from pystreams.windowed import Windowed

K = TypeVar("K")
V = TypeVar("V")

#: Called for each flushed session with key bytes, start, end, new value, old value, timestamp, headers.
SessionFlushListener = Callable[[bytes, int, int, Any, Any, int, Headers], None]

#: A session's place in the cache: the segment of its end, and its key of the changelog.
_Place = tuple[int, bytes]


class _Places:
    """The places of all sessions in a cache, in any order."""

    __slots__ = ("_cache",)

    def __init__(self, cache: SessionCache) -> None:
        self._cache = cache

    def __iter__(self) -> Iterator[_Place]:
        return map(self._cache.place, self._cache.entries)


class SessionCache(ItemCache):
    """The cache of a session store, by the changelog's key. Only written entries are cached. Source:
    CachingSessionStore."""

    #: The segment before the store's key (SegmentedCacheFunction) counts.
    address_bytes = 8

    __slots__ = ("_interval_ms", "_places")

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self._interval_ms = 1
        self._places: SortedKeys[_Place] = SortedKeys(_Places(self))

    def arrange(self, interval_ms: int) -> None:
        """Set the length of a segment, 1 for stores in memory."""
        self._interval_ms = interval_ms

    def place(self, address: bytes) -> _Place:
        """The place of a session, by which sessions are walked through."""
        end: int = unpack_int64(address, len(address) - SESSION_SUFFIX_BYTES)[0]
        return end // self._interval_ms, address

    def added(self, key: bytes) -> None:
        self._places.added(self.place(key))

    def removed(self, key: bytes) -> None:
        self._places.removed(self.place(key))

    def clear(self) -> None:
        super().clear()
        self._places.clear()

    def of_key(self, key: bytes, earliest_end: int, latest_start: int, *, by_segment: bool) -> list[bytes]:
        """The cached sessions that Kafka Streams passes (and makes recently used) when it reads a key, perhaps with
        those of other keys. ``by_segment``: those between the bounds in each segment; else all that end at
        ``earliest_end`` or later."""
        places, interval = self._places, self._interval_ms
        first = max(0, earliest_end)
        segment = first // interval
        if not by_segment:
            return [address for _, address in places.walk((segment, session_key(key, 0, first)))]
        found: list[bytes] = []
        while True:
            last = min((segment + 1) * interval - 1, TIME_MAX)
            lower = segment, session_key(key, 0, max(first, segment * interval))
            upper = segment, session_key(key, min(latest_start, last), last)
            found += (address for _, address in places.between(lower, upper, upper_inclusive=True))
            following = next(places.walk((segment + 1, b"")), None)
            if following is None:
                return found
            segment = following[0]

    def in_order(self) -> list[bytes]:
        """All cached sessions, in order."""
        return [address for _, address in self._places.between(None, None, upper_inclusive=True)]


class SessionStore(Store, Generic[K, V]):
    """Values by key and session. Source: SessionStore, MeteredSessionStore, ChangeLoggingSessionBytesStore.

    Times are milliseconds since the epoch; start and end of a session are inclusive. Persistent stores sort sessions by
    the segment of their end, key bytes, end and start; in-memory stores by end, key bytes, and start in descending
    order.
    """

    __slots__ = ("_cell", "_items", "_log", "encode_value", "layer", "read", "write")

    def __init__(self, context: StoreContext, layer: SessionLayer) -> None:
        super().__init__(context)
        with_headers = PlainHeaderItems(context, layer, SessionCache) if context.spec.headers else None
        items: PlainItems[bytes] = with_headers or PlainItems(context, layer, SessionCache)
        self._items = items
        self._cell: ContextCell = context.cell
        self._log: LogChange = context.log_change
        self.layer = layer
        self.cache = items.cache
        if items.cache is not None:
            cast("SessionCache", items.cache).arrange(layer.layout.interval_ms)
        #: Returns the value of a session by its key of the changelog, or None.
        self.read: Callable[[bytes], Any] = items.read
        #: Serializes a value, for ``write``.
        self.encode_value: Callable[[Any], bytes]
        self.encode_value = items.encode if with_headers is None else with_headers.encode_value
        #: Sets a value, given with its bytes, by that key; None deletes it.
        self.write: Callable[[bytes, Any, bytes | None], None] = items.put_encoded

    # The methods for operators, by keys of the changelog.

    def on_flush(
        self, listener: SessionFlushListener, send_old_values: bool, failed: Failed = raised
    ) -> None:
        """As ``Items.on_flush``."""

        def flushed(address: bytes, new: Any, old: Any, timestamp: int, headers: Headers) -> None:
            listener(*split_session_key(address), new, old, timestamp, headers)

        self._items.on_flush(flushed, send_old_values, failed)

    def read_flushed(self, address: bytes) -> Any:
        """As ``read``, as of the last flush."""
        return self._items.read_flushed(address)

    def delete(self, address: bytes) -> None:
        """Delete a session."""
        if self.cache is not None:
            self._items.put(address, None)
            return
        self.layer.remove(address)
        context = self._cell.record
        self._log(address, None, context[3], context[4] if self.spec.headers else NO_HEADERS)

    def sessions(
        self, key: bytes, earliest_end: int, latest_start: int, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, Any]]:
        """(changelog key, value) of a serialized key's sessions that end at ``earliest_end`` or later and start at
        ``latest_start`` or earlier."""
        pairs = self._pairs(key, key, earliest_end, latest_start, reverse=reverse)
        value_of = self._items.item_of
        return ((address, value_of(raw)) for address, raw in pairs)

    def hold(self, time_ms: int) -> None:
        """Keep sessions that end at this time or later when they expire, until the next call."""
        self.layer.hold(time_ms)

    @property
    def first_visible_ms(self) -> int:
        """The earliest visible end: sessions that end before have expired, and are hidden."""
        return self.layer.first_visible_ms

    def find_held(self, earliest_end: int, latest_end: int) -> StoreIterator[Windowed[K], V]:
        """As ``find_ended_sessions``, including expired, hidden sessions that still exist."""
        return self._iterator(self.layer.find_held(earliest_end, latest_end))

    def without_headers(self) -> Self:
        return self._with_items(self._items.without_headers()) if self.spec.headers else self

    # The methods for programs.

    def put(self, session: Windowed[K], value: V | None) -> None:
        """Set the value of a session; None deletes it. A session that is too old is dropped."""
        self._items.put(self._address(session), value)

    def remove(self, session: Windowed[K]) -> None:
        """Delete a session, if it exists."""
        self.delete(self._address(session))

    def fetch_session(self, key: K, start: int, end: int) -> V | None:
        """The value of exactly this session, or None."""
        return cast("V | None", self._items.get(session_key(self._encoded(key), start, end)))

    def fetch(self, key: K) -> StoreIterator[Windowed[K], V]:
        """(session, value) of all sessions of a key."""
        return self.find_sessions(key, 0, TIME_MAX)

    def backward_fetch(self, key: K) -> StoreIterator[Windowed[K], V]:
        """As ``fetch``, in reverse order."""
        return self.backward_find_sessions(key, 0, TIME_MAX)

    def find_sessions(self, key: K, earliest_end: int, latest_start: int) -> StoreIterator[Windowed[K], V]:
        """(session, value) of the key's sessions that end at ``earliest_end`` or later and start at ``latest_start`` or
        earlier: the sessions that a record between the two times would merge."""
        key_bytes = self._encoded(key)
        return self._iterator(self._pairs(key_bytes, key_bytes, earliest_end, latest_start))

    def backward_find_sessions(
        self, key: K, earliest_end: int, latest_start: int
    ) -> StoreIterator[Windowed[K], V]:
        """As ``find_sessions``, in reverse order."""
        key_bytes = self._encoded(key)
        return self._iterator(self._pairs(key_bytes, key_bytes, earliest_end, latest_start, reverse=True))

    def find_sessions_range(
        self, key_from: K | None, key_to: K | None, earliest_end: int, latest_start: int
    ) -> StoreIterator[Windowed[K], V]:
        """As ``find_sessions`` for a range of keys, both inclusive; None leaves an end open."""
        bounds = self._bound(key_from), self._bound(key_to)
        return self._iterator(self._pairs(*bounds, earliest_end, latest_start))

    def backward_find_sessions_range(
        self, key_from: K | None, key_to: K | None, earliest_end: int, latest_start: int
    ) -> StoreIterator[Windowed[K], V]:
        """As ``find_sessions_range``, in reverse order."""
        bounds = self._bound(key_from), self._bound(key_to)
        return self._iterator(self._pairs(*bounds, earliest_end, latest_start, reverse=True))

    def fetch_range(self, key_from: K | None, key_to: K | None) -> StoreIterator[Windowed[K], V]:
        """(session, value) of all sessions of a range of keys, both inclusive; None leaves an end open."""
        return self.find_sessions_range(key_from, key_to, 0, TIME_MAX)

    def backward_fetch_range(self, key_from: K | None, key_to: K | None) -> StoreIterator[Windowed[K], V]:
        """As ``fetch_range``, in reverse order."""
        return self.backward_find_sessions_range(key_from, key_to, 0, TIME_MAX)

    def find_ended_sessions(self, earliest_end: int, latest_end: int) -> StoreIterator[Windowed[K], V]:
        """(session, value) of the sessions that end in a span of time, in the order of their ends. For stores without a
        cache. Raises ``StateError`` if the store does not keep that order."""
        return self._iterator(self.layer.find_ended(earliest_end, latest_end))

    def all(self) -> StoreIterator[Windowed[K], V]:
        """All sessions."""
        return self.fetch_range(None, None)

    def logged(self) -> Iterator[Logged]:
        return self.spec.form.logged(self.layer.logged())

    def _address(self, session: Windowed[K]) -> bytes:
        given: object = session
        if not isinstance(given, tuple | list) or len(given) != 3:
            raise TypeError(
                f"a session of store {self.name} must be a Windowed(key, start, end), not a {type(given).__name__}"
            )
        key, start, end = session
        return session_key(self._encoded(key), self._ms(start), self._ms(end))

    def _iterator(self, pairs: Iterator[tuple[bytes, Any]]) -> StoreIterator[Windowed[K], V]:
        decode_key, value_of = self.decode_key, self._items.public_of

        def decode(address: bytes, raw: bytes | None) -> tuple[Windowed[Any], Any]:
            key, start, end = split_session_key(address)
            return Windowed(decode_key(key), start, end), value_of(raw)

        return self._tracked(StoreIterator(self.name, pairs, decode))

    def _pairs(
        self,
        key_from: bytes | None,
        key_to: bytes | None,
        earliest_end: int,
        latest_start: int,
        *,
        reverse: bool = False,
    ) -> Iterator[tuple[bytes, Any]]:
        """(changelog key, bytes) of cached sessions merged over stored ones."""
        if self._reversed_bounds(key_from, key_to):
            return iter(())
        stored = self.layer.find(key_from, key_to, earliest_end, latest_start, reverse=reverse)
        if self.cache is None:
            return stored
        cache = cast("SessionCache", self.cache)
        addresses: list[bytes]
        if key_from is not None and key_from == key_to:
            addresses = cache.of_key(key_from, earliest_end, latest_start, by_segment=self.persistent)
        else:
            addresses = cache.in_order()
        order: Callable[[bytes], Any] = cache.place
        if not self.persistent:
            order = self._order_in_memory
            addresses.sort(key=order)
        if reverse:
            addresses.reverse()
        cached = (
            entry
            for entry in cache.walk_over(addresses)
            if session_matches(entry[0], key_from, key_to, earliest_end, latest_start)
        )
        return self._items.over_stored(cached, stored, order=order, reverse=reverse)

    def _order_in_memory(self, address: bytes) -> Any:
        key, start, end = split_session_key(address)
        return end, key, -start
