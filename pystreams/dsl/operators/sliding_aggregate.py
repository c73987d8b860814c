"""Aggregations of a grouped stream in sliding windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pystreams.dsl.operators.base import ObjectOperation, Operator, OperatorEnvironment
from pystreams.dsl.operators.changes import change_forwarder, forward_flushed_windows
from pystreams.dsl.operators.forgotten import none_warning
from pystreams.dsl.operators.in_place import copier, on_a_copy
from pystreams.dsl.operators.record_time import with_record_time
from pystreams.dsl.operators.window_close import emit_sliding_windows, time_that_closes
from pystreams.functions import UserFunction
from pystreams.record import Headers
from pystreams.windowed import Windowed

#: A window's aggregate and the greatest timestamp in it.
Entry = tuple[Any, int]


@dataclass(eq=False, slots=True)
class SlidingAggregate(ObjectOperation):
    """``count``, ``aggregate`` and ``reduce`` (``initializer`` gives None) by sliding window.

    Each record is in the window that ends with it (its *left* window) and directly before the window that starts
    after it (its *right* window). A window exists if it holds records, and not the same ones as its neighbours.
    ``on_close``: a window is emitted when it has closed. Source: KStreamSlidingWindowAggregate.
    """

    emits_changes: ClassVar[bool] = True
    stores_under_key: ClassVar[bool] = True
    store: str
    difference_ms: int
    grace_ms: int
    initializer: UserFunction
    aggregator: UserFunction
    on_close: bool = False
    send_old_values: bool = False

    def open(self, environment: OperatorEnvironment) -> Operator:
        store = environment.store(self.store)
        difference, grace = self.difference_ms, self.grace_ms
        encode_key, drop, drop_late = store.encode_key, environment.drop, environment.drop_late
        emit = emit_sliding_windows(environment, store, difference) if self.on_close else None
        if emit is None:
            forward_flushed_windows(environment, store, self.send_old_values, difference)
        windows = _Windows(self, environment, forwards=emit is None and not store.cached)
        time = time_that_closes(environment, grace, emit)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                drop("null key or value")
                return
            now = time.ms
            if timestamp > now:
                if time.unbounded:
                    time.ms = now = timestamp
                elif timestamp > time.beyond_ms:
                    now = time.see(timestamp)
            close_time = now - grace
            if timestamp + difference < close_time:
                # The first of its windows ends with the record itself.
                drop_late(key, value, now, now - timestamp)
                return
            record = _Arrival(key, encode_key(key), value, timestamp, headers, close_time)
            if timestamp < difference:
                # As in Java, such a record does not emit anything.
                windows.process_early(record)
                return
            windows.process(record)
            if emit is not None:
                emit(close_time, headers)

        return Operator(process)


@dataclass(frozen=True, slots=True)
class _Arrival:
    """A record, and the time before which windows are closed when it arrives."""

    key: Any
    key_bytes: bytes
    value: Any
    timestamp: int
    headers: Headers
    close_time: int


class _Windows:
    """The windows of one task."""

    __slots__ = (
        "_aggregate",
        "_difference",
        "_drop_late",
        "_forward",
        "_forwards",
        "_gave_none",
        "_grace",
        "_initialize",
        "_send_old",
        "_store",
        "_takes_key",
    )

    def __init__(
        self, operation: SlidingAggregate, environment: OperatorEnvironment, *, forwards: bool
    ) -> None:
        self._store = environment.store(operation.store)
        self._difference, self._grace = operation.difference_ms, operation.grace_ms
        self._initialize = operation.initializer.call
        # An aggregate of a window may also become the start of the next window's aggregate.
        copy = copier(environment, self._store.spec, needed=True)
        aggregator = on_a_copy(with_record_time(operation.aggregator, environment), copy)
        self._aggregate, self._takes_key = aggregator.call, aggregator.takes_key
        self._forward, self._send_old = change_forwarder(environment), operation.send_old_values
        self._forwards = forwards
        self._drop_late = environment.drop_late
        self._gave_none = none_warning(environment, operation.aggregator)

    def process(self, record: _Arrival) -> None:
        """Add a record to its windows, the latest first, and create the missing ones."""
        timestamp, difference = record.timestamp, self._difference
        starts: set[int] = set()
        left: Entry | None = None
        right: Entry | None = None
        left_exists = right_exists = False
        previous: int | None = None
        # The record's own right window starts at timestamp + 1.
        found = self._store.windows_of(
            record.key_bytes, max(0, timestamp - 2 * difference), timestamp + 1, reverse=True
        )
        for start, entry in found:
            starts.add(start)
            end = start + difference
            if start == timestamp + 1:
                right_exists = True
            elif end > timestamp:
                if right is None:
                    right = entry
                self._update(start, entry, record)
            elif end == timestamp:
                left_exists = True
                self._update(start, entry, record)
                if entry[1] >= timestamp:
                    # An earlier record with this timestamp has already created all windows.
                    return
                previous = entry[1]
            else:
                left, previous = entry, entry[1]
                break
        if previous is not None and previous + 1 not in starts and previous + 1 + difference >= timestamp:
            self._update(previous + 1, self._new(record), record)
        if not left_exists:
            shared = left is not None and previous is not None and timestamp - difference <= previous
            entry = (left[0], timestamp) if left is not None and shared else self._new(record)
            self._update(timestamp - difference, entry, record)
        if not right_exists:
            self._make_right(right, record)

    def process_early(self, record: _Arrival) -> None:
        """As ``process``, for a record whose left window would start before 0: all such records share the window from
        0."""
        timestamp = record.timestamp
        starts: set[int] = set()
        combined: Entry | None = None
        right: Entry | None = None
        right_exists = False
        previous: int | None = None
        for start, entry in self._store.windows_of(record.key_bytes, 0, timestamp + 1, reverse=False):
            starts.add(start)
            if start == 0:
                combined = entry
                if entry[1] < timestamp:
                    previous = entry[1]
            elif start <= timestamp:
                right = entry
                self._update(start, entry, record)
            else:
                right_exists = True
        if right is None and combined is not None and combined[1] > timestamp:
            # All its records are later than this one.
            right = combined
        if not right_exists:
            self._make_right(right, record)
        if previous is not None and previous + 1 not in starts:
            self._update(previous + 1, self._new(record), record)
        self._update(0, self._new(record) if combined is None else combined, record)

    def _new(self, record: _Arrival) -> Entry:
        return self._initialize(), record.timestamp

    def _make_right(self, right: Entry | None, record: _Arrival) -> None:
        """Create the record's right window, if there are records in it."""
        if right is None or right[1] <= record.timestamp:
            return
        start = record.timestamp + 1
        self._store.write(record.key_bytes, start, *right)
        self._forward_change(start, right[0], None, right[1], record)

    def _update(self, start: int, entry: Entry, record: _Arrival) -> None:
        """Add the record to a window, unless the window has closed."""
        if start + self._difference < record.close_time:
            stream_time = record.close_time + self._grace
            self._drop_late(record.key, record.value, stream_time, stream_time - start - self._difference)
            return
        old, timestamp = entry
        key, value = record.key, record.value
        new = self._aggregate(key, old, value) if self._takes_key else self._aggregate(old, value)
        if old is None or timestamp < record.timestamp:
            timestamp = record.timestamp
        if new is None:
            self._gave_none()
        self._store.write(record.key_bytes, start, new, timestamp)
        self._forward_change(start, new, old, timestamp, record)

    def _forward_change(self, start: int, new: Any, old: Any, timestamp: int, record: _Arrival) -> None:
        if self._forwards:
            window = Windowed(record.key, start, start + self._difference)
            self._forward(window, new, old if self._send_old else None, timestamp, record.headers)
