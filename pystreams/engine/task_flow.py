"""The records that a task reads and writes, by topic, and their ages at that time: counted per batch and run.

Source: org.apache.kafka.streams.processor.internals.metrics.TopicMetrics (KIP-846), ProcessorNodeMetrics (KIP-613).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pystreams.clock import Clock
from pystreams.metrics import Counter, Measure, Metrics, names
from pystreams.record import RecordBatch

#: Where the log does not say what its records take: the bytes of a record besides its key, value, headers and topic's
#: name, which are timestamp, offset and partition. Source:
#: org.apache.kafka.streams.processor.internals.ClientUtils.recordSizeInBytes.
_RECORD_BYTES: Final = 8 + 8 + 4
#: For each source and sink, ages are measured in only one turn of each second: for all records they would cost a
#: quarter of the instructions of a plain copy.
_AGES_INTERVAL_MS: Final = 1_000.0


class TaskFlow:
    """The flow of one task. ``begin`` is called at the beginning of each turn. ``measure`` is called at its end and
    after a commit; it counts the records that were written since its last call."""

    def __init__(self, metrics: Metrics, clock: Clock, **tags: object) -> None:
        self._metrics = metrics
        self._clock = clock
        self._tags = tags
        self._sources: dict[tuple[str, str], Source] = {}
        self._sinks: dict[tuple[str, str], Sink] = {}
        self._turn_ms = clock.monotonic_ms()

    def begin(self, now_ms: float) -> None:
        """A turn begins (monotonic)."""
        self._turn_ms = now_ms
        for source in self._sources.values():
            source.begin(now_ms)

    def source(self, step: str, topic: str) -> Source:
        """The meter of the records that a step reads from a topic."""
        found = self._sources.get((step, topic))
        if found is None:
            found = self._sources[step, topic] = Source(
                topic,
                self._counter(names.RECORDS_CONSUMED, step, topic),
                self._counter(names.BYTES_CONSUMED, step, topic),
                self._age(step),
                self._clock,
            )
        return found

    def written(self, step: str, topic: str) -> list[int]:
        """The list to which a sink appends the timestamp of each record that it writes to a topic. Nothing costs less
        than ``append`` as a method of a list, for which Python has an instruction: its bound method costs half as much
        again."""
        found = self._sinks.get((step, topic))
        if found is None:
            counter = self._counter(names.RECORDS_PRODUCED, step, topic)
            found = self._sinks[step, topic] = Sink(counter, self._age(step))
        return found.timestamps

    def measure(self) -> None:
        """Count the written records."""
        for sink in self._sinks.values():
            if sink.timestamps:
                sink.measure(self._clock, self._turn_ms)

    def _counter(self, name: str, step: str, topic: str) -> Counter:
        return self._metrics.counter(name, processor_node_id=step, topic=topic, **self._tags)

    def _age(self, step: str) -> Measure:
        return self._metrics.measure(names.RECORD_AGE, processor_node_id=step, **self._tags)


class Source:
    """The records of one topic."""

    def __init__(
        self, topic: str, records: Counter, size_bytes: Counter, age_ms: Measure, clock: Clock
    ) -> None:
        self._records = records
        self._bytes = size_bytes
        self._age_ms = age_ms
        self._clock = clock
        self._record_bytes = _RECORD_BYTES + len(topic.encode())
        #: Whether to call ``processed`` in this turn.
        self.takes_ages = True
        self._turn_ms = self._next_ages_ms = clock.monotonic_ms()

    def begin(self, now_ms: float) -> None:
        """A turn begins (monotonic)."""
        self._turn_ms = now_ms
        self.takes_ages = now_ms >= self._next_ages_ms

    def read(self, batch: RecordBatch) -> None:
        """A batch has arrived."""
        self._records.add(len(batch))
        size_bytes = batch.size_bytes
        self._bytes.add(self._size_bytes(batch) if size_bytes is None else size_bytes)

    def _size_bytes(self, batch: RecordBatch) -> int:
        size_bytes = len(batch) * self._record_bytes + _bytes_of(batch.keys) + _bytes_of(batch.values)
        if batch.headers is not None:
            parts = (part for headers in batch.headers for part in headers)
            size_bytes += sum(len(name.encode()) + len(value or b"") for name, value in parts)
        return size_bytes

    def processed(self, timestamps: Sequence[int]) -> None:
        """Records with these timestamps, at least one, were processed."""
        self._next_ages_ms = self._turn_ms + _AGES_INTERVAL_MS
        _record_ages(self._age_ms, timestamps, self._clock)


class Sink:
    """The records that a step writes to one topic. ``timestamps`` are those of the records not yet counted."""

    def __init__(self, records: Counter, age_ms: Measure) -> None:
        self.timestamps: list[int] = []
        self._records = records
        self._age_ms = age_ms
        self._next_ages_ms = 0.0

    def measure(self, clock: Clock, turn_ms: float) -> None:
        """Count the records, and measure their ages if that is due. ``turn_ms``: when the turn began."""
        self._records.add(len(self.timestamps))
        if turn_ms >= self._next_ages_ms:
            self._next_ages_ms = turn_ms + _AGES_INTERVAL_MS
            _record_ages(self._age_ms, self.timestamps, clock)
        self.timestamps.clear()


def _bytes_of(column: list[bytes | None]) -> int:
    try:
        # Joining takes a third of the instructions of a sum of lengths.
        return len(b"".join(column))  # type: ignore[arg-type]
    except TypeError:
        return sum(len(part) for part in column if part is not None)


def _record_ages(age_ms: Measure, timestamps: Sequence[int], clock: Clock) -> None:
    now_ms, count = clock.now_ms(), len(timestamps)
    least, greatest = now_ms - max(timestamps), now_ms - min(timestamps)
    age_ms.record(
        count * now_ms - sum(timestamps), count, clock.monotonic_ms(), least=least, greatest=greatest
    )
