"""The processors of scenarios, by the names and with the behaviour that the scenario format gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pystreams.processor import Cancellable, Processor, ProcessorContext, PunctuationType
from pystreams.record import Record
from pystreams.windowed import Windowed
from tests.conformance.vocabulary import BoomError, ScenarioError, render, render_or_none

AnyRecord = Record[Any, Any]
AnyContext = ProcessorContext[Any, Any]
Handle = Callable[["Scripted", AnyRecord], None]

_TYPES = {"stream": PunctuationType.STREAM_TIME, "wall": PunctuationType.WALL_CLOCK_TIME}


class Scripted(Processor[Any, Any, Any, Any]):
    """A processor with at most one store."""

    def __init__(self, parameters: Sequence[str], store_name: str | None) -> None:
        self.parameters = parameters
        self.store_name = store_name
        self.store: Any = None

    def init(self, context: AnyContext) -> None:
        super().init(context)
        if self.store_name is not None:
            self.store = context.store(self.store_name)
        self.start()

    def start(self) -> None:
        """Schedule punctuators."""

    def schedule(self, interval_ms: int, punctuator: Callable[[int], None]) -> Cancellable:
        """By the first parameter's type of time."""
        return self.context.schedule(interval_ms, _TYPES[self.parameters[0]], punctuator)

    def emit(self, record: AnyRecord, value: Any, child: str | None = None) -> None:
        """Forward ``record`` with another value."""
        self.context.forward(record.with_value(value), child)

    def emit_new(self, key: Any, value: str, timestamp: int) -> None:
        """Forward a record of a punctuator's own."""
        self.context.forward(Record(key, value, timestamp))


class Simple(Scripted):
    """A function of the record alone, of the store at most."""

    def __init__(self, handle: Handle, parameters: Sequence[str], store_name: str | None) -> None:
        super().__init__(parameters, store_name)
        self.handle = handle

    def process(self, record: AnyRecord) -> None:
        self.handle(self, record)


def _pass(self: Scripted, record: AnyRecord) -> None:
    self.emit(record, render_or_none(record.value))


def _fan(self: Scripted, record: AnyRecord) -> None:
    for i in range(int(self.parameters[0])):
        self.emit(record, f"{render(record.value)}#{i}")


def _meta(self: Scripted, record: AnyRecord) -> None:
    meta = self.context.record_metadata()
    # In punctuation Java gives metadata without a topic, where pystreams gives none.
    where = "null|-1|-1" if meta is None else f"{meta.topic}|{meta.partition}|{meta.offset}"
    times = f"{record.timestamp}|{self.context.current_stream_time_ms()}"
    self.emit(record, f"{render(record.value)}|{where}|{times}")


def _add_header(self: Scripted, record: AnyRecord) -> None:
    name, text = self.parameters[0], self.parameters[1]
    changed = record.with_headers((*record.headers, (name, text.encode())))
    self.emit(changed, render_or_none(record.value))


def _drop_headers(self: Scripted, record: AnyRecord) -> None:
    self.emit(record.with_headers(()), render_or_none(record.value))


def _shift_ts(self: Scripted, record: AnyRecord) -> None:
    shifted = record.with_timestamp(record.timestamp + int(self.parameters[0]))
    self.emit(shifted, render_or_none(record.value))


def _dedup(self: Scripted, record: AnyRecord) -> None:
    if record.key is not None:
        last = self.store.get(record.key)
        if last is not None and record.timestamp - int(last) < int(self.parameters[0]):
            return
        self.store.put(record.key, str(record.timestamp))
    self.emit(record, render_or_none(record.value))


def _history(self: Scripted, record: AnyRecord) -> None:
    if record.key is None:
        return
    old = self.store.get(record.key)
    now = render(record.value) if old is None else f"{render(old)}+{render(record.value)}"
    self.store.put(record.key, now)
    self.emit(record, now)


def _lookup(self: Scripted, record: AnyRecord) -> None:
    found = None if record.key is None else self.store.get(record.key)
    text = f"{render(found[0])}@{found[1]}" if isinstance(found, tuple) else render(found)
    self.emit(record, f"{render(record.value)}~{text}")


def _versioned_put(self: Scripted, record: AnyRecord) -> None:
    if record.key is None:
        return
    valid_to = self.store.put(record.key, render_or_none(record.value), record.timestamp)
    found = (
        self.store.get(record.key),
        self.store.get(record.key, record.timestamp - int(self.parameters[0])),
    )
    shown = ("null" if one is None else f"{render(one.value)}@{one.timestamp}" for one in found)
    self.emit(record, "~".join((str(valid_to), *shown)))


def _throw_if(self: Scripted, record: AnyRecord) -> None:
    if self.parameters[0] in render(record.value):
        raise BoomError(f"boom {render(record.value)}")
    self.emit(record, render_or_none(record.value))


def _route(self: Scripted, record: AnyRecord) -> None:
    names = self.parameters[0].split(",")
    self.emit(record, render_or_none(record.value), names[len(render(record.value)) % len(names)])


def _ts_history(self: Scripted, record: AnyRecord) -> None:
    if record.key is None:
        return
    old = self.store.get(record.key)
    value = render(record.value)
    now = value if old is None else f"{render(old[0])}@{old[1]}+{value}"
    self.store.put(record.key, (now, record.timestamp))
    self.emit(record, now)


