"""Partial aggregates by window: see ``partial_results``.

Whether a record is too late for a window is known before the topic: the step behind it has seen the greatest timestamp
of the record's own queue, and no greater one, because a task gets its records by these. Each row has this time before
its content, so that the step behind the topic closes windows at the same records as if all had come.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from struct import Struct
from typing import Any

from pystreams.dsl.operators.base import Folded, OperatorEnvironment
from pystreams.dsl.operators.final_results import failed_while_holding
from pystreams.dsl.operators.final_windows import HeldWindows
from pystreams.dsl.operators.partial_results import (
    Functions,
    Partial,
    Partials,
    Queue,
    QueueOf,
    Row,
    cannot_combine,
)
from pystreams.dsl.operators.window_aggregate import WindowAggregate
from pystreams.errors import FoldingError
from pystreams.functions import UserFunction
from pystreams.record import Headers
from pystreams.state.spec import StoreSpec
from pystreams.topology.names import changelog_topic
from pystreams.topology.nodes import SinkNode

#: The places of so many keys are remembered.
_PLACES_MAX = 65_536

#: Before the content of a row: what it is, the stream time, and the start of its window; of a late record, the number
#: of windows for which it is too late.
_HEAD = Struct(">bqq")
#: The starts of those windows follow.
_START = Struct(">q")


class _Kind(IntEnum):
    PARTIAL = 0
    #: A record that is too late for some windows, or in none: the content is its value.
    RECORD = 1
    #: The same with a null value.
    NULL = 2


def combine_windows(
    operation: WindowAggregate,
    environment: OperatorEnvironment,
    spec: StoreSpec,
    functions: Functions,
    queue_of: QueueOf,
    bytes_max: int,
) -> Folded:
    """Partials by window and key."""
    begin, update, merges_freely, encode, encode_key, encode_value, passed = functions
    starts, open_for_ms = operation.starts, operation.size_ms + operation.grace_ms

    def encoded(address: Any, partial: Partial) -> bytes:
        return _HEAD.pack(_Kind.PARTIAL, partial.time, address[0]) + encode(partial.aggregate)

    partials = Partials(environment, spec, queue_of, encoded, merges_freely, bytes_max)
    young, found, add = partials.young, partials.found, partials.add
    #: By key, its bytes and its queue.
    places: dict[Any, tuple[bytes, Queue]] = {}

    def placed(address: Any, key: Any) -> tuple[bytes, Queue]:
        if len(places) == _PLACES_MAX:
            places.clear()
        key_bytes = encode_key(key)
        place = places[address] = (key_bytes, queue_of(key_bytes))
        return place

    def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        try:
            address = key if key.__class__ is str else encode_key(key)
            key_bytes, queue = places.get(address) or placed(address, key)
            sequence = queue.sequence
            queue.sequence = sequence + 1
            if timestamp > queue.time:
                queue.time = timestamp
            now = queue.time
            came = None if value is None else passed(value)
            late: list[int] = []
            held = False
            for start in starts(timestamp):
                if start + open_for_ms <= now:
                    late.append(start)
                    continue
                held = True
                partial = young.get((start, address)) or found((start, address), key_bytes)
                before = partial.aggregate
                partial.aggregate = aggregate = begin(came) if before is None else update(before, came)
                if aggregate is None:
                    raise cannot_combine(environment, "its function gave None")
                if timestamp > partial.timestamp:
                    partial.timestamp = timestamp
                partial.sequence, partial.time, partial.headers = sequence, now, headers
            if late or not held:
                encoded_value = None if value is None else encode_value(value)
                add(
                    queue,
                    Row(sequence, now, key_bytes, _record(now, late, encoded_value), timestamp, headers),
                )
        except FoldingError:
            raise
        except Exception as error:
            raise failed_while_holding(environment, error) from error

    return Folded(process, partials.flush)


def _record(now: int, late: Sequence[int], value: bytes | None) -> bytes:
    """A row for a record that moves stream time, and is too late for windows."""
    kind = _Kind.NULL if value is None else _Kind.RECORD
    return _HEAD.pack(kind, now, len(late)) + b"".join(map(_START.pack, late)) + (value or b"")


def merge_windows(
    operation: WindowAggregate,
    environment: OperatorEnvironment,
    merger: UserFunction,
    sink: SinkNode,
    bytes_max: int,
) -> Folded:
    """The aggregation behind the topic, whose rows are those of ``combine_windows``."""
    assert sink.topic is not None
    assert sink.value_serde is not None
    store, size_ms = environment.store(operation.store), operation.size_ms
    decode = store.spec.value_serde.deserializer(changelog_topic(environment.application_id, store.name))
    decode_value = sink.value_serde.deserializer(sink.topic)
    merge, encode_key, time = merger.call, store.encode_key, environment.observed()
    windows = HeldWindows(environment, store, size_ms + operation.grace_ms, bytes_max)
    held, opened, found, cell = windows.held, windows.opened, windows.found, environment.cell

    def process(key: Any, row: bytes, timestamp: int, _headers: Headers) -> None:
        kind, now, start = _HEAD.unpack_from(row)
        if now > time.ms:
            time.see(now)
            if now >= windows.next_close_ms:
                windows.write_closed(now)
        if kind != _Kind.PARTIAL:
            content_at = _HEAD.size + start * _START.size
            value = None if kind == _Kind.NULL else decode_value(row[content_at:])
            for (of_window,) in _START.iter_unpack(row[_HEAD.size : content_at]):
                environment.drop_late(key, value, now, now - of_window - size_ms + 1)
            return
        content = row[_HEAD.size :]
        address = key if key.__class__ is str else encode_key(key)
        window = held.get(start) or opened(start, now)
        assert window is not None, "a partial stands where its window is open"
        entry = window.get(address) or found(window, start, address)
        before = entry[0]
        try:
            entry[0] = decode(content) if before is None else merge(before, decode(content))
        except Exception as error:
            raise failed_while_holding(environment, error) from error
        if timestamp > entry[1]:
            entry[1] = timestamp
        entry[2] = cell.record

    return Folded(process, windows.write_all)
