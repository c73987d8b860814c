"""Gives a task its records in the order in which they arrive, independent of the heads of its queues."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from pystreams.backfill.exchange.rows import EXTERNAL, Arrow, record_batch, runs_of
from pystreams.engine.input.record_queue import RecordQueue
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch

#: The maximum number of rows that a task gets at once: all their results are in memory.
CHUNK_ROWS = 2_048
#: Approximate maximum size of these rows, measured by the bytes of their records.
_CHUNK_BYTES = 4 * 1024 * 1024


class GivenOrder:
    """Queues in the order of ``expect``. Implements ``partition_group.HeadOrder``.

    The task has one batch per queue and is given the next only when all are processed, so a position in a queue is a
    position in its batch. Bad records are removed before it is their turn: their positions are just skipped.
    """

    def __init__(self) -> None:
        self._offered: dict[TopicPartition, RecordQueue] = {}
        self._runs: deque[tuple[TopicPartition, int]] = deque()

    def __len__(self) -> int:
        return len(self._offered)

    def expect(self, runs: Iterator[tuple[TopicPartition, int]]) -> None:
        """(queue, end of the stretch in its batch), in order."""
        self._runs.extend(runs)

    def offer(self, queue: RecordQueue) -> None:
        self._offered[queue.partition] = queue

    def poll(self) -> RecordQueue:
        while True:
            partition, end = self._runs[0]
            queue = self._offered.get(partition)
            if queue is not None and queue.position < end:
                return self._offered.pop(partition)
            self._runs.popleft()

    def run_end(self, queue: RecordQueue, end: int) -> int:
        return min(end, self._runs[0][1])

    def clear(self) -> None:
        """Called when all expected records have been processed."""
        self._runs.clear()


class Feed:
    """Takes rows apart into batches. ``taken`` counts the records of internal topics: their offsets, because nothing
    else gives them one."""

    def __init__(self, task: int, order: GivenOrder, taken: dict[str, int]) -> None:
        self._task = task
        self._order = order
        self.taken = taken

    def batches(self, rows: Arrow) -> Iterator[RecordBatch]:
        """The rows, those of a chunk, as one batch per topic."""
        self._order.clear()
        runs = runs_of(rows.column("topic"))
        if len(runs) == 1:
            self._order.expect(iter([(self._partition(runs[0][0]), rows.num_rows)]))
            yield self._batch(runs[0][0], rows)
            return
        places: dict[str, list[int]] = {}
        ends: list[tuple[TopicPartition, int]] = []
        for topic, start, end in runs:
            of_topic = places.setdefault(topic, [])
            of_topic.extend(range(start, end))
            ends.append((self._partition(topic), len(of_topic)))
        self._order.expect(iter(ends))
        for topic, of_topic in places.items():
            yield self._batch(topic, rows.take(of_topic))

    def _partition(self, topic: str) -> TopicPartition:
        return TopicPartition(topic, self._task)

    def _batch(self, topic: str, rows: Arrow) -> RecordBatch:
        if rows.column("upstream")[0].as_py() == EXTERNAL:
            offsets = rows.column("sequence").to_pylist()
        else:
            start = self.taken.get(topic, 0)
            self.taken[topic] = start + rows.num_rows
            offsets = list(range(start, start + rows.num_rows))
        return record_batch(rows, self._partition(topic), offsets)


def chunks(
    rows: Arrow, consumed: int, commit_records: int, chunk_rows: int = CHUNK_ROWS
) -> Iterator[tuple[Arrow, bool]]:
    """Rows in pieces of at most ``chunk_rows``, and whether a commit is due behind each: whenever the records
    ``consumed`` before and with it are a multiple of ``commit_records``. So commits do not depend on how the rows came
    in batches."""
    start = 0
    rows_max = max(1, min(chunk_rows, rows.num_rows * _CHUNK_BYTES // max(1, rows.nbytes)))
    while start < rows.num_rows:
        left = commit_records - (consumed + start) % commit_records
        size = min(rows_max, left, rows.num_rows - start)
        start += size
        yield rows.slice(start - size, size), size == left
