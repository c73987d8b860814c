"""Partial aggregates before a repartition topic, in columns: see ``partial_results``.

Records wait, and are added in batches. A record itself costs an element of three lists; its place among the
aggregates, its queue and its times are found for all records of a batch at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, Final

import numpy as np

from pystreams.dsl.operators.base import Folded, OperatorEnvironment
from pystreams.dsl.operators.column_looks import SAMPLE_ROWS, Looks
from pystreams.dsl.operators.final_results import Room, failed_while_holding, key_bytes
from pystreams.dsl.operators.partial_results import (
    ORDER_MATTERS,
    Functions,
    Queue,
    QueueOf,
    Row,
    cannot_combine,
)
from pystreams.dsl.operators.state_columns import add_chosen, extended, states_at, taken_of
from pystreams.errors import FoldingError
from pystreams.record import NO_HEADERS, Headers
from pystreams.state.spec import StoreSpec

#: The number of records that may wait to be written as they are, after the partials before them. It may be exceeded
#: between two looks at what is held.
_ROWS_MAX: Final = 10_000
_FIRST_PLACES: Final = 1024
#: The largest number of records that wait to be added as a batch. A batch of this size makes the work that is done once
#: per batch cheap, and its keys and values still fit into the caches of the processor.
_WAITING_MAX: Final = 4096


class Numbers(dict[Any, int]):
    """Numbers things from 0 on, in the order in which they are asked for."""

    def __init__(self) -> None:
        super().__init__()
        #: By number.
        self.things: list[Any] = []

    def __missing__(self, thing: Any) -> int:
        number = self[thing] = len(self.things)
        self.things.append(thing)
        return number

    def of(self, things: Collection[Any]) -> Any:
        """The numbers of several things, as an array."""
        return np.fromiter(map(self.__getitem__, things), np.int64, len(things))

    def forget(self) -> None:
        """Begin at 0 again."""
        self.clear()
        self.things.clear()


@dataclass(frozen=True, slots=True)
class Records:
    """Records of a batch in columns: arrays, one element for each record."""

    #: Numbers of keys.
    keys: Any
    timestamps: Any
    #: The place of each in its queue, and the greatest timestamp there so far.
    sequences: Any
    times: Any
    #: As they were taken, see ``ThroughTopic``.
    values: list[Any]
    types: set[type]
    #: By number of a record: few have any.
    headers: Mapping[int, Headers]


class _Queues:
    """The queues of a task, by number, and how far they have come."""

    def __init__(self, queue_of: QueueOf) -> None:
        self._queue_of = queue_of
        self._numbers = Numbers()
        self._sequences = np.zeros(0, np.int64)
        self._times = np.zeros(0, np.int64)

    def __getitem__(self, number: int) -> Queue:
        queue: Queue = self._numbers.things[number]
        return queue

    def number_of(self, key: bytes) -> int:
        """The number of a key's queue."""
        queue = self._queue_of(key)
        number = self._numbers[queue]
        if number == len(self._sequences):
            self._sequences = extended(self._sequences, number + 1, queue.sequence)
            self._times = extended(self._times, number + 1, queue.time)
        return number

    def positions(self, queues: Any, timestamps: Any) -> tuple[Any, Any]:
        """For each of the next records, by the number of its queue: its place there, and the greatest timestamp."""
        # Those of a queue are brought together, in their order.
        order = np.argsort(queues, kind="stable")
        counts = np.bincount(queues, minlength=len(self._sequences))
        ends = np.cumsum(counts)
        sequences, times = np.empty(len(queues), np.int64), np.empty(len(queues), np.int64)
        sequences[order] = np.arange(len(queues)) + (self._sequences - ends + counts)[queues[order]]
        sorted_times = timestamps[order]
        for queue in np.flatnonzero(counts).tolist():
            of_queue = sorted_times[ends[queue] - counts[queue] : ends[queue]]
            of_queue[0] = max(of_queue[0], self._times[queue])
            of_queue[:] = np.maximum.accumulate(of_queue)
            self._times[queue] = of_queue[-1]
        times[order] = sorted_times
        self._sequences += counts
        return sequences, times

    def settle(self) -> None:
        """Leave the queues where their records have come."""
        for number, queue in enumerate(self._numbers.things):
            queue.sequence, queue.time = int(self._sequences[number]), int(self._times[number])


