"""Forwards changes of an operator with a store: at once, or when the store's cache is flushed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from pystreams.dsl.operators.base import OperatorEnvironment
from pystreams.record import Headers
from pystreams.state.layers.versioned_layer import NOT_PUT, VALID_TO_UNDEFINED
from pystreams.windowed import Windowed


class ForwardChange(Protocol):
    """Takes what goes along a table edge."""

    def __call__(
        self, key: Any, new: Any, old: Any, timestamp: int, headers: Headers, is_latest: bool = True, /
    ) -> None: ...


def change_forwarder(environment: OperatorEnvironment, store: Any = None) -> ForwardChange:
    """A function that forwards a change with the record context set to the change's own timestamp and headers.

    For a versioned ``store`` it is called after a write: the store knows whether the write is the latest version. A
    write that came too late to be stored is not forwarded (KIP-914).

    Source: ProcessorContextImpl.forward.
    """
    cell, forward = environment.cell, environment.forward

    def forward_change(
        key: Any, new: Any, old: Any, timestamp: int, headers: Headers, is_latest: bool = True
    ) -> None:
        context = cell.record
        if context[3] == timestamp and context[4] is headers:
            forward(key, new, old, timestamp, headers, is_latest)
            return
        cell.record = (context[0], context[1], context[2], timestamp, headers)
        forward(key, new, old, timestamp, headers, is_latest)
        cell.record = context

    if store is None or store.spec.kind != "versioned":
        return forward_change

    def forward_version(
        key: Any, new: Any, old: Any, timestamp: int, headers: Headers, _is_latest: bool = True
    ) -> None:
        if store.valid_to != NOT_PUT:
            forward_change(key, new, old, timestamp, headers, store.valid_to == VALID_TO_UNDEFINED)

    return forward_version


def record_forwarder(environment: OperatorEnvironment) -> Callable[[Any, Any, int, Headers], None]:
    """As ``change_forwarder``, for a record: (key, value, timestamp, headers)."""
    cell, forward = environment.cell, environment.forward

    def forward_record(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        context = cell.record
        if context[3] == timestamp and context[4] is headers:
            forward(key, value, timestamp, headers)
            return
        cell.record = (context[0], context[1], context[2], timestamp, headers)
        forward(key, value, timestamp, headers)
        cell.record = context

    return forward_record


def failed_at_flush(environment: OperatorEnvironment) -> Callable[[Exception], None]:
    """A function that handles the error of an entry that a cache flushes: the current record is not at fault."""
    failed = environment.failed
    return lambda error: failed(error, None, None)


def forward_flushed(environment: OperatorEnvironment, store: Any, send_old_values: bool) -> None:
    """Forward the entries that a key-value store's cache flushes. Source: TimestampedCacheFlushListener."""
    forward_change = change_forwarder(environment)
    decode_key = store.decode_key

    def flushed(key_bytes: bytes, new: Any, old: Any, timestamp: int, headers: Headers) -> None:
        forward_change(decode_key(key_bytes), new, old, timestamp, headers)

    store.on_flush(flushed, send_old_values, failed_at_flush(environment))


def forward_flushed_windows(
    environment: OperatorEnvironment, store: Any, send_old_values: bool, size_ms: int
) -> None:
    """Forward the entries that a window store's cache flushes."""
    forward_change = change_forwarder(environment)
    decode_key = store.decode_key

    def flushed(key_bytes: bytes, start: int, new: Any, old: Any, timestamp: int, headers: Headers) -> None:
        key = Windowed(decode_key(key_bytes), start, start + size_ms)
        forward_change(key, new, old, timestamp, headers)

    store.on_flush(flushed, send_old_values, failed_at_flush(environment))


def forward_flushed_sessions(environment: OperatorEnvironment, store: Any, send_old_values: bool) -> None:
    """Forward the entries that a session store's cache flushes, at each session's end. Source:
    SessionCacheFlushListener."""
    forward_change = change_forwarder(environment)
    decode_key = store.decode_key

    def flushed(
        key_bytes: bytes, start: int, end: int, new: Any, old: Any, _timestamp: int, headers: Headers
    ) -> None:
        forward_change(Windowed(decode_key(key_bytes), start, end), new, old, end, headers)

    store.on_flush(flushed, send_old_values, failed_at_flush(environment))
