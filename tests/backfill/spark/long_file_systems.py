"""A backfill stages on the file systems of real clusters: HDFS, and S3 through Hadoop's client and a store that speaks
its protocol. Their programs are 700 MB: ``make prove-backfill`` runs this, ``make test`` does not.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill import emit
from pystreams.backfill.archive.archive import archive
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.sources import EmbeddedSource, ParquetSource
from pystreams.backfill.spark.archive import SparkArchiver
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.backfill.spark.hadoop_folder import HadoopFolder
from pystreams.backfill.spark.session import spark_session
from tests.backfill.kit import Backfill, everything
from tests.backfill.live import append, create, left_on
from tests.backfill.programs import history, word_count
from tests.backfill.random_topologies import StopError
from tests.backfill.spark.conftest import SETTINGS
from tests.backfill.spark.file_systems import FileSystem, hdfs, s3, why_not
from tests.backfill.spark.killing import Stopping
from tests.live.support import Log

PAST = history("word count", 5, partitions=2)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, FileSystem]]:
    """Together, because a process has one JVM, whose jars and environment are those that it was started with."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("file-systems")
    with hdfs(folder) as one, s3(folder) as other, pytest.MonkeyPatch.context() as patched:
        for name, value in other.environment.items():
            patched.setenv(name, value)
        yield {"HDFS": one, "S3": other}


@pytest.fixture(scope="module")
def session(both: dict[str, FileSystem]) -> Iterator[Any]:
    conf = {**SETTINGS, **both["S3"].conf}
    with spark_session("local[2]", app_name="file systems", conf=conf) as session:
        yield session


@pytest.fixture(params=["HDFS", "S3"])
def file_system(request: Any, both: dict[str, FileSystem]) -> FileSystem:
    found: FileSystem = both[request.param]
    return found


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with closing(Log(tmp_path / "log")) as log:
        create(log, PAST, ["word-counts"])
        append(log, PAST)
        yield log


def source_of(log: Log) -> EmbeddedSource:
    return EmbeddedSource(str(log.path / "log.db"))


def test_of_many_who_make_a_file_one_does(file_system: FileSystem, session: Any) -> None:
    made: list[int] = []

    def make(number: int) -> None:
        folder = HadoopFolder(session, f"{file_system.url}/once")
        gate.wait()
        try:
            folder.create("file", b"%d" % number)
        except FileExistsError:
            return
        made.append(number)

    for _ in range(5):
        gate = threading.Barrier(8)
        threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        folder = HadoopFolder(session, f"{file_system.url}/once")
        assert [folder.read("file")] == [b"%d" % number for number in made]
        made.clear()
        folder.delete("file")


def test_a_backfill_whose_driver_dies_is_resumed_and_handed_over(
    file_system: FileSystem, session: Any, log: Log, tmp_path: Path
) -> None:
    inline = Backfill(word_count(), source_of(log), tmp_path / "inline", commit_records=16).run()
    executor, staging = SparkExecutor(session), f"{file_system.url}/staging"
    for stop in range(len(inline.plan.slices)):
        dying = Backfill(
            word_count(), source_of(log), staging, executor=Stopping(executor, stop), commit_records=16
        )
        with pytest.raises(StopError):
            dying.run(resume=stop > 0)
    backfill = Backfill(word_count(), source_of(log), staging, executor=executor, commit_records=16)
    result = backfill.run(resume=True)
    assert everything(result) == everything(inline)
    done = hand_over(result, log.broker)
    assert done.stores["counts"].written == len(
        [entry for of_partition in inline.changelog("counts").values() for entry in of_partition]
    )
    left = left_on(log, word_count(), [])
    assert {p.partition: entries for p, entries in left.changelogs.items()} == inline.changelog("counts")


def test_an_archive_in_s3_is_written_and_read_by_workers(
    both: dict[str, FileSystem], session: Any, log: Log, tmp_path: Path
) -> None:
    """Not in HDFS: Arrow reads that by libhdfs, which is part of a whole Hadoop."""
    file_system = both["S3"]
    archived = f"{file_system.url}/archive{file_system.query}"
    for _ in range(2):
        archive(source_of(log), ["lines"], archived, archiver=SparkArchiver(session), file_offsets_max=20)
    source = ParquetSource(archived)
    backfill = Backfill(
        word_count(),
        source,
        f"{file_system.url}/from-archive",
        executor=SparkExecutor(session),
        commit_records=16,
    )
    result = backfill.run()
    inline = Backfill(word_count(), source_of(log), tmp_path / "inline", commit_records=16).run()
    assert result.changelog("counts") == inline.changelog("counts")
    results = f"{file_system.url}/results{file_system.query}"
    emitted = emit(result, results)
    assert emitted == {"word-counts": sum(len(records) for records in inline.sink("word-counts").values())}
    assert emit(result, results) == emitted
    found = ParquetSource(results)
    assert found.ends(list(inline.written())) == dict(inline.written())
