"""Emits windows once, when they have closed.

The progress of the emission is stored with the task's offsets in Kafka Streams' form (ProcessorMetadata, under the
store's name), so that pystreams and Kafka Streams can continue each other's work.

The record that closes windows is written before they are emitted, and may move the store's time past their retention:
Kafka Streams then loses them. Here the store *holds* windows that have not been emitted: it does not delete them, and
lets the emission read them. The order of all cache accesses is the same as in Kafka Streams.

Source: AbstractKStreamTimeWindowAggregateProcessor, KStreamWindowAggregate, KStreamSlidingWindowAggregate,
KStreamSessionWindowAggregate (fetchAndEmit).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pystreams.dsl.operators.base import OperatorEnvironment
from pystreams.dsl.operators.changes import change_forwarder
from pystreams.record import NO_HEADERS, Headers
from pystreams.stream_time import Observed

#: Called after each record with the time before which windows are closed, and with the record's headers.
EmitClosed = Callable[[int, Headers], None]


def time_that_closes(
    environment: OperatorEnvironment, close_after_ms: int, emit: EmitClosed | None
) -> Observed:
    """The step's stream time. ``emit`` is called when it has moved without a record; windows have closed
    ``close_after_ms`` after their end."""
    if emit is None:
        return environment.observed()
    time = environment.observed(lambda: emit(time.ms - close_after_ms, NO_HEADERS))
    return time


def emit_time_windows(environment: OperatorEnvironment, store: Any, size: int, advance: int) -> EmitClosed:
    """For tumbling and hopping windows: emits those that end at the close time or before."""
    forward_windows = _window_forwarder(environment, store)
    last = environment.load_metadata(store.name)
    environment.save_metadata(store.name, lambda: last)
    lower = _beginning(store) if last is None else max(0, last - size) + 1
    store.hold(lower)

    def emit(close_time: int, headers: Headers) -> None:
        nonlocal last, lower
        upper = close_time - size
        if upper < 0:
            return
        if last is not None:
            if last >= close_time:
                return
            before = lower - 1
            # Both times are in the same windows, so no window has closed since.
            if upper // advance == before // advance and _first(upper) == _first(before):
                return
        forward_windows(lower, upper, headers)
        last, lower = close_time, max(lower, upper + 1)
        store.hold(lower)

    def _first(time: int) -> int:
        return max(0, time - size + advance) // advance

    return emit


def emit_sliding_windows(environment: OperatorEnvironment, store: Any, difference: int) -> EmitClosed:
    """For sliding windows: emits those that end before the close time."""
    forward_windows = _window_forwarder(environment, store)
    last = environment.load_metadata(store.name)
    environment.save_metadata(store.name, lambda: last)
    lower = _beginning(store) if last is None else max(0, last - difference)
    store.hold(lower)

    def emit(close_time: int, headers: Headers) -> None:
        nonlocal last, lower
        upper = close_time - difference - 1
        if upper < 0 or (last is not None and last >= close_time):
            return
        forward_windows(lower, upper, headers)
        last, lower = close_time, max(lower, upper + 1)
        store.hold(lower)

    return emit


def _beginning(store: Any) -> int:
    """The time where the first emission starts. Before the program was changed, windows may have been emitted in
    another way: of these, the first emission includes those that the store still shows."""
    first: int = store.first_visible_ms
    return max(0, first)


def _window_forwarder(environment: OperatorEnvironment, store: Any) -> Callable[[int, int, Headers], None]:
    forward_change, rows = change_forwarder(environment), store.without_headers()

    def forward_windows(lower: int, upper: int, headers: Headers) -> None:
        for window, (value, timestamp) in _readable(environment, rows.fetch_held(lower, upper)):
            forward_change(window, value, None, timestamp, headers)

    return forward_windows


def _readable(
    environment: OperatorEnvironment, entries: Iterator[tuple[Any, Any]]
) -> Iterator[tuple[Any, Any]]:
    """The entries that can be deserialized. For the others the handler decides, and the emission continues."""
    cell, failed = environment.cell, environment.failed_waiting
    while True:
        try:
            entry = next(entries)
        except StopIteration:
            return
        except Exception as error:  # noqa: BLE001 - a serde of the user's raises what it likes
            context = cell.record
            cell.record = (None, -1, -1, context[3], NO_HEADERS)
            failed(error, None, None, (None, None))
            cell.record = context
            continue
        yield entry


def emit_sessions(environment: OperatorEnvironment, store: Any) -> EmitClosed:
    """For sessions: emits those that end before the close time."""
    forward_change, rows = change_forwarder(environment), store.without_headers()
    last = environment.load_metadata(store.name)
    environment.save_metadata(store.name, lambda: last)
    lower = _beginning(store) if last is None else max(0, last)
    store.hold(lower)

    def emit(close_time: int, headers: Headers) -> None:
        nonlocal last, lower
        if close_time <= lower:
            return
        for session, value in _readable(environment, rows.find_held(lower, close_time - 1)):
            forward_change(session, value, None, session.end, headers)
        last = lower = close_time
        store.hold(lower)

    return emit
