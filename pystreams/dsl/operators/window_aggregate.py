"""Aggregations of a grouped stream in tumbling, hopping and unlimited windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from pystreams.dsl.operators.base import Folded, FoldingOperation, Operator, OperatorEnvironment
from pystreams.dsl.operators.changes import change_forwarder, forward_flushed_windows
from pystreams.dsl.operators.final_results import OLD_VALUES, beginning
from pystreams.dsl.operators.final_windows import fold_windows
from pystreams.dsl.operators.forgotten import none_warning
from pystreams.dsl.operators.in_columns import folded_in_columns
from pystreams.dsl.operators.in_place import copier, on_a_copy
from pystreams.dsl.operators.record_time import with_record_time
from pystreams.dsl.operators.window_close import EmitClosed, emit_time_windows, time_that_closes
from pystreams.functions import UserFunction
from pystreams.record import Headers
from pystreams.windowed import Windowed


@dataclass(eq=False, slots=True)
class WindowAggregate(FoldingOperation):
    """``count``, ``aggregate`` and ``reduce`` (``initializer`` gives None) by window.

    A window accepts records until the stream time of this step reaches its end plus the grace period. ``start_ms`` is
    set if there is only one window, which starts there; ``on_close``: a window is emitted when it has closed. Source:
    KStreamWindowAggregate.
    """

    emits_changes: ClassVar[bool] = True
    stores_under_key: ClassVar[bool] = True
    store: str
    size_ms: int
    advance_ms: int
    grace_ms: int
    initializer: UserFunction
    aggregator: UserFunction
    #: As ``Aggregate.merger``.
    merger: UserFunction | None = None
    start_ms: int | None = None
    on_close: bool = False
    send_old_values: bool = False

    def open(self, environment: OperatorEnvironment) -> Operator:
        one = self.start_ms is not None or self.size_ms <= self.advance_ms
        return Operator(self._in_one(environment) if one else self._in_several(environment))

    def folds(self) -> str:
        if self.on_close:
            return "it emits windows when they close"
        return OLD_VALUES if self.send_old_values else ""

    def fold(self, environment: OperatorEnvironment, bytes_max: int) -> Folded:
        store = environment.store(self.store)
        self.forward_final(environment)
        aggregator = with_record_time(self.aggregator, environment)
        begin = beginning(environment, self.initializer, aggregator)
        if self._tumbles:
            size_ms, grace_ms = self.size_ms, self.grace_ms
            folded = folded_in_columns(
                environment, store, begin, self.aggregator, bytes_max, size_ms=size_ms, grace_ms=grace_ms
            )
            if folded is not None:
                return folded
        return fold_windows(
            environment, store, begin, aggregator, self.starts, self.size_ms, self.grace_ms, bytes_max
        )

    def forward_final(self, environment: OperatorEnvironment) -> None:
        """Have what its store is given forwarded."""
        store = environment.store(self.store)
        forward_flushed_windows(environment, store, send_old_values=False, size_ms=self.size_ms)

    @property
    def _tumbles(self) -> bool:
        """Whether each time is in exactly one window."""
        return self.start_ms is None and self.size_ms == self.advance_ms

    def starts(self, timestamp: int) -> Iterable[int]:
        """The starts of the windows that have this time."""
        size, advance = self.size_ms, self.advance_ms
        if self.start_ms is not None:
            return (self.start_ms,) if self.start_ms <= timestamp else ()
        if size <= advance:
            return (timestamp // advance * advance,)
        return range(max(0, (timestamp - size + advance) // advance * advance), timestamp + 1, advance)

    def _in_one(self, environment: OperatorEnvironment) -> Callable[..., None]:
        """The function for windows that do not overlap."""
        parts = _Parts(self, environment)
        size, advance, grace, only_start = self.size_ms, self.advance_ms, self.grace_ms, self.start_ms
        open_for = size + grace
        store, drop, gave_none, emit = parts.store, environment.drop, parts.gave_none, parts.emit
        drop_late = environment.drop_late
        encode_key, read, write = store.encode_key, store.read, store.write
        initialize, aggregate, takes_key = self.initializer.call, parts.aggregate, parts.takes_key
        forwards, forward_change, send_old = parts.forwards, parts.forward_change, self.send_old_values
        time = time_that_closes(environment, grace, emit)

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
            key_bytes = encode_key(key)
            start = timestamp // advance * advance if only_start is None else only_start
            if only_start is None or start <= timestamp:
                if start + open_for > now:
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
                    drop_late(key, value, now, now - start - size + 1)
            if emit is not None:
                emit(now - grace, headers)

        return process

    def _in_several(self, environment: OperatorEnvironment) -> Callable[..., None]:
        """The function for windows that overlap. A record is added to all of its windows, or to none if the
        aggregator or the serde raises for one of them: in Java the earlier windows keep it."""
        parts = _Parts(self, environment)
        size, advance, grace = self.size_ms, self.advance_ms, self.grace_ms
        open_for = size + grace
        store, drop, gave_none, emit = parts.store, environment.drop, parts.gave_none, parts.emit
        drop_late = environment.drop_late
        encode_key, peek, encoded, write = store.encode_key, store.peek, store.encoded, store.write_encoded
        initialize, aggregate, takes_key = self.initializer.call, parts.aggregate, parts.takes_key
        forwards, forward_change, send_old = parts.forwards, parts.forward_change, self.send_old_values
        time = time_that_closes(environment, grace, emit)

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
            key_bytes = encode_key(key)
            updates: list[tuple[int, Any, Any, int, bytes | None]] = []
            for start in range(
                max(0, (timestamp - size + advance) // advance * advance), timestamp + 1, advance
            ):
                if start + open_for <= now:
                    drop_late(key, value, now, now - start - size + 1)
                    continue
                # ``peek`` leaves the cache's order alone. The write below marks the entry as recently used, as in Java.
                entry = peek(key_bytes, start)
                old, new_timestamp = (initialize(), timestamp) if entry is None else entry
                if timestamp > new_timestamp:
                    new_timestamp = timestamp
                new = aggregate(key, old, value) if takes_key else aggregate(old, value)
                if new is None and entry is None and value is not None:
                    gave_none()
                updates.append((start, new, old, new_timestamp, encoded(new, new_timestamp)))
            for start, new, old, new_timestamp, raw in updates:
                write(key_bytes, start, new, new_timestamp, raw)
                if forwards:
                    window = Windowed(key, start, start + size)
                    forward_change(window, new, old if send_old else None, new_timestamp, headers)
            if emit is not None:
                emit(now - grace, headers)

        return process


class _Parts:
    """The parts of an aggregation in one task."""

    __slots__ = ("aggregate", "emit", "forward_change", "forwards", "gave_none", "store", "takes_key")

    def __init__(self, operation: WindowAggregate, environment: OperatorEnvironment) -> None:
        store = self.store = environment.store(operation.store)
        self.emit: EmitClosed | None = None
        if operation.on_close:
            self.emit = emit_time_windows(environment, store, operation.size_ms, operation.advance_ms)
        else:
            forward_flushed_windows(environment, store, operation.send_old_values, operation.size_ms)
        #: Whether changes are forwarded at once, not when a cache is flushed or a window closes.
        self.forwards = self.emit is None and not store.cached
        copy = copier(environment, store.spec, needed=self.forwards and operation.send_old_values)
        aggregator = on_a_copy(with_record_time(operation.aggregator, environment), copy)
        self.aggregate, self.takes_key = aggregator.call, aggregator.takes_key
        self.forward_change = change_forwarder(environment)
        self.gave_none = none_warning(environment, operation.aggregator)