class Partials(ABC):
    """The partials that a task holds, up to about ``bytes_max`` bytes: then all are written."""

    def __init__(
        self,
        environment: OperatorEnvironment,
        spec: StoreSpec,
        functions: Functions,
        queue_of: QueueOf,
        bytes_max: int,
    ) -> None:
        self.functions = functions
        #: The keys, by number: their addresses, as ``ColumnFold.address_of`` gives them; their bytes; their queues.
        self._keys = Numbers()
        #: All that is numbered until everything is written.
        self._numbers = [self._keys]
        self._key_bytes: list[bytes] = []
        self._key_queues = np.zeros(_FIRST_PLACES, np.uint16)
        self._queues = _Queues(queue_of)
        #: By place, the greatest timestamp, and what a ``Row`` has of the last record; -1: there was none so far.
        self._timestamps = self._sequences = self._times = np.zeros(0, np.int64)
        self._headers: dict[int, Headers] = {}
        #: Records that are written unchanged.
        self._rows: list[tuple[Queue, Row]] = []
        self._environment = environment
        self._looks = Looks(Room(environment, spec, bytes_max), self._held)
        #: The records that wait, each with its key, value and timestamp; the headers of those that have any are by
        #: number. Values are as they were taken, and keys that are not kept are addresses.
        self._waiting_keys: list[Any] = []
        self._waiting_values: list[Any] = []
        self._waiting_timestamps: list[int] = []
        self._waiting_headers: dict[int, Headers] = {}

    # Where the aggregates are

    @abstractmethod
    def _placed(self, records: Records) -> tuple[Any, Any]:
        """The numbers of the records that are added (None: all of them), and their places. Other records are given to
        ``_add_row``."""

    @property
    @abstractmethod
    def _size(self) -> int:
        """How many places there are."""

    @abstractmethod
    def _content(self, place: int, time: int, aggregate: bytes) -> tuple[int, bytes]:
        """The number of the key, and the content of the row."""

    # Record by record

    def process(self) -> Callable[..., None]:
        """The function that has a record wait."""
        keys, values, timestamps = self._waiting_keys, self._waiting_values, self._waiting_timestamps
        headers_of, add_waiting, environment = self._waiting_headers, self.add_waiting, self._environment
        keeps_keys, encode_key = self.functions.keeps_keys, self.functions.encode_key
        keeps_values, write = self.functions.values.keeps, self.functions.values.write

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if headers:
                headers_of[len(keys)] = headers
            keys.append(key)
            values.append(value)
            timestamps.append(timestamp)
            if len(keys) == _WAITING_MAX:
                add_waiting()

        def process_bytes(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            try:
                address = key if keeps_keys or key.__class__ is str else encode_key(key)
                taken = value if keeps_values or value is None else write(value)
            except Exception as error:
                raise failed_while_holding(environment, error) from error
            process(address, taken, timestamp, headers)

        return process if keeps_keys and keeps_values else process_bytes

    # In batches

    def add_waiting(self) -> None:
        """Add the waiting records, as many at a time as come before the next check of the kept results."""
        start, size = 0, len(self._waiting_keys)
        while start < size:
            end = min(size, start + self._looks.records)
            try:
                self._add(self._records(start, end))
            except FoldingError:
                raise
            except Exception as error:
                raise failed_while_holding(self._environment, error) from error
            if self._looks.due(end - start):
                if len(self._rows) >= _ROWS_MAX or self._looks.full(self._some_aggregates):
                    self._write()
                self._looks.begin()
            start = end
        for waiting in (self._waiting_keys, self._waiting_values, self._waiting_timestamps):
            waiting.clear()
        self._waiting_headers.clear()

    def flush(self) -> None:
        """Write everything."""
        self.add_waiting()
        self._write()
        self._queues.settle()

    def _records(self, start: int, end: int) -> Records:
        """Some of the records that wait."""
        keys = self._keys.of(self._addresses(self._waiting_keys[start:end]))
        self._know_keys()
        timestamps = np.array(self._waiting_timestamps[start:end], np.int64)
        sequences, times = self._queues.positions(self._key_queues[keys], timestamps)
        values = self._waiting_values[start:end]
        headers = {number - start: one for number, one in self._waiting_headers.items() if number >= start}
        return Records(keys, timestamps, sequences, times, values, set(map(type, values)), headers)

    def _addresses(self, keys: Sequence[Any]) -> Sequence[Any]:
        if not self.functions.keeps_keys or set(map(type, keys)) == {str}:
            return keys
        encode_key = self.functions.encode_key
        return [key if key.__class__ is str else encode_key(key) for key in keys]

    def _know_keys(self) -> None:
        """Find the bytes and the queues of new keys."""
        known, addresses = len(self._key_bytes), self._keys.things
        if len(addresses) > len(self._key_queues):
            more = np.zeros(2 * len(addresses) - len(self._key_queues), np.uint16)
            self._key_queues = np.concatenate([self._key_queues, more])
        for number, address in enumerate(addresses[known:], known):
            key = key_bytes(address, self.functions.encode_key)
            self._key_bytes.append(key)
            self._key_queues[number] = self._queues.number_of(key)

    def _add(self, records: Records) -> None:
        values = self.functions.values.come_out(records.values, records.types)
        numbers, places = self._placed(records)
        self._grow()
        timestamps, sequences, times = records.timestamps, records.sequences, records.times
        if numbers is not None:
            if not len(numbers):
                return
            values = [values[number] for number in numbers.tolist()]
            timestamps, sequences, times = timestamps[numbers], sequences[numbers], times[numbers]
        for column in self.functions.columns:
            if add_chosen(column, places, taken_of(column, values)):
                raise self._no_aggregate()
        np.maximum.at(self._timestamps, places, timestamps)
        # Of several records for one place, the last one is kept.
        self._sequences[places] = sequences
        self._times[places] = times
        if records.headers or self._headers:
            self._keep_headers(range(len(places)) if numbers is None else numbers, places, records.headers)

    def _grow(self) -> None:
        """Have arrays for all places."""
        if self._size <= len(self._sequences):
            return
        size = max(_FIRST_PLACES, 2 * self._size)
        self._timestamps, self._sequences, self._times = (
            extended(array, size, -1) for array in (self._timestamps, self._sequences, self._times)
        )
        for column in self.functions.columns:
            column.resize(size)

    def _keep_headers(self, numbers: Iterable[int], places: Any, headers: Mapping[int, Headers]) -> None:
        for number, place in zip(numbers, places.tolist(), strict=True):
            of_record = headers.get(int(number))
            if of_record is not None:
                self._headers[place] = of_record
            else:
                self._headers.pop(place, None)

    def _add_row(self, records: Records, number: int, content: bytes | None) -> None:
        """Have the record with this number written unchanged."""
        key = int(records.keys[number])
        sequence, time, timestamp = (
            int(column[number]) for column in (records.sequences, records.times, records.timestamps)
        )
        headers = records.headers.get(number, NO_HEADERS)
        row = Row(sequence, time, self._key_bytes[key], content, timestamp, headers)
        self._rows.append((self._queue(key), row))

    # Held partials

    def _held(self) -> int:
        return max(self._size, len(self._keys))

    def _some_aggregates(self) -> list[Any]:
        places = np.arange(min(SAMPLE_ROWS, self._size))
        return [self.functions.row.row(states) for states in states_at(self.functions.columns, places)]

    # Writing

    def _write(self) -> None:
        """Write everything that is held."""
        places = np.flatnonzero(self._sequences[: self._size] >= 0)
        if len(places):
            self._write_partials(places)
        for queue, row in self._rows:
            queue.add(row)
        self._rows.clear()
        self._headers.clear()
        self._sequences.fill(-1)
        self._timestamps.fill(-1)
        self._key_bytes.clear()
        for numbers in self._numbers:
            numbers.forget()

    def _write_partials(self, places: Any) -> None:
        columns = (self._sequences, self._times, self._timestamps)
        for place, sequence, time, timestamp, states in zip(
            places.tolist(),
            *(column[places].tolist() for column in columns),
            states_at(self.functions.columns, places),
            strict=True,
        ):
            key, content = self._content(place, time, self._encoded(states))
            headers = self._headers.get(place, NO_HEADERS)
            row = Row(sequence, time, self._key_bytes[key], content, timestamp, headers)
            self._queue(key).add(row)
        for column in self.functions.columns:
            column.clear(places)

    def _encoded(self, states: tuple[Any, ...]) -> bytes:
        functions = self.functions
        aggregate = functions.row.row(states)
        if aggregate is None:
            raise self._no_aggregate()
        if functions.merges_freely is not None and not functions.merges_freely(aggregate):
            raise cannot_combine(self._environment, ORDER_MATTERS)
        try:
            return functions.encode(aggregate)
        except Exception as error:
            raise failed_while_holding(self._environment, error) from error

    def _queue(self, key: int) -> Queue:
        return self._queues[self._key_queues[key]]

    def _no_aggregate(self) -> FoldingError:
        return cannot_combine(self._environment, "its function gave None")


class _KeyPartials(Partials):
    """Partials by key. Places are the numbers of keys."""

    def _placed(self, records: Records) -> tuple[Any, Any]:
        """Records with null values are written unchanged, because the step behind the topic drops them."""
        if NoneType not in records.types:
            return None, records.keys
        null = np.array([value is None for value in records.values], bool)
        for number in np.flatnonzero(null).tolist():
            self._add_row(records, number, None)
        numbers = np.flatnonzero(~null)
        return numbers, records.keys[numbers]

    @property
    def _size(self) -> int:
        return len(self._keys)

    def _content(self, place: int, time: int, aggregate: bytes) -> tuple[int, bytes]:
        return place, aggregate


class Combining(Folded):
    """A step that writes partials. ``add_waiting`` adds the records that wait, so that their values take no memory."""

    def __init__(self, partials: Partials) -> None:
        super().__init__(partials.process(), partials.flush)
        self.add_waiting = partials.add_waiting


def combine_keys(
    environment: OperatorEnvironment, spec: StoreSpec, functions: Functions, queue_of: QueueOf, bytes_max: int
) -> Combining:
    """Partials by key."""
    return Combining(_KeyPartials(environment, spec, functions, queue_of, bytes_max))
