"""The consumer of the embedded log."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from pystreams.broker.embedded import log
from pystreams.broker.embedded.database import Database
from pystreams.broker.embedded.log import Bounds
from pystreams.broker.embedded.topics import partition_ids
from pystreams.errors import OffsetOutOfRangeError, TopicError
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch

#: Without new records, ``poll`` looks again after 1, 2, 4, ... up to this many milliseconds.
NAP_MS_MAX = 16.0

#: A poll ends when its values exceed this size; the next poll continues with the remaining partitions. Values smaller
#: than a batch need not be measured, because their number is limited.
POLL_BYTES_MAX = 32 << 20


@dataclass(slots=True)
class _Reading:
    """One assigned partition."""

    partition_id: int
    position: int
    bounds: Bounds | None = None
    paused: bool = False


class EmbeddedConsumer:
    """See ``port.Consumer``."""

    def __init__(self, database: Database, closed: Callable[[Database], None]) -> None:
        self._database = database
        self._closed = closed
        self._readings: dict[TopicPartition, _Reading] = {}
        self._seen_version: int | None = None

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Raises ``TopicError`` if a partition does not exist."""
        ids = partition_ids(self._database, positions)
        for partition, position in positions.items():
            self._readings[partition] = _Reading(ids[partition], position)
        self._seen_version = None

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self._readings.pop(partition, None)

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        for partition, position in positions.items():
            self._readings[partition].position = position
        self._seen_version = None

    def read_anew(self, positions: Mapping[TopicPartition, int]) -> None:
        self.assign(positions)

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self._readings[partition].paused = True

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self._readings[partition].paused = False

    def poll(self, timeout_ms: float) -> list[RecordBatch]:
        """Also raises ``TopicError`` if an assigned topic was deleted."""
        nap_ms = 1.0
        while True:
            batches = self._fetch()
            if batches or timeout_ms <= 0:
                return batches
            # The naps are counted, not measured, so that a test with a stopped clock does not wait for ever.
            nap_ms = min(nap_ms, timeout_ms)
            self._wait(nap_ms)
            timeout_ms -= nap_ms
            nap_ms = min(2 * nap_ms, NAP_MS_MAX)

    def position(self, partition: TopicPartition) -> int:
        return self._readings[partition].position

    def known_end_offset(self, partition: TopicPartition) -> int | None:
        bounds = self._readings[partition].bounds
        return None if bounds is None else bounds.end_offset

    def close(self) -> None:
        self._readings.clear()
        self._closed(self._database)

    @staticmethod
    def _wait(nap_ms: float) -> None:
        """A function of its own, so that profiles show waiting and reading apart."""
        time.sleep(nap_ms / 1000)

    def _fetch(self) -> list[RecordBatch]:
        self._refresh_if_changed()
        fetched: list[tuple[TopicPartition, RecordBatch]] = []
        byte_count = 0
        for partition, reading in self._readings.items():
            bounds = reading.bounds
            if bounds is None or reading.paused or reading.position >= bounds.end_offset:
                continue
            batch = log.read(
                self._database, partition, reading.partition_id, reading.position, bounds.end_offset
            )
            fetched.append((partition, batch))
            byte_count += batch.size_bytes or 0
            if byte_count >= POLL_BYTES_MAX:
                break
        # Records that were deleted since the bounds were read would look like a hole.
        self._refresh_if_changed()
        # Positions advance when nothing can fail any more, so that a failed poll loses no batch.
        for partition, batch in fetched:
            # A partition that was read moves to the end of the order.
            reading = self._readings[partition] = self._readings.pop(partition)
            reading.position = batch.next_offset
            bounds = reading.bounds
            assert bounds is not None
            reading.bounds = Bounds(bounds.start_offset, max(bounds.end_offset, batch.next_offset))
        return [batch for _, batch in fetched if batch.values]

    def _refresh_if_changed(self) -> None:
        version = self._database.data_version()
        if version != self._seen_version:
            self._refresh()
            self._seen_version = version

    def _refresh(self) -> None:
        all_bounds = log.all_bounds(self._database)
        for partition, reading in self._readings.items():
            bounds = all_bounds.get(reading.partition_id)
            if bounds is None:
                raise TopicError(
                    f"Topic {partition.topic!r} was deleted while it was being read",
                    where=f"topic-partition {partition}, position {reading.position}",
                    hint="create it again, then restart the application",
                )
            if not bounds.start_offset <= reading.position <= bounds.end_offset:
                raise OffsetOutOfRangeError(
                    f"Offset {reading.position} is not in the log",
                    where=f"topic-partition {partition}",
                    why=f"the log has offsets {bounds.start_offset} to {bounds.end_offset} (exclusive);"
                    " retention or delete_records removed older ones",
                    hint="reset the application's offsets: pystreams reset",
                )
            reading.bounds = bounds
