"""Spark's workers write an archive as this process does; a worker that is killed leaves no record twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill.archive.archive import archive
from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.sources import EmbeddedSource, ParquetSource
from pystreams.backfill.sources.ranges import InputRange
from pystreams.backfill.spark.archive import SparkArchiver
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.errors import OffsetOutOfRangeError
from pystreams.ids import TopicPartition
from tests.backfill.archive.lakes import KINDS
from tests.backfill.kit import Backfill, everything
from tests.backfill.live import append
from tests.backfill.programs import history, word_count
from tests.backfill.sources.files_kit import read
from tests.live.support import Log

ONE, OTHER = TopicPartition("lines", 0), TopicPartition("lines", 1)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = Log(tmp_path / "log")
    log.create("lines", partitions=2)
    yield log
    log.close()


def write(log: Log, start: int, end: int) -> None:
    log.write("lines", [(f"k{n}", n, 1000 + n) for n in range(start, end)])


@dataclass(frozen=True)
class KillsOnce(EmbeddedSource):
    """Kills the worker that reads a partition to its end for the first time."""

    marker: str

    def read(self, input: InputRange) -> Iterator[Arrow]:
        yield from super().read(input)
        if input.partition == OTHER and not Path(self.marker).exists():
            Path(self.marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)


def test_each_run_adds_what_is_new_once(spark: Any, log: Log, tmp_path: Path) -> None:
    marker = tmp_path / "killed"
    source = KillsOnce(str(tmp_path / "log" / "log.db"), str(marker))
    archived = str(tmp_path / "archive")
    for start, end in ((0, 100), (100, 100), (100, 130)):
        write(log, start, end)
        archive(source, ["lines"], archived, archiver=SparkArchiver(spark), file_offsets_max=20)
        ends = source.ends([ONE, OTHER])
        found = ParquetSource(archived)
        assert found.ends([ONE, OTHER]) == ends
        for partition in (ONE, OTHER):
            expected = read(EmbeddedSource(source.path), partition, 0, ends[partition])
            assert read(found, partition, 0, ends[partition]) == expected
    assert marker.exists()
    # Spark reads it as one table, with topic and partition out of the folders' names.
    spark.read.parquet(archived).createOrReplaceTempView("archived")
    counts = "select count(*) as rows, count(distinct topic, partition, offset) as records from archived"
    assert spark.sql(counts).first().asDict() == {"rows": 130, "records": 130}


def test_a_backfill_on_spark_of_an_archive_equals_one_of_the_log(
    spark: Any, executor: SparkExecutor, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, history("word count", 4, partitions=2))
    source = EmbeddedSource(str(tmp_path / "log" / "log.db"))
    # Workers run in other folders than this process.
    monkeypatch.chdir(tmp_path)
    archive(source, ["lines"], "archive", archiver=SparkArchiver(spark), file_offsets_max=30)
    inline = Backfill(word_count(), source, tmp_path / "inline", commit_records=16).run()
    archived = ParquetSource("archive")
    on_spark = Backfill(word_count(), archived, tmp_path / "spark", executor=executor, commit_records=16)
    assert everything(on_spark.run()) == everything(inline)
    assert inline.manifest.slices[0].records > 100


@pytest.mark.parametrize("kind", KINDS)
def test_workers_write_and_read_an_archive_in_a_table(
    spark: Any, executor: SparkExecutor, log: Log, tmp_path: Path, kind: str
) -> None:
    append(log, history("word count", 4, partitions=2))
    source, lake = EmbeddedSource(str(tmp_path / "log" / "log.db")), KINDS[kind](tmp_path / "lake")
    archive(source, ["lines"], lake.target(), archiver=SparkArchiver(spark), file_offsets_max=30)
    ends = source.ends([ONE, OTHER])
    for partition in (ONE, OTHER):
        assert lake.archived(partition) == read(source, partition, 0, ends[partition])
    inline = Backfill(word_count(), source, tmp_path / "inline", commit_records=16).run()
    on_spark = Backfill(word_count(), lake.source(), tmp_path / "spark", executor=executor, commit_records=16)
    assert everything(on_spark.run()) == everything(inline)


def test_what_a_worker_says_reaches_the_user(spark: Any, log: Log, tmp_path: Path) -> None:
    write(log, 0, 50)

    @dataclass(frozen=True)
    class Forgets(EmbeddedSource):
        def beginnings(self, partitions: Any) -> Any:
            return dict.fromkeys(partitions, 0)

    log.admin.delete_records({ONE: 5})
    with pytest.raises(OffsetOutOfRangeError, match="deleted before") as raised:
        archive(
            Forgets(str(tmp_path / "log" / "log.db")),
            ["lines"],
            str(tmp_path / "archive"),
            archiver=SparkArchiver(spark),
        )
    assert "offsets 0 to 5" in raised.value.where