def _window_put(self: Scripted, record: AnyRecord) -> None:
    if record.key is None:
        return
    self.store.put(record.key, render_or_none(record.value), record.timestamp)
    start = max(0, record.timestamp - int(self.parameters[0]))
    found = read_all(self.store.fetch(record.key, start, record.timestamp))
    self.emit(record, ",".join(f"{render(value)}@{time}" for time, value in found))


def _session_put(self: Scripted, record: AnyRecord) -> None:
    if record.key is None:
        return
    gap, start, end, value = int(self.parameters[0]), record.timestamp, record.timestamp, ""
    for session, found in read_all(self.store.find_sessions(record.key, start - gap, end + gap)):
        start, end = min(start, session.start), max(end, session.end)
        value += f"{render(found)}+"
        self.store.remove(session)
    value += render(record.value)
    self.store.put(Windowed(record.key, start, end), value)
    self.emit(record, f"{value}[{start},{end}]")


def _scan(self: Scripted, record: AnyRecord) -> None:
    if record.key is None:
        return
    self.store.put(record.key, render_or_none(record.value))
    kind, *bounds = self.parameters
    if kind == "prefix":
        found = self.store.prefix_scan(bounds[0])
    else:
        found = getattr(self.store, kind)(*(bound or None for bound in bounds))
    self.emit(record, ",".join(f"{render(k)}={render(v)}" for k, v in read_all(found)))


def read_all(iterator: Any) -> list[Any]:
    """What is left of a store's iterator, which is closed."""
    with iterator:
        return list(iterator)


class Buffer(Scripted):
    """Collects by key; a punctuator empties the store."""

    def start(self) -> None:
        self.schedule(int(self.parameters[1]), self.punctuate)

    def punctuate(self, timestamp: int) -> None:
        for key, value in read_all(self.store.all()):
            self.store.delete(key)
            self.emit_new(key, f"{render(value)}!{timestamp}", timestamp)

    def process(self, record: AnyRecord) -> None:
        if record.key is None:
            return
        old, value = self.store.get(record.key), render(record.value)
        self.store.put(record.key, value if old is None else f"{render(old)}+{value}")


class Tick(Scripted):
    """Counts records; a punctuator tells how many."""

    once = False

    def start(self) -> None:
        self.count = 0
        self.punctuator = self.schedule(int(self.parameters[1]), self.punctuate)

    def punctuate(self, timestamp: int) -> None:
        self.emit_new("tick", f"{self.count}@{timestamp}", timestamp)
        self.count = 0
        if self.once:
            self.punctuator.cancel()

    def process(self, record: AnyRecord) -> None:
        self.count += 1
        self.emit(record, render_or_none(record.value))


class TickOnce(Tick):
    """Ends after the first punctuation."""

    once = True


class TwoTicks(Scripted):
    """Two punctuators of one type."""

    def start(self) -> None:
        for name, interval in zip("AB", self.parameters[1:3], strict=True):
            self.schedule(int(interval), self.punctuator(name))

    def punctuator(self, name: str) -> Callable[[int], None]:
        return lambda timestamp: self.emit_new(name, f"{name}@{timestamp}", timestamp)

    def process(self, record: AnyRecord) -> None:
        self.emit(record, render_or_none(record.value))


class Timer(Scripted):
    """Each record is held back by a punctuator of its own."""

    def process(self, record: AnyRecord) -> None:
        def punctuate(timestamp: int) -> None:
            timer.cancel()
            self.emit_new(record.key, f"{render(record.value)}!{timestamp}", timestamp)

        timer = self.schedule(int(self.parameters[1]), punctuate)


_SIMPLE: dict[str, Handle] = {
    "pass": _pass,
    "fan": _fan,
    "meta": _meta,
    "add_header": _add_header,
    "drop_headers": _drop_headers,
    "shift_ts": _shift_ts,
    "dedup": _dedup,
    "history": _history,
    "lookup": _lookup,
    "throw_if": _throw_if,
    "route": _route,
    "ts_history": _ts_history,
    "versioned_put": _versioned_put,
    "window_put": _window_put,
    "session_put": _session_put,
    "scan": _scan,
}
_CLASSES: dict[str, type[Scripted]] = {
    "buffer": Buffer,
    "tick": Tick,
    "tick_once": TickOnce,
    "two_ticks": TwoTicks,
    "timer": Timer,
}
_KEEP_THE_KEY = frozenset(
    (
        "pass",
        "fan",
        "meta",
        "add_header",
        "drop_headers",
        "shift_ts",
        "dedup",
        "history",
        "lookup",
        "throw_if",
    )
)


def supplier(name: str, stores: Iterable[str], *, fixed_key: bool) -> Callable[[], Scripted]:
    """What gives a new processor of that name for each task."""
    head, *parameters = name.split(":")
    store_name = next(iter(stores), None)
    if fixed_key and head not in _KEEP_THE_KEY:
        raise ScenarioError(f"unknown processor: {name}")
    if head in _SIMPLE:
        return lambda: Simple(_SIMPLE[head], parameters, store_name)
    if head in _CLASSES:
        return lambda: _CLASSES[head](parameters, store_name)
    raise ScenarioError(f"unknown processor: {name}")
