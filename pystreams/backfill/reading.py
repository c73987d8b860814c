"""External records on their way to a task: with the columns that they are ordered by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

import pyarrow as pa

from pystreams.backfill.application import Loaded
from pystreams.backfill.records import EXTERNAL, Arrow, Kind, exchange_rows, record_batch
from pystreams.clock import ManualClock
from pystreams.errors import TopologyError
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.decoding import BatchDecoder
from pystreams.runtime.linking import serdes_of
from pystreams.timestamps import resolve_extractor


class InputReader:
    """Reads one partition for one task. Belongs to one pass over it: it remembers how late it is.

    The times that order records are those that the source's extractor takes from them, and a record that cannot be
    read has none. So records are decoded here, once more than in the task; where the task has no other queue
    (``alone``) there is nothing to order, and the log's own timestamps do.
    """

    def __init__(
        self,
        loaded: Loaded,
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
        key_serde, value_serde = serdes_of(source, loaded.config)
        self._decoder = BatchDecoder(
            key_serde.deserializer(topic),
            value_serde.deserializer(topic),
            resolve_extractor(source.timestamp_extractor or loaded.config.default_timestamp_extractor),
            ManualClock(cut_time_ms).now_ms,
            partition_time,
        )

    def rows(self, batches: Iterable[Arrow]) -> Iterator[Arrow]:
        """Batches of ``RECORD_SCHEMA`` in ``EXCHANGE_SCHEMA``."""
        for batch in batches:
            if batch.num_rows:
                yield self._ordered(batch)

    def _ordered(self, batch: Arrow) -> Arrow:
        size = batch.num_rows
        running = list(accumulate(self._times(batch), max, initial=self._queue_time))
        self._queue_time = running[-1]
        return exchange_rows(
            Kind.RECORD,
            batch.column("topic"),
            pa.repeat(pa.scalar(self._partition.partition, pa.int32()), size),
            pa.array(running[1:], pa.int64()),
            EXTERNAL,
            batch.column("offset"),
            tuple(batch.column(name) for name in ("timestamp", "key", "value", "headers")),
        )

    def _times(self, batch: Arrow) -> list[int]:
        if self._decoder is None:
            times: list[int] = batch.column("timestamp").to_pylist()
            return times
        offsets = batch.column("offset").to_pylist()
        return self._decoder.decode(record_batch(batch, self._partition, offsets)).timestamps
