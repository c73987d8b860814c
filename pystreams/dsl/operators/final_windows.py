"""Aggregations by window of which only the last result is observed: see ``final_results``. A window is written when it
has closed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any

from pystreams.dsl.operators.base import Folded, OperatorEnvironment
from pystreams.dsl.operators.final_results import (
    Begin,
    Entry,
    Room,
    aggregates_of,
    failed_while_holding,
    has_entries,
    key_bytes,
    writing,
)
from pystreams.dsl.operators.in_place import copier
from pystreams.functions import UserFunction
from pystreams.record import Headers

_NEVER = 1 << 62


def fold_windows(
    environment: OperatorEnvironment,
    store: Any,
    begin: Begin,
    function: UserFunction,
    starts: Callable[[int], Iterable[int]],
    size_ms: int,
    grace_ms: int,
    bytes_max: int,
) -> Folded:
    """``function`` gives the next aggregate, ``starts`` the windows of a time. If the windows that are open have more
    than about ``bytes_max`` bytes, they are written before they close: the one that is in use last."""
    update, takes_key = function.call, function.takes_key
    drop, drop_late = environment.drop, environment.drop_late
    cell, encode_key, time = environment.cell, store.encode_key, environment.observed()
    copy = copier(environment, store.spec, needed=True)
    windows = HeldWindows(environment, store, size_ms + grace_ms, bytes_max)
    held, opened, found = windows.held, windows.opened, windows.found

    def process(key: Any, value: Any, timestamp: int, _headers: Headers) -> None:
        if key is None:
            drop("null key")
            return
        now = time.ms
        if timestamp > now:
            if time.unbounded:
                time.ms = now = timestamp
            elif timestamp > time.beyond_ms:
                now = time.see(timestamp)
            if now >= windows.next_close_ms:
                windows.write_closed(now)
        address = key if key.__class__ is str else encode_key(key)
        for start in starts(timestamp):
            window = held.get(start) or opened(start, now)
            if window is None:
                drop_late(key, value, now, now - start - size_ms + 1)
                continue
            entry = window.get(address) or found(window, start, address)
            before = entry[0]
            try:
                if before is None:
                    entry[1] = timestamp
                    aggregate = begin(key, value)
                else:
                    aggregate = update(key, before, value) if takes_key else update(before, value)
                if copy is not None and (before is None or aggregate is value):
                    aggregate = copy(aggregate)
            except Exception as error:
                raise failed_while_holding(environment, error) from error
            entry[0] = aggregate
            if timestamp > entry[1]:
                entry[1] = timestamp
            entry[2] = cell.record

    return Folded(process, windows.write_all)


class HeldWindows:
    """The kept windows, and the results that are written of them."""

    def __init__(
        self, environment: OperatorEnvironment, store: Any, open_for_ms: int, bytes_max: int
    ) -> None:
        #: By start, and then by key.
        self.held: dict[int, dict[Any, Entry]] = {}
        #: When the first of them closes.
        self.next_close_ms = _NEVER
        self._starts: list[int] = []
        self._environment = environment
        self._encode_key, self._read, self._write = store.encode_key, store.read, store.write
        self._open_for_ms = open_for_ms
        self._entries = 0
        self._room = Room(environment, store.spec, bytes_max)
        #: Whether the store has entries that may be those of a window.
        self._reads = has_entries(store)

    def opened(self, start: int, now: int) -> dict[Any, Entry] | None:
        """A window that holds nothing so far; None if it has closed."""
        if start + self._open_for_ms <= now:
            return None
        window = self.held.get(start)
        if window is None:
            window = self.held[start] = {}
            heappush(self._starts, start)
            self.next_close_ms = self._starts[0] + self._open_for_ms
        return window

    def found(self, window: dict[Any, Entry], start: int, address: Any) -> Entry:
        """The entry of a key that a window does not hold, which it does then."""
        if self._entries >= self._room.entries and self._room.full(
            aggregates_of(max(self.held.values(), key=len)), self._entries
        ):
            self._make_room(start)
        item = self._read(key_bytes(address, self._encode_key), start) if self._reads else None
        entry = window[address] = [None, -1, None] if item is None else [*item, None]
        self._entries += 1
        return entry

    def _make_room(self, used: int) -> None:
        """Write all windows but the one that is used; if that is large, its entries as well."""
        self._reads = True
        window = self.held.pop(used)
        self.write_all()
        self.held[used] = window
        if 2 * self._entries > self._room.entries:
            self._write_window(used, window)
        self._starts = [used]
        self.next_close_ms = used + self._open_for_ms

    def write_closed(self, now: int) -> None:
        """Write the windows that have closed."""
        while self._starts and self._starts[0] + self._open_for_ms <= now:
            start = heappop(self._starts)
            self._write_window(start, self.held.pop(start))
        self.next_close_ms = self._starts[0] + self._open_for_ms if self._starts else _NEVER

    def write_all(self) -> None:
        """Write all windows, in their order."""
        for start in sorted(self.held):
            self._write_window(start, self.held.pop(start))
        self._starts.clear()
        self.next_close_ms = _NEVER

    def _write_window(self, start: int, window: dict[Any, Entry]) -> None:
        cell, encode_key, write = self._environment.cell, self._encode_key, self._write
        context = cell.record
        with writing(self._environment):
            for address, (aggregate, timestamp, cell.record) in window.items():
                write(key_bytes(address, encode_key), start, aggregate, timestamp)
        cell.record = context
        self._entries -= len(window)
        window.clear()
