"""Changes of a table that are held back: until their window has closed, or for some time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from pystreams.dsl.operators.base import ObjectOperation, Operator, OperatorEnvironment
from pystreams.dsl.operators.value_getter import Get, ValueGetter
from pystreams.errors import StateError
from pystreams.record import Headers
from pystreams.windowed import Windowed

#: The time of a value that is still held back from others: unknown.
_UNKNOWN = -1


@dataclass(eq=False, slots=True)
class Suppress(ObjectOperation):
    """Holds the last change of each key back until stream time has passed ``wait_ms`` after it: after the end of its
    window (``until_close``), or the time of the first change that is held back.

    Stream time is the greatest timestamp seen here; it is kept over restarts (Java forgets it). ``max_records`` and
    ``max_bytes`` bound the buffer, None: not; ``emits_early``: a full one lets the first changes go, else it fails.
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
        stream_time = environment.load_state("stream_time", -1)
        environment.save_state("stream_time", lambda: stream_time)

        def process(key: Any, new: Any, old: Any, _latest: bool, timestamp: int, _headers: Headers) -> None:
            nonlocal stream_time
            if timestamp > stream_time:
                stream_time = timestamp
            context = cell.record
            buffer.put(key, _window_end(key) if until_close else context[3], new, old, context)
            close_time = stream_time - wait
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
        """No handler is asked: who goes on would hold more and more."""
        bounds = {"records": (len(buffer), self.max_records), "bytes": (buffer.size_bytes, self.max_bytes)}
        counted = [f"{n} {what} of {most}" for what, (n, most) in bounds.items() if most is not None]
        return StateError(
            f"{step} holds more changes back than it may: {' and '.join(counted)}",
            where=f"store {self.store}",
            why="it is told to stop when it is full, since to let changes go early would make results that are "
            "not final",
            hint="raise max_records= or max_bytes= of its Suppressed, or give shorter windows or less grace",
        )


def _emitter(environment: OperatorEnvironment, buffer: Any, *, drops_tombstones: bool) -> Callable[[], None]:
    """A function that lets the first change go, as the record that it came with. A tombstone of a window that nobody
    has heard of is none."""
    cell, forward, failed = environment.cell, environment.forward, environment.failed_waiting
    decode_key, decoded = buffer.decode_key, buffer.decoded

    def emit_first() -> None:
        key_bytes, entry = buffer.first()
        if entry.new is not None or not drops_tombstones:
            context, cell.record = cell.record, entry.context
            try:
                key, new, old = decode_key(key_bytes), decoded(entry.new), decoded(entry.old)
                forward(key, new, old, True, entry.context[3], entry.context[4])
            except Exception as error:  # noqa: BLE001 - a serde of the user's raises what it likes
                failed(error, None, None, (key_bytes, entry.new))
            cell.record = context
        buffer.remove(key_bytes)

    return emit_first


def _window_end(key: Any) -> int:
    if not isinstance(key, Windowed):
        raise TypeError(f"suppress until the window closes gets a key without a window: {key!r}")
    return key.end


@dataclass(eq=False, slots=True)
class SuppressGetter(ValueGetter):
    """Of a key with a change that is held back, the value from before; else the table's."""

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
