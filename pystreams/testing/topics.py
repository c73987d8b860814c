"""The test driver's input and output topics, with types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, Protocol, TypeVar, overload

from pystreams.broker.port import check_headers
from pystreams.record import NO_HEADERS, Headers, Record
from pystreams.serde import serde_for
from pystreams.serde.content import reading, writing
from pystreams.testing.producer import ProducedRecord
from pystreams.times import Duration, Time, to_ms

K = TypeVar("K")
V = TypeVar("V")


class Pipe(Protocol):
    """The methods of the driver that an input topic needs."""

    def pipe_bytes(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers = NO_HEADERS,
    ) -> None: ...


class Produced(Protocol):
    """The methods of the driver that an output topic needs."""

    def next_record(self, topic: str) -> ProducedRecord | None: ...

    def queue_size(self, topic: str) -> int: ...


class InputTopic(Generic[K, V]):
    """Writes records to a topic of the topology; each is processed before the call returns.

    A record without a timestamp of its own gets the topic's time, which then advances by ``auto_advance``.
    """

    def __init__(
        self, driver: Pipe, name: str, key: Any, value: Any, start: Time, auto_advance: Duration
    ) -> None:
        self.name = name
        self._driver = driver
        self._write_key = writing(serde_for(key), name, "key")
        self._write_value = writing(serde_for(value), name, "value")
        self._time_ms = to_ms(start)
        self._auto_advance_ms = to_ms(auto_advance)
        if self._auto_advance_ms < 0:
            raise ValueError(f"auto_advance must not be negative: {auto_advance}")

    @overload
    def pipe_input(
        self, value: V | None, /, *, timestamp: Time | None = ..., headers: Headers = ...
    ) -> None: ...

    @overload
    def pipe_input(
        self, key: K | None, value: V | None, /, *, timestamp: Time | None = ..., headers: Headers = ...
    ) -> None: ...

    def pipe_input(
        self, *key_and_value: Any, timestamp: Time | None = None, headers: Headers = NO_HEADERS
    ) -> None:
        """Write ``(value)`` without a key, or ``(key, value)``. Raises ``SerializationError`` for keys and values
        that are not of the topic's types."""
        if not 1 <= len(key_and_value) <= 2:
            raise TypeError(
                f"pipe_input takes a value, or a key and a value, not {len(key_and_value)} arguments"
            )
        check_headers(self.name, headers)
        key, value = (None, *key_and_value)[-2:]
        time_ms = self._next_time() if timestamp is None else to_ms(timestamp)
        self._driver.pipe_bytes(self.name, self._write_key(key), self._write_value(value), time_ms, headers)

    def pipe_record(self, record: Record[K | None, V | None]) -> None:
        """Write a record with its own timestamp and headers."""
        self.pipe_input(record.key, record.value, timestamp=record.timestamp, headers=record.headers)

    def pipe_values(
        self, values: Iterable[V | None], *, start: Time | None = None, advance: Duration | None = None
    ) -> None:
        """Write values without keys. The first timestamp is ``start``, each later one is ``advance`` greater. Without
        ``start``, timestamps are those of the topic."""
        self.pipe_key_values(((None, value) for value in values), start=start, advance=advance)

    def pipe_key_values(
        self,
        pairs: Iterable[tuple[K | None, V | None]],
        *,
        start: Time | None = None,
        advance: Duration | None = None,
    ) -> None:
        """Write pairs of key and value, with timestamps as in ``pipe_values``."""
        time_ms = None if start is None else to_ms(start)
        for pair in pairs:
            if not isinstance(pair, tuple | list):
                raise TypeError(
                    f"pipe_key_values takes pairs (key, value), not {pair!r}: of a dict its items()"
                )
            key, value = pair
            self.pipe_input(key, value, timestamp=time_ms)
            if time_ms is not None:
                time_ms += to_ms(advance or 0)

    def pipe_records(
        self,
        records: Iterable[Record[K | None, V | None]],
        *,
        start: Time | None = None,
        advance: Duration | None = None,
    ) -> None:
        """Write records one by one: with ``start``, timestamps are as in ``pipe_values``, else the records' own."""
        time_ms = None if start is None else to_ms(start)
        for record in records:
            self.pipe_record(record if time_ms is None else record.with_timestamp(time_ms))
            if time_ms is not None:
                time_ms += to_ms(advance or 0)

    def advance_time(self, duration: Duration) -> None:
        """Advance the topic's time."""
        if to_ms(duration) < 0:
            raise ValueError(f"time cannot go back: {duration}")
        self._time_ms += to_ms(duration)

    def _next_time(self) -> int:
        time_ms = self._time_ms
        self._time_ms += self._auto_advance_ms
        return time_ms


class OutputTopic(Generic[K, V]):
    """Reads the records that the topology has written to a topic, oldest first. Reading removes a record.

    Reading from an empty topic raises ``LookupError``.
    """

    def __init__(self, driver: Produced, name: str, key: Any, value: Any) -> None:
        self.name = name
        self._driver = driver
        self._read_key = reading(serde_for(key), name)
        self._read_value = reading(serde_for(value), name)

    def __len__(self) -> int:
        """The number of records not read yet."""
        return self._driver.queue_size(self.name)

    @property
    def is_empty(self) -> bool:
        return len(self) == 0

    def read_record(self) -> Record[K, V]:
        """The next record with timestamp and headers."""
        record = self._driver.next_record(self.name)
        if record is None:
            raise LookupError(f"nothing is left to read from topic {self.name!r}")
        timestamp = -1 if record.timestamp is None else record.timestamp
        return Record(self._read_key(record.key), self._read_value(record.value), timestamp, record.headers)

    def read_value(self) -> V:
        """The next record's value."""
        return self.read_record().value

    def read_key_value(self) -> tuple[K, V]:
        """The next record's key and value."""
        record = self.read_record()
        return record.key, record.value

    def read_records(self) -> list[Record[K, V]]:
        """All remaining records."""
        return [self.read_record() for _ in range(len(self))]

    def read_values(self) -> list[V]:
        """The values of all remaining records."""
        return [record.value for record in self.read_records()]

    def read_key_values(self) -> list[tuple[K, V]]:
        """Keys and values of all remaining records."""
        return [(record.key, record.value) for record in self.read_records()]

    def read_map(self) -> dict[K, V]:
        """The last value of each key in all remaining records."""
        return dict(self.read_key_values())
