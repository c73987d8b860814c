"""Archives written by Spark's workers: each task reads a range from the log and writes a file; no row sees the JVM."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from pystreams.backfill.archive.pieces import ArchiveJob, write_piece
from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.sources.archive_log import ArchivedFile
from pystreams.backfill.sources.ranges import InputRange
from pystreams.backfill.spark.access import parallelism_of
from pystreams.backfill.spark.arrow import mapped
from pystreams.backfill.spark.failures import receiving_errors
from pystreams.backfill.workers.errors import sending_errors

_RESULT = pa.schema([("file", pa.binary())])


@dataclass(frozen=True)
class SparkArchiver:
    """Implements ``archive.Archiver``: one task of Spark for each piece. Each attempt of a task, retried or
    speculative, writes files with names of its own: only the file of the attempt that counts is committed."""

    session: SparkSession

    @property
    def parallelism(self) -> int:
        return parallelism_of(self.session)

    def write(self, job: ArchiveJob, pieces: Sequence[InputRange]) -> Iterator[ArchivedFile]:
        if not pieces:
            return
        count = len(pieces)
        with receiving_errors():
            tasks = self.session.range(0, count, 1, count)
            rows = mapped(tasks, _PieceCall(job, tuple(pieces)), "file binary").collect()
        for row in rows:
            yield pickle.loads(bytes(row.file))  # noqa: S301 - our own workers' bytes


@dataclass(frozen=True, slots=True)
class _PieceCall:
    """For ``mapInArrow``: each row names a piece."""

    job: ArchiveJob
    pieces: tuple[InputRange, ...]

    def __call__(self, batches: Iterator[Arrow]) -> Iterator[Arrow]:
        with sending_errors():
            for batch in batches:
                files = [
                    write_piece(self.job, self.pieces[number]) for number in batch.column("id").to_pylist()
                ]
                yield pa.record_batch([pa.array(map(pickle.dumps, files), pa.binary())], schema=_RESULT)
