"""Aggregations of a grouped stream in tumbling, hopping and unlimited windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pystreams.dsl.operators.base import ObjectOperation, Operator, OperatorEnvironment
from pystreams.dsl.operators.changes import change_forwarder, forward_flushed_windows
from pystreams.dsl.operators.forgotten import none_warning
from pystreams.dsl.operators.in_place import copier, on_a_copy
from pystreams.dsl.operators.window_close import emit_time_windows
from pystreams.functions import UserFunction
from pystreams.record import Headers
from pystreams.windowed import Windowed


@dataclass(eq=False, slots=True)
class WindowAggregate(ObjectOperation):
    """``count``, ``aggregate`` and ``reduce`` (``initializer`` gives None) by window.

    A window takes records until the greatest timestamp seen here reaches its end plus the grace. That timestamp is
    kept over restarts (Java forgets it). ``start_ms`` is that of the only window, if there are no others; ``on_close``:
    windows are emitted when they have closed. Source: KStreamWindowAggregate.
    """

    emits_changes: ClassVar[bool] = True
    store: str
    size_ms: int
    advance_ms: int
    grace_ms: int
    initializer: UserFunction
    aggregator: UserFunction
    start_ms: int | None = None
    on_close: bool = False
    send_old_values: bool = False

    def open(self, environment: OperatorEnvironment) -> Operator:
        store = environment.store(self.store)
        size, advance, grace, only_start = self.size_ms, self.advance_ms, self.grace_ms, self.start_ms
        initialize = self.initializer.call
        encode_key, read, write = store.encode_key, store.read, store.write
        drop = environment.drop
        forward_change, send_old = change_forwarder(environment), self.send_old_values
        emit = emit_time_windows(environment, store, size, advance) if self.on_close else None
        if emit is None:
            forward_flushed_windows(environment, store, send_old, size)
        forwards = emit is None and not store.cached
        aggregator = on_a_copy(self.aggregator, copier(environment, store, needed=forwards and send_old))
        aggregate, takes_key = aggregator.call, aggregator.takes_key
        gave_none = none_warning(environment, self.aggregator)
        stream_time = environment.load_state("stream_time", -1)
        environment.save_state("stream_time", lambda: stream_time)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            nonlocal stream_time
            if key is None:
                drop("null key")
                return
            if timestamp > stream_time:
                stream_time = timestamp
            close_time = stream_time - grace
            key_bytes = encode_key(key)
            start = (timestamp - size + advance) // advance * advance if only_start is None else only_start
            if start < 0:
                start = 0
            while start <= timestamp:
                if start + size > close_time:
                    entry = read(key_bytes, start)
                    new_timestamp = timestamp
                    if entry is None:
                        old = initialize()
                    else:
                        old, old_timestamp = entry
                        if old_timestamp > timestamp:
                            new_timestamp = old_timestamp
                    new = aggregate(key, old, value) if takes_key else aggregate(old, value)
                    if new is None and entry is None and value is not None:
                        gave_none()
                    write(key_bytes, start, new, new_timestamp)
                    if forwards:
                        window = Windowed(key, start, start + size)
                        forward_change(window, new, old if send_old else None, new_timestamp, headers)
                else:
                    drop("its window has closed")
                start += advance
            if emit is not None:
                emit(close_time, headers)

        return Operator(process)
