"""Aggregations of a grouped stream in sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pystreams.dsl.operators.base import ObjectOperation, Operator, OperatorEnvironment
from pystreams.dsl.operators.changes import change_forwarder, forward_flushed_sessions
from pystreams.dsl.operators.forgotten import none_warning
from pystreams.dsl.operators.in_place import copier, merging_a_copy
from pystreams.dsl.operators.record_time import with_record_time
from pystreams.dsl.operators.window_close import emit_sessions, time_that_closes
from pystreams.functions import UserFunction
from pystreams.record import NO_HEADERS, Headers
from pystreams.state.layers.session_layer import session_key, split_session_key
from pystreams.windowed import Windowed


@dataclass(eq=False, slots=True)
class SessionAggregate(ObjectOperation):
    """``count``, ``aggregate`` and ``reduce`` (``initializer`` gives None) by session.

    A record joins the sessions within ``gap_ms`` of it: they are deleted, each with a change of its own, and a new
    session replaces them. ``on_close``: a session is emitted when it has closed. Source: KStreamSessionWindowAggregate.
    """

    emits_changes: ClassVar[bool] = True
    stores_under_key: ClassVar[bool] = True
    store: str
    gap_ms: int
    grace_ms: int
    initializer: UserFunction
    aggregator: UserFunction
    merger: UserFunction
    on_close: bool = False
    send_old_values: bool = False

    def open(self, environment: OperatorEnvironment) -> Operator:
        store = environment.store(self.store)
        gap, close_after = self.gap_ms, self.gap_ms + self.grace_ms
        initialize = self.initializer.call
        aggregator = with_record_time(self.aggregator, environment)
        aggregate, takes_key = aggregator.call, aggregator.takes_key
        encode_key, encode_value = store.encode_key, store.encode_value
        sessions, write, delete = store.sessions, store.write, store.delete
        drop, drop_late = environment.drop, environment.drop_late
        forward_change, send_old = change_forwarder(environment), self.send_old_values
        emit = emit_sessions(environment, store) if self.on_close else None
        if emit is None:
            forward_flushed_sessions(environment, store, send_old)
        forwards = emit is None and not store.cached
        merger = merging_a_copy(self.merger, copier(environment, store.spec, needed=forwards and send_old))
        merge, merge_takes_key = merger.call, merger.takes_key
        gave_none = none_warning(environment, self.aggregator)
        time = time_that_closes(environment, close_after, emit)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None:
                drop("null key")
                return
            now = time.ms
            if timestamp > now:
                if time.unbounded:
                    time.ms = now = timestamp
                elif timestamp > time.beyond_ms:
                    now = time.see(timestamp)
            close_time = now - close_after
            key_bytes = encode_key(key)
            first = last = timestamp
            merged: list[tuple[bytes, int, int, Any]] = []
            new = initialize()
            for address, old in sessions(key_bytes, timestamp - gap, timestamp + gap):
                _, start, end = split_session_key(address)
                merged.append((address, start, end, old))
                new = merge(key, new, old) if merge_takes_key else merge(new, old)
                first, last = min(first, start), max(last, end)
            if last < close_time:
                drop_late(key, value, now, now - gap - last)
            else:
                # This comes before the replaced sessions are deleted, so that they stay if aggregator or merger raises.
                new = aggregate(key, new, value) if takes_key else aggregate(new, value)
                new_bytes = None if new is None else encode_value(new)
                if first != last or first != timestamp:
                    for address, start, end, old in merged:
                        delete(address)
                        if forwards:
                            session = Windowed(key, start, end)
                            forward_change(session, None, old if send_old else None, end, NO_HEADERS)
                if new is None and not merged and value is not None:
                    gave_none()
                write(session_key(key_bytes, first, last), new, new_bytes)
                if forwards:
                    forward_change(Windowed(key, first, last), new, None, last, NO_HEADERS)
            if emit is not None:
                emit(close_time, headers)

        return Operator(process)
