"""Holds back changes of a table: until their window has closed, or for some time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from pystreams.dsl.operators.base import ObjectOperation, Operator, OperatorEnvironment
from pystreams.dsl.operators.value_getter import Get, ValueGetter
from pystreams.errors import StateError
from pystreams.record import Headers
from pystreams.windowed import Windowed

#: The time of a held-back value, which other steps do not know.
_UNKNOWN = -1


@dataclass(eq=False, slots=True)
class Suppress(ObjectOperation):
    """Holds back the last change of each key until stream time has passed ``wait_ms`` after the end of its window
    (``until_close``), or after the first change of the key that is held back.

    ``max_records`` and ``max_bytes`` limit the buffer (None: no limit). ``emits_early``: a full buffer emits its first
    changes, else it fails.
    Source: KTableSuppressProcessorSupplier.
    """

    emits_changes: ClassVar[bool] = True
    takes_changes: ClassVar[bool] = True
    store: str
    wait_ms: int
    until_close: bool
    max_records: int | None
    max_bytes: int | None
    emits_early: bool

    def open(self, environment: OperatorEnvironment) -> Operator:
        buffer, cell = environment.store(self.store), environment.cell
        wait, until_close = self.wait_ms, self.until_close
        bounded = self.max_records is not None or self.max_bytes is not None
        emit_first = _emitter(environment, buffer, drops_tombstones=until_close)
        full = self._full

        def emit_final() -> None:
            close_time = time.ms - wait
            while buffer.first_time <= close_time:
                emit_first()

        time = environment.observed(emit_final)

        def process(key: Any, new: Any, old: Any, timestamp: int, _headers: Headers, _latest: bool) -> None:
            now = time.ms
            if timestamp > now:
                if time.unbounded:
                    time.ms = now = timestamp
                elif timestamp > time.beyond_ms:
                    now = time.see(timestamp)
            context = cell.record
            buffer.put(key, _window_end(key) if until_close else context[3], new, old, context)
            close_time = now - wait
            while buffer.first_time <= close_time:
                emit_first()
            if bounded:
                while full(buffer):
                    if not self.emits_early:
                        raise self._too_much(environment.node_name, buffer)
                    emit_first()

        return Operator(process)

    def _full(self, buffer: Any) -> bool:
        return (self.max_records is not None and len(buffer) > self.max_records) or (
            self.max_bytes is not None and buffer.size_bytes > self.max_bytes
        )

    def _too_much(self, step: str, buffer: Any) -> StateError:
        """The error for a full buffer. No handler is called, because the buffer would only grow further."""
        bounds = {"records": (len(buffer), self.max_records), "bytes": (buffer.size_bytes, self.max_bytes)}
        counted = [f"{n} {what} of {most}" for what, (n, most) in bounds.items() if most is not None]
        return StateError(
            f"{step} holds back more changes than its limit: {' and '.join(counted)}",
            where=f"store {self.store}",
            why="it is set to stop when it is full, because results that are emitted early would not be final",
            hint="raise max_records= or max_bytes= of its Suppressed, or give shorter windows or less grace",
        )


def _emitter(environment: OperatorEnvironment, buffer: Any, *, drops_tombstones: bool) -> Callable[[], None]:
    """A function that emits the first change of the buffer, with the context of its record. ``drops_tombstones``: a
    deletion is not emitted, because the deleted window has not been emitted either."""
    cell, forward, failed = environment.cell, environment.forward, environment.failed_waiting
    decode_key, decoded = buffer.decode_key, buffer.decoded

    def emit_first() -> None:
        key_bytes, entry = buffer.first()
        if entry.new is not None or not drops_tombstones:
            context, cell.record = cell.record, entry.context
            try:
                key, new, old = decode_key(key_bytes), decoded(entry.new), decoded(entry.old)
                forward(key, new, old, entry.context[3], entry.context[4], True)
            except Exception as error:  # noqa: BLE001 - a serde of the user's raises what it likes
                failed(error, None, None, (key_bytes, entry.new))
            cell.record = context
        buffer.remove(key_bytes)

    return emit_first


def _window_end(key: Any) -> int:
    if not isinstance(key, Windowed):
        raise TypeError(f"suppress until the window closes needs windowed keys, not {key!r}")
    return key.end


@dataclass(eq=False, slots=True)
class SuppressGetter(ValueGetter):
    """Reads the value before the change if a change of the key is held back, else the table's value."""

    store: str
    parent: ValueGetter

    def store_names(self) -> tuple[str, ...]:
        return (self.store, *self.parent.store_names())

    def open(self, environment: OperatorEnvironment, *, flushed: bool = False) -> Get:
        buffer, parent = environment.store(self.store), self.parent.open(environment, flushed=flushed)
        held, decoded = buffer.held, buffer.decoded

        def get(key: Any) -> tuple[Any, int] | None:
            entry = held(key)
            if entry is None:
                return parent(key)
            return None if entry.prior is None else (decoded(entry.prior), _UNKNOWN)

        return get
