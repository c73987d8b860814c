"""The code that runs in Spark's Python workers for a topic that comes from a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final

from pystreams.backfill.application import Application, check_fingerprint
from pystreams.backfill.compute.external_input import InputReader
from pystreams.backfill.compute.task import TaskWork
from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.sources.frames.encoding import EncoderOf
from pystreams.backfill.sources.frames.numbering import Numbering
from pystreams.backfill.sources.frames.source import LogAfter
from pystreams.backfill.spark.packing import packed
from pystreams.backfill.workers.errors import sending_errors
from pystreams.ids import TaskId, TopicPartition

#: The timestamp of the row before all records of a partition.
BEFORE_RECORDS: Final = -1


@dataclass(frozen=True, slots=True)
class Encoding:
    """For ``mapInArrow``: rows of a table as records, or only their places."""

    application: Application
    fingerprint: str
    make: EncoderOf
    places: bool

    def __call__(self, batches: Iterator[Arrow]) -> Iterator[Arrow]:
        with sending_errors():
            loaded = self.application.load()
            check_fingerprint(loaded, self.fingerprint)
            encoder = self.make(loaded)
            for batch in batches:
                yield encoder.places(batch) if self.places else encoder.records(batch)


@dataclass(frozen=True, slots=True)
class RowsForTasks:
    """For ``mapInArrow``: the sorted records of a partition as packed rows of its task, and behind them those of the
    log ``after`` the table. By partition, ``records`` are the numbers of the table's records (None: they have offsets),
    and ``times`` its times after an earlier visit."""

    work: TaskWork
    topic: str
    records: Mapping[int, int] | None
    times: Mapping[int, int]
    where: str
    after: LogAfter | None

    def __call__(self, batches: Iterator[Arrow]) -> Iterator[Arrow]:
        with sending_errors():
            first = next((batch for batch in batches if batch.num_rows), None)
            if first is not None:
                yield from self._rows(first, batches)

    def _rows(self, first: Arrow, rest: Iterator[Arrow]) -> Iterator[Arrow]:
        partition = TopicPartition(self.topic, first.column("partition")[0].as_py())
        one = self.work.slice
        reader = InputReader(
            self.work.application.load(),
            TaskId(one.subtopology, partition.partition),
            self.topic,
            self.work.cut_time_ms,
            alone=len(one.topics_of(partition.partition)) == 1,
            partition_time=self.times.get(partition.partition, -1),
        )
        input = next(range for range in self.work.ranges if range.partition == partition)
        count = None if self.records is None else self.records.get(partition.partition, 0)
        numbering = Numbering(input, count, self.where, self.after)
        yield from packed(reader.rows(numbering.records(map(_of_records, chain([first], rest)))))


def _of_records(batch: Arrow) -> Arrow:
    """A batch without the row before all records."""
    return batch.slice(1) if batch.num_rows and _first_time(batch) == BEFORE_RECORDS else batch


def _first_time(batch: Arrow) -> int:
    time: int = batch.column("timestamp")[0].as_py()
    return time
