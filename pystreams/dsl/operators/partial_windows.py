"""Partial aggregates by window: see ``partial_results``.

Whether a record is too late for a window is known before the topic: the step behind it has seen the greatest timestamp
of the record's own queue, and no greater one, because a task gets its records by these. Each row has this time before
its content, so that the step behind the topic closes windows at the same records as if all had come.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import chain
from struct import Struct
from typing import Any, Final

import numpy as np

from pystreams.dsl.operators.base import Folded, OperatorEnvironment
from pystreams.dsl.operators.final_results import failed_while_holding
from pystreams.dsl.operators.final_windows import HeldWindows
from pystreams.dsl.operators.partial_columns import Combining, Numbers, Partials, Records
from pystreams.dsl.operators.partial_results import Functions, QueueOf
from pystreams.dsl.operators.window_aggregate import WindowAggregate
from pystreams.functions import UserFunction
from pystreams.record import Headers
from pystreams.state.spec import StoreSpec
from pystreams.topology.names import changelog_topic
from pystreams.topology.nodes import SinkNode

#: The number of a pair has that of the key in its lower half, and that of the window above it.
_KEY_BITS: Final = 32
_KEYS_MASK: Final = (1 << _KEY_BITS) - 1

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


class _WindowPartials(Partials):
    """Partials by window and key. Places are the numbers of their pairs."""

    def __init__(
        self,
        operation: WindowAggregate,
        environment: OperatorEnvironment,
        spec: StoreSpec,
        functions: Functions,
        queue_of: QueueOf,
        bytes_max: int,
    ) -> None:
        self._operation = operation
        self._open_for_ms = operation.size_ms + operation.grace_ms
        #: Windows by their start, and their pairs with keys: both numbers in one.
        self._windows = Numbers()
        self._pairs = Numbers()
        super().__init__(environment, spec, functions, queue_of, bytes_max)
        self._numbers += [self._windows, self._pairs]

    def _placed(self, records: Records) -> tuple[Any, Any]:
        """Records that are too late for some windows, or in none, are written unchanged, too."""
        numbers, starts = self._windows_of(records.timestamps)
        late = records.times[numbers] - starts >= self._open_for_ms
        windows_of_each = np.bincount(numbers[~late], minlength=len(records.values))
        if late.any() or not windows_of_each.all():
            self._add_late(records, np.flatnonzero(windows_of_each == 0), numbers[late], starts[late])
            numbers, starts = numbers[~late], starts[~late]
        windows = self._windows.of(starts.tolist())
        pairs = (windows << _KEY_BITS) | records.keys[numbers]
        everything = len(numbers) == len(records.values) and windows_of_each.all()
        return None if everything else numbers, self._pairs.of(pairs.tolist())

    def _windows_of(self, timestamps: Any) -> tuple[Any, Any]:
        """The windows of records: numbers of records, and starts."""
        operation, numbers = self._operation, np.arange(len(timestamps))
        if operation.start_ms is None and operation.size_ms <= operation.advance_ms:
            return numbers, timestamps // operation.advance_ms * operation.advance_ms
        starts = [list(operation.starts(timestamp)) for timestamp in timestamps.tolist()]
        return np.repeat(numbers, [*map(len, starts)]), np.array([*chain.from_iterable(starts)], np.int64)

    def _add_late(self, records: Records, in_none: Any, numbers: Any, starts: Any) -> None:
        """Add the records that are held ``in_none``, and those that are too late for windows: numbers of records, and
        starts."""
        too_late: dict[int, list[int]] = {number: [] for number in in_none.tolist()}
        for number, start in zip(numbers.tolist(), starts.tolist(), strict=True):
            too_late.setdefault(number, []).append(start)
        for number, of_record in too_late.items():
            data = self.functions.values.data(records.values[number])
            self._add_row(records, number, _record(int(records.times[number]), of_record, data))

    @property
    def _size(self) -> int:
        return len(self._pairs)

    def _content(self, place: int, time: int, aggregate: bytes) -> tuple[int, bytes]:
        pair = self._pairs.things[place]
        start = self._windows.things[pair >> _KEY_BITS]
        return pair & _KEYS_MASK, _HEAD.pack(_Kind.PARTIAL, time, start) + aggregate


def combine_windows(
    operation: WindowAggregate,
    environment: OperatorEnvironment,
    spec: StoreSpec,
    functions: Functions,
    queue_of: QueueOf,
    bytes_max: int,
) -> Combining:
    """Partials by window and key."""
    return Combining(_WindowPartials(operation, environment, spec, functions, queue_of, bytes_max))


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
