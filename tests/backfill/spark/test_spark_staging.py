"""What is staged on Spark is read whole or not at all, and by the driver in pieces."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.backfill.spark.hadoop_folder import HadoopFolder
from pystreams.errors import StateCorruptedError, StateError
from tests.backfill.kit import Backfill, everything, lines, memory
from tests.backfill.programs import history, word_count

PAST = history("word count", 5, partitions=2)


def files_of(result: BackfillResult, slice: int) -> list[Path]:
    return sorted(Path(result.staging.location, result.manifest.folders[slice]).glob("*.parquet"))


def test_a_folder_makes_a_file_once_and_leaves_nothing_beside_it(tmp_path: Path, spark: Any) -> None:
    folder = HadoopFolder(spark, str(tmp_path / "new"))
    assert folder.names() == []
    assert folder.read("a") is None
    folder.create("a", b"\x00\xff one")
    with pytest.raises(FileExistsError):
        folder.create("a", b"two")
    assert folder.read("a") == b"\x00\xff one"
    assert folder.names() == ["a"] == [path.name for path in (tmp_path / "new").iterdir()]
    # Written by somebody else, it is still no damaged file.
    (tmp_path / "new" / "a").write_bytes(b"three")
    assert folder.read("a") == b"three"
    folder.delete("a")
    folder.delete("a")
    assert folder.names() == []


def test_a_file_system_that_spark_does_not_know_is_reported_without_the_password(spark: Any) -> None:
    with pytest.raises(StateError, match="staging folder cannot be used") as raised:
        HadoopFolder(spark, "nosuch://user:secret@host/staging")
    assert "nosuch" in raised.value.why
    assert "spark.jars.packages" in raised.value.hint
    assert "secret" not in str(raised.value)


def test_what_is_not_whole_is_not_resumed(tmp_path: Path, executor: SparkExecutor, spark: Any) -> None:
    backfill = Backfill(word_count(), memory(PAST), tmp_path / "spark", executor=executor, commit_records=16)
    whole = backfill.run()
    lost, kept = files_of(whole, 0)
    content = lost.read_bytes()
    lost.unlink()
    with pytest.raises(StateCorruptedError, match=r"slice 0 .* is incomplete"):
        backfill.run(resume=True)
    twice = shutil.copy(kept, kept.with_name(f"again-{kept.name}"))
    with pytest.raises(StateCorruptedError, match=r"slice 0 .* is incomplete"):
        backfill.run(resume=True)
    Path(twice).unlink()
    # A session may be told to pass over files that it cannot read.
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        lost.write_bytes(content[: len(content) // 2])
        with pytest.raises(StateError, match="cannot be used"):
            Backfill(word_count(), memory(PAST), tmp_path / "spark", executor=SparkExecutor(spark)).run(
                resume=True
            )
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    lost.write_bytes(content)
    assert everything(backfill.run(resume=True)) == everything(whole)
    shutil.rmtree(lost.parent)
    with pytest.raises(StateError, match="the result of slice 0 of the backfill cannot be found"):
        backfill.run(resume=True)


def test_what_inline_has_staged_is_not_found_on_spark(tmp_path: Path, executor: SparkExecutor) -> None:
    Backfill(word_count(), memory(PAST), tmp_path / "staging", commit_records=16).run()
    there = Backfill(word_count(), memory(PAST), tmp_path / "staging", executor=executor)
    with pytest.raises(StateError, match="cannot be found"):
        there.run(resume=True)


def test_the_driver_reads_a_partition_piece_by_piece(
    tmp_path: Path, executor: SparkExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many packed rows of several tasks, whose times overlap."""
    values = [os.urandom(20_000).hex() for _ in range(300)]
    records = [(f"k{number}", value, number) for number, value in enumerate(values)]
    past = {"lines": [lines(records[place::3], value=str) for place in range(3)]}
    app = word_count()
    result = Backfill(app, memory(past), tmp_path / "spark", executor=executor).run()
    inline = Backfill(app, memory(past), tmp_path / "inline").run()
    monkeypatch.setattr("pystreams.backfill.spark.staging._FETCHED_ROWS", 2)

    def collected(rows: Any) -> Any:
        raise AssertionError("all rows came at once")

    monkeypatch.setattr("pystreams.backfill.spark.staging.table_of", collected)
    assert result.sink("word-counts") == inline.sink("word-counts")
    assert result.changelog("counts") == inline.changelog("counts")
