"""Emits windows once, when they have closed.

How far the emission came is kept with the task's offsets as Kafka Streams keeps it (ProcessorMetadata, under the
store's name), so either goes on where the other stopped. Source: AbstractKStreamTimeWindowAggregateProcessor,
KStreamWindowAggregate, KStreamSlidingWindowAggregate, KStreamSessionWindowAggregate (fetchAndEmit).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pystreams.dsl.operators.base import OperatorEnvironment
from pystreams.dsl.operators.changes import change_forwarder
from pystreams.record import Headers

#: Called after each record with the time before which windows have closed, and the record's headers.
EmitClosed = Callable[[int, Headers], None]


def emit_time_windows(environment: OperatorEnvironment, store: Any, size: int, advance: int) -> EmitClosed:
    """For tumbling and hopping windows: those that end at the close time or before."""
    forward_windows = _window_forwarder(environment, store)
    last = environment.load_metadata(store.name)
    environment.save_metadata(store.name, lambda: last)

    def emit(close_time: int, headers: Headers) -> None:
        nonlocal last
        upper = close_time - size
        if upper < 0:
            return
        lower = 0
        if last is not None:
            if last >= close_time:
                return
            before = max(0, last - size)
            # The windows that a time is in are the same for both: none has closed since.
            if upper // advance == before // advance and _first(upper) == _first(before):
                return
            lower = before + 1
        forward_windows(lower, upper, headers)
        last = close_time

    def _first(time: int) -> int:
        return max(0, time - size + advance) // advance

    return emit


def emit_sliding_windows(environment: OperatorEnvironment, store: Any, difference: int) -> EmitClosed:
    """For sliding windows: those that end before the close time."""
    forward_windows = _window_forwarder(environment, store)
    last = environment.load_metadata(store.name)
    environment.save_metadata(store.name, lambda: last)

    def emit(close_time: int, headers: Headers) -> None:
        nonlocal last
        upper = close_time - difference - 1
        if upper < 0 or (last is not None and last >= close_time):
            return
        forward_windows(0 if last is None else max(0, last - difference), upper, headers)
        last = close_time

    return emit


def _window_forwarder(environment: OperatorEnvironment, store: Any) -> Callable[[int, int, Headers], None]:
    forward_change = change_forwarder(environment)

    def forward_windows(lower: int, upper: int, headers: Headers) -> None:
        for window, (value, timestamp) in store.fetch_all(lower, upper):
            forward_change(window, value, None, timestamp, headers)

    return forward_windows


def emit_sessions(environment: OperatorEnvironment, store: Any) -> EmitClosed:
    """For sessions: those that end before the close time."""
    forward_change = change_forwarder(environment)
    last = environment.load_metadata(store.name)
    environment.save_metadata(store.name, lambda: last)

    def emit(close_time: int, headers: Headers) -> None:
        nonlocal last
        lower = 0 if last is None else max(0, last)
        if close_time <= lower or (last is not None and last >= close_time):
            return
        for session, value in store.find_ended_sessions(lower, close_time - 1):
            forward_change(session, value, None, session.end, headers)
        last = close_time

    return emit
