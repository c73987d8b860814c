"""Aggregations over history whose results are held in columns: see ``final_results``.

Records are added in batches, all of a batch at once. Each record costs a look at its key and at its window; if the
input of the step comes in columns (backfill/compute/column_input.py), this is done once for each key of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import chain, islice
from typing import Any, Final

import numpy as np

from pystreams.dsl.aggregates.aggregate import Row
from pystreams.dsl.operators.base import Folded, OperatorEnvironment
from pystreams.dsl.operators.column_looks import SAMPLE_ROWS, Looks
from pystreams.dsl.operators.final_results import (
    NULL_KEY_OR_VALUE,
    Room,
    failed_while_holding,
    has_entries,
    key_bytes,
    writing,
)
from pystreams.dsl.operators.state_columns import (
    Chosen,
    FunctionColumn,
    StateColumn,
    add_chosen,
    extended,
    states_at,
)
from pystreams.record import NO_HEADERS, Headers, RecordContext
from pystreams.stream_time import Observed

_NEVER: Final = 1 << 62

_FIRST_PLACES: Final = 1024

#: The window of an aggregation without windows.
_ALWAYS: Final = 0


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows that follow each other without a gap."""

    size_ms: int
    grace_ms: int

    @property
    def open_for_ms(self) -> int:
        """How long after its start a window closes."""
        return self.size_ms + self.grace_ms


@dataclass(frozen=True, slots=True)
class Batch:
    """Records in columns, one element for each record. None lacks its key or value, none is late for its window.

    ``keys`` are numbers of ``distinct_keys`` (what ``address_of`` gives). ``nows`` is the stream time when each has
    come. ``chosen`` has for each column of the step what it adds. ``headers`` gives those of the records with some
    numbers (None: no record has any). ``topic`` and ``partition`` are those of all.
    """

    keys: Any
    distinct_keys: Sequence[Any]
    timestamps: Any
    nows: Any
    offsets: Any
    chosen: Sequence[Chosen]
    headers: Callable[[Any], Sequence[Headers]] | None
    topic: str
    partition: int


