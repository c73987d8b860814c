"""The records of tables that are read without Spark, for the tasks of a slice: sorted, in temporary files."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pystreams.backfill.compute.executor import SliceJob
from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.sources import Reader
from pystreams.backfill.sources.frames.arrow_topic import ArrowTopic, TableEncoding
from pystreams.backfill.sources.frames.sorted_runs import Run
from pystreams.backfill.sources.frames.table_then_log import table_topics, without
from pystreams.backfill.sources.ranges import InputRange

log = logging.getLogger(__name__)

_FOLDER: Final = "tables"

#: Encodes all pieces of the table of a topic; gives the runs of each piece.
EncodePieces = Callable[[TableEncoding, str], Sequence[Sequence[Run]]]


@dataclass(frozen=True, slots=True)
class _ByTopic:
    """Implements ``sources.Reader``: each topic of ``tables`` has its own, all others come from ``otherwise``."""

    tables: Mapping[str, Reader]
    otherwise: Reader

    @property
    def description(self) -> str:
        return self.otherwise.description

    def read(self, input: InputRange) -> Iterator[Arrow]:
        return self.tables.get(input.partition.topic, self.otherwise).read(input)


def with_staged_tables(job: SliceJob, folder: Path, encode: EncodePieces) -> SliceJob:
    """A slice whose tasks can read its tables: these are encoded and sorted into the slice's ``folder``."""
    work = job.work
    tables = table_topics(job.source, ArrowTopic)
    inputs = {input.topic for input in work.slice.inputs}
    staged: dict[str, Reader] = {}
    for topic, (table, after) in tables.items():
        if topic not in inputs:
            continue
        log.info("%s: rows of %s are made records of topic %s", job.title, table.name, topic)
        encoding = table.encoding(work.application, work.fingerprint, folder / _FOLDER / str(len(staged)))
        runs = [run for of_piece in encode(encoding, topic) for run in of_piece]
        staged[topic] = table.staged(runs, after)
    return replace(job, source=_ByTopic(staged, without(tables, job.source))) if tables else job


def clear_staged_tables(folder: Path) -> None:
    """Delete what was sorted for the tasks of a slice."""
    shutil.rmtree(folder / _FOLDER, ignore_errors=True)
