"""External records on their way to a task: with the columns that they are ordered by."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import pyarrow as pa

from pystreams.backfill.application import LoadedApplication, check_fingerprint
from pystreams.backfill.compute.task import TaskWork
from pystreams.backfill.exchange.order import QueueId
from pystreams.backfill.exchange.rows import (
    EXTERNAL,
    Arrow,
    Kind,
    exchange_rows,
    record_batch,
    running_maximum,
)
from pystreams.backfill.exchange.task_outcome import TaskOutcome
from pystreams.backfill.sources import Reader
from pystreams.clock import ManualClock
from pystreams.engine.input.decoding import BatchDecoder
from pystreams.engine.input.input_decoding import input_decoder
from pystreams.errors import TopologyError
from pystreams.ids import TaskId, TopicPartition


def external_queues(
    work: TaskWork,
    task: int,
    source: Reader,
    carried: TaskOutcome,
    batch_rows: int | None = None,
    *,
    exchanged: Collection[str] = (),
) -> list[tuple[QueueId, Iterator[Arrow]]]:
    """The external inputs of a task, queue by queue, in ``EXCHANGE_SCHEMA``; a queue is read while it is iterated.
    ``carried`` is the state of an earlier visit; ``batch_rows`` cuts the source's batches (None: as they come);
    ``exchanged`` are topics that the task is given in another way."""
    inputs = work.slice.topics_of(task)
    topics = [input.topic for input in inputs if not input.internal and input.topic not in exchanged]
    if not topics:
        return []
    loaded = work.application.load()
    check_fingerprint(loaded, work.fingerprint)
    ranges = {range.partition: range for range in work.ranges}
    queues: list[tuple[QueueId, Iterator[Arrow]]] = []
    for topic in topics:
        reader = InputReader(
            loaded,
            TaskId(work.slice.subtopology, task),
            topic,
            work.cut_time_ms,
            alone=len(inputs) == 1,
            partition_time=carried.partition_times.get(topic, -1),
        )
        batches = source.read(ranges[TopicPartition(topic, task)])
        queues.append(((topic, EXTERNAL), reader.rows(_cut_up(batches, batch_rows))))
    return queues


def _cut_up(batches: Iterable[Arrow], rows: int | None) -> Iterator[Arrow]:
    for batch in batches:
        for start in range(0, batch.num_rows, rows or max(batch.num_rows, 1)):
            yield batch.slice(start, rows)


class InputReader:
    """Reads one partition for one task, in one pass: it keeps the partition's time.

    Records are ordered by the times that the source's extractor takes from them; a record that cannot be read has none.
    So records are decoded here, in addition to the decoding in the task. If the task has no other queue (``alone``),
    nothing has to be ordered, and the log's own timestamps are used.
    """

    def __init__(
        self,
        loaded: LoadedApplication,
        task: TaskId,
        topic: str,
        cut_time_ms: int,
        *,
        alone: bool,
        partition_time: int = -1,
    ) -> None:
        self._partition = TopicPartition(topic, task.partition)
        self._queue_time = -1
        self._decoder: BatchDecoder | None = None
        if alone:
            return
        source = loaded.built.subtopologies[task.subtopology].source_for(topic)
        if source is None:
            raise TopologyError(f"sub-topology {task.subtopology} does not read topic {topic}")
        now_ms = ManualClock(cut_time_ms).now_ms
        self._decoder = input_decoder(source, topic, loaded.config, now_ms, partition_time)

    def rows(self, batches: Iterable[Arrow]) -> Iterator[Arrow]:
        """Batches of ``RECORD_SCHEMA`` in ``EXCHANGE_SCHEMA``."""
        for batch in batches:
            if batch.num_rows:
                yield self._ordered(batch)

    def _ordered(self, batch: Arrow) -> Arrow:
        size = batch.num_rows
        times = running_maximum(self._times(batch), self._queue_time)
        self._queue_time = times[-1].as_py()
        return exchange_rows(
            Kind.RECORD,
            batch.column("topic"),
            pa.repeat(pa.scalar(self._partition.partition, pa.int32()), size),
            times,
            EXTERNAL,
            batch.column("offset"),
            tuple(batch.column(name) for name in ("timestamp", "key", "value", "headers")),
        )

    def _times(self, batch: Arrow) -> Arrow:
        if self._decoder is None:
            return batch.column("timestamp")
        offsets = batch.column("offset").to_pylist()
        return pa.array(
            self._decoder.decode(record_batch(batch, self._partition, offsets)).timestamps, pa.int64()
        )