class ColumnFold(Folded):
    """An aggregation that folds in columns. ``add_batch`` does what ``process`` does with each record of a batch."""

    __slots__ = ("_entries", "_environment", "_windows", "columns")

    def __init__(
        self,
        environment: OperatorEnvironment,
        entries: Entries,
        columns: Sequence[StateColumn],
        windows: Windows | None,
    ) -> None:
        self.columns = columns
        self._environment = environment
        self._entries = entries
        #: The windows, and the stream time of the step, which other aggregations do not have.
        self._windows = None if windows is None else (windows, environment.observed())
        process = self._by_key() if self._windows is None else self._by_window(*self._windows)
        super().__init__(process, entries.write_all)

    def address_of(self, key: Any) -> Any:
        """The identity of a key: itself if it is text, else its bytes, because 1, 1.0 and True are equal in Python."""
        return key if key.__class__ is str else self._entries.encode_key(key)

    # Record by record

    def _by_key(self) -> Callable[..., None]:
        drop, encode_key, append = self._environment.drop, self._entries.encode_key, self._entries.appender()

        def process(key: Any, value: Any, timestamp: int, _headers: Headers) -> None:
            if key is None or value is None:
                drop(NULL_KEY_OR_VALUE)
                return
            append(_ALWAYS, key if key.__class__ is str else encode_key(key), value, timestamp)

        return process

    def _by_window(self, windows: Windows, time: Observed) -> Callable[..., None]:
        entries, drop, drop_late = self._entries, self._environment.drop, self._environment.drop_late
        encode_key, append = entries.encode_key, entries.appender()
        size_ms, open_for_ms = windows.size_ms, windows.open_for_ms

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
                if now >= entries.next_close_ms:
                    entries.write_closed(now)
            start = timestamp // size_ms * size_ms
            if start + open_for_ms <= now:
                drop_late(key, value, now, now - start - size_ms + 1)
                return
            append(start, key if key.__class__ is str else encode_key(key), value, timestamp)

        return process

    # In batches

    def nows(self, timestamps: Any) -> Any:
        """The stream time when each of the next records, which have these timestamps, has come; zeros without
        windows."""
        if self._windows is None:
            return np.zeros(len(timestamps), np.int64)
        return np.maximum.accumulate(np.maximum(timestamps, self._windows[1].ms))

    def late(self, timestamps: Any, nows: Any) -> Any:
        """The numbers of the records that are too late for their windows."""
        if self._windows is None:
            return np.zeros(0, np.int64)
        return np.flatnonzero(self._starts(timestamps) + self._windows[0].open_for_ms <= nows)

    def drop_late(self, record: RecordContext, key: Any, value: Any, now: int) -> None:
        """Drop a record that is too late for its window at the stream time ``now``."""
        assert self._windows is not None
        size_ms = self._windows[0].size_ms
        self._environment.cell.record = record
        self._environment.drop_late(key, value, now, now - record[3] // size_ms * size_ms - size_ms + 1)

    def add_batch(self, batch: Batch) -> None:
        """Process all records of a batch."""
        self._entries.add_waiting()
        self._entries.add(batch, self._starts(batch.timestamps))

    def pass_time(self, now: int) -> None:
        """All records up to the stream time ``now`` have come: windows that it closes are final."""
        if self._windows is not None:
            self._windows[1].see(now)
            if now >= self._entries.next_close_ms:
                self._entries.write_closed(now)

    def _starts(self, timestamps: Any) -> Any:
        """The start of the window of each record; zeros without windows."""
        if self._windows is None:
            return np.zeros(len(timestamps), np.int64)
        size_ms = self._windows[0].size_ms
        return timestamps // size_ms * size_ms


class _Waiting:
    """Records that wait to be added together: the place of each, and what else is needed of it."""

    __slots__ = ("chosen", "contexts", "places", "timestamps")

    def __init__(self, columns: int) -> None:
        self.places: list[int] = []
        self.timestamps: list[int] = []
        self.contexts: list[RecordContext] = []
        #: By column.
        self.chosen: list[list[Any]] = [[] for _ in range(columns)]

    def clear(self) -> None:
        self.places.clear()
        self.timestamps.clear()
        self.contexts.clear()
        for of_column in self.chosen:
            of_column.clear()


class LastRecords:
    """By place, the record that came last: its context, or only where it was and when, if it came in a batch."""

    def __init__(self) -> None:
        self._contexts: dict[int, RecordContext] = {}
        #: Of records of batches that have any.
        self._headers: dict[int, Headers] = {}
        self._offsets = np.zeros(0, np.int64)
        self._timestamps = np.zeros(0, np.int64)
        #: Topic and partition of all that came in batches.
        self._came_from: tuple[str | None, int] = (None, -1)

    def resize(self, size: int) -> None:
        """Make room for ``size`` places."""
        self._offsets = extended(self._offsets, size, 0)
        self._timestamps = extended(self._timestamps, size, 0)

    def set_each(self, places: Sequence[int], contexts: Sequence[RecordContext]) -> None:
        """Records that came one by one."""
        self._contexts.update(zip(places, contexts, strict=True))

    def set_batch(self, places: Any, batch: Batch, records: Any) -> None:
        """Records of a batch, by number; each place is there once."""
        self._came_from = batch.topic, batch.partition
        self._offsets[places] = batch.offsets[records]
        self._timestamps[places] = batch.timestamps[records]
        if self._contexts:
            for place in places.tolist():
                self._contexts.pop(place, None)
        if batch.headers is not None:
            self._headers.update(zip(places.tolist(), batch.headers(records), strict=True))
        elif self._headers:
            for place in places.tolist():
                self._headers.pop(place, None)

    def take(self, place: int) -> RecordContext:
        """The context of a place, which is empty then."""
        context, headers = self._contexts.pop(place, None), self._headers.pop(place, NO_HEADERS)
        if context is not None:
            return context
        offset, timestamp = int(self._offsets[place]), int(self._timestamps[place])
        return (*self._came_from, offset, timestamp, headers)


class Entries:
    """The results that are held: places in columns, by window and key; and how they are written."""

    def __init__(
        self,
        environment: OperatorEnvironment,
        store: Any,
        row: Row,
        columns: Sequence[StateColumn],
        windows: Windows | None,
        bytes_max: int,
    ) -> None:
        self.encode_key = store.encode_key
        #: When the first window closes.
        self.next_close_ms = _NEVER
        self._environment = environment
        self._store = store
        self._row = row
        self._columns = columns
        self._open_for_ms = None if windows is None else windows.open_for_ms
        #: By start, and then by key, the place of an entry.
        self._held: dict[int, dict[Any, int]] = {}
        self._starts: list[int] = []
        self._free: list[int] = []
        self._timestamps = np.full(0, -1, np.int64)
        self._last_records = LastRecords()
        #: Whether the store has entries that may be those of a key.
        self._reads = has_entries(store)
        self._looks = Looks(
            Room(environment, store.spec, bytes_max), lambda: len(self._timestamps) - len(self._free)
        )
        self._waiting = _Waiting(len(columns))

    # Adding

    def appender(self) -> Callable[[int, Any, Any, int], None]:
        """The function that has a record wait for the next batch: start, address, value, timestamp."""
        waiting, cell, held, looks = self._waiting, self._environment.cell, self._held, self._looks
        places, timestamps, contexts = waiting.places, waiting.timestamps, waiting.contexts
        choosing = [
            (column.choose, chosen)
            for column, chosen in zip(self._columns, waiting.chosen, strict=True)
            if column.choose is not None
        ]

        def append(start: int, address: Any, value: Any, timestamp: int) -> None:
            window = held.get(start)
            place = None if window is None else window.get(address)
            places.append(self._place(start, address) if place is None else place)
            try:
                for choose, chosen in choosing:
                    chosen.append(None if value is None else choose(value))
            except Exception as error:
                raise failed_while_holding(self._environment, error) from error
            timestamps.append(timestamp)
            contexts.append(cell.record)
            if len(places) >= looks.records:
                self.add_waiting()

        return append

    def add_waiting(self) -> None:
        """Add the records that wait."""
        waiting = self._waiting
        if not waiting.places:
            return
        try:
            chosen = [
                (None, None) if column.choose is None else column.taken(of_column)
                for column, of_column in zip(self._columns, waiting.chosen, strict=True)
            ]
            self._add(np.array(waiting.places, np.int64), np.array(waiting.timestamps, np.int64), chosen)
        except Exception as error:
            raise failed_while_holding(self._environment, error) from error
        self._last_records.set_each(waiting.places, waiting.contexts)
        added = len(waiting.places)
        waiting.clear()
        self._look_after(added)

    def add(self, batch: Batch, starts: Any) -> None:
        """Add the records of a batch to the windows with these starts."""
        nows, start, size = batch.nows, 0, len(starts)
        while start < size:
            end = min(size, start + self._looks.records)
            try:
                self._add_part(batch, starts[start:end], slice(start, end))
            except Exception as error:
                raise failed_while_holding(self._environment, error) from error
            if nows[end - 1] >= self.next_close_ms:
                self.write_closed(int(nows[end - 1]))
            self._look_after(end - start)
            start = end

    def _add_part(self, batch: Batch, starts: Any, part: slice) -> None:
        distinct_starts, numbers = np.unique(starts, return_inverse=True)
        pairs = numbers * len(batch.distinct_keys) + batch.keys[part]
        distinct, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
        # In the order in which they came, which is the order in which they will be written.
        order = np.argsort(first)
        places = np.zeros(len(distinct), np.int64)
        of_starts, of_keys = np.divmod(distinct[order], len(batch.distinct_keys))
        places[order] = self._places(
            distinct_starts[of_starts].tolist(), of_keys.tolist(), batch.distinct_keys
        )
        self._add(places[inverse], batch.timestamps[part], [_sliced(one, part) for one in batch.chosen])
        last = np.zeros(len(distinct), np.int64)
        last[inverse] = np.arange(part.start, part.stop)
        self._last_records.set_batch(places, batch, last)

    def _add(self, places: Any, timestamps: Any, chosen: Sequence[Chosen]) -> None:
        np.maximum.at(self._timestamps, places, timestamps)
        for column, of_column in zip(self._columns, chosen, strict=True):
            for number in add_chosen(column, places, of_column):
                # Its time is the greatest of the records since then.
                place, since = places[number], slice(number, None)
                self._timestamps[place] = timestamps[since][places[since] == place].max()

    # Places

    def _places(self, starts: Sequence[int], keys: Sequence[int], addresses: Sequence[Any]) -> list[int]:
        """The places of several entries; ``keys`` are numbers of ``addresses``."""
        held, places = self._held, []
        for start, key in zip(starts, keys, strict=True):
            window, address = held.get(start), addresses[key]
            place = None if window is None else window.get(address)
            places.append(self._place(start, address) if place is None else place)
        return places

    def _place(self, start: int, address: Any) -> int:
        """The place of an entry. One that is not held is held then."""
        window = self._held.get(start)
        if window is None:
            window = self._opened(start)
        place = window.get(address)
        if place is None:
            place = window[address] = self._new_place()
            if self._reads and not self._row.merges:
                self._load(place, start, address)
        return place

    def _opened(self, start: int) -> dict[Any, int]:
        window: dict[Any, int] = {}
        self._held[start] = window
        if self._open_for_ms is not None:
            heappush(self._starts, start)
            self.next_close_ms = self._starts[0] + self._open_for_ms
        return window

    def _new_place(self) -> int:
        if not self._free:
            size = len(self._timestamps)
            more = max(_FIRST_PLACES, size)
            self._free = list(range(size + more - 1, size - 1, -1))
            self._last_records.resize(size + more)
            self._timestamps = extended(self._timestamps, size + more, -1)
            for column in self._columns:
                column.resize(size + more)
        return self._free.pop()

    def _load(self, place: int, start: int, address: Any) -> None:
        """Continue from the content of the store, because values that are added now cannot be merged with it later."""
        found = self._store.read(key_bytes(address, self.encode_key), *self._at(start))
        (column,) = self._columns
        if found is not None and isinstance(column, FunctionColumn):
            aggregate, self._timestamps[place] = found
            column.load(place, aggregate)

    # How much is held

    def _look_after(self, records: int) -> None:
        """Write everything if too much is held, whenever a look is due."""
        if not self._looks.due(records):
            return
        if self._looks.full(self._some_rows):
            self._write_held()
            self._reads = True
        self._looks.begin()

    def _some_rows(self) -> list[Any]:
        held = chain.from_iterable(window.values() for window in self._held.values())
        places = np.fromiter(islice(held, SAMPLE_ROWS), np.int64)
        return [self._row.row(states) for states in states_at(self._columns, places)]

    # Writing

    def write_closed(self, now: int) -> None:
        """Write the windows that have closed."""
        assert self._open_for_ms is not None
        self.add_waiting()
        while self._starts and self._starts[0] + self._open_for_ms <= now:
            start = heappop(self._starts)
            self._write(start, self._held.pop(start))
        self.next_close_ms = self._starts[0] + self._open_for_ms if self._starts else _NEVER

    def write_all(self) -> None:
        """Write what waits and all that is held, window by window."""
        self.add_waiting()
        self._write_held()

    def _write_held(self) -> None:
        for start in sorted(self._held):
            self._write(start, self._held.pop(start))
        self._starts.clear()
        self.next_close_ms = _NEVER

    def _write(self, start: int, window: dict[Any, int]) -> None:
        places = np.fromiter(window.values(), np.int64, len(window))
        take, encode_key, row = self._last_records.take, self.encode_key, self._row
        with writing(self._environment):
            entries = [
                (key_bytes(address, encode_key), row.row(states), timestamp, take(place))
                for (address, place), timestamp, states in zip(
                    window.items(),
                    self._timestamps[places].tolist(),
                    states_at(self._columns, places),
                    strict=True,
                )
            ]
            if self._reads:
                self._write_each(start, entries)
            elif self._open_for_ms is None:
                self._store.write_past_cache(entries)
            else:
                self._store.write_past_cache(((key, start), *entry) for key, *entry in entries)
        for column in self._columns:
            column.clear(places)
        self._timestamps[places] = -1
        self._free += reversed(places.tolist())

    def _write_each(self, start: int, entries: Iterable[tuple[bytes, Any, int, RecordContext]]) -> None:
        """Write entries that the store, or its cache, may have already."""
        cell, store, row, at = self._environment.cell, self._store, self._row, self._at(start)
        context = cell.record
        for key, value, timestamp, cell.record in entries:
            before = store.read(key, *at) if row.merges else None
            if before is None:
                store.write(key, *at, value, timestamp)
            else:
                store.write(key, *at, row.merge(before[0], value), max(before[1], timestamp))
        cell.record = context

    def _at(self, start: int) -> tuple[int, ...]:
        """The start of a window, where the store has windows."""
        return () if self._open_for_ms is None else (start,)


def _sliced(chosen: Chosen, part: slice) -> Chosen:
    taken, missing = chosen
    return (None if taken is None else taken[part], None if missing is None else missing[part])
