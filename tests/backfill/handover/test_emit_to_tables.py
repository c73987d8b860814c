"""Records that a backfill wrote for topics are rows of tables, with the columns of ``result.emitted``, once however
often it is tried. Tables of Iceberg and Delta: ``tests/backfill/lake``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pystreams.backfill.api import plan_backfill
from pystreams.backfill.compute.inline import InlineExecutor
from pystreams.backfill.handover import emit_to_files
from pystreams.backfill.handover.emit import emit
from pystreams.backfill.handover.emit_to_tables import check_tables, prepare_tables
from pystreams.backfill.sources import SparkTable
from pystreams.backfill.workers.processes import ProcessExecutor
from pystreams.errors import ConfigError, StateError, TopicError
from pystreams.ids import TopicPartition
from tests.backfill.handover.killed_emit import OUTPUTS, computed
from tests.backfill.kit import memory
from tests.backfill.programs import history, word_count
from tests.backfill.typed_program import typed, typed_history

ROOT = Path(__file__).resolve().parents[3]
TOPICS = ["big-orders", "counts-per-minute", "sessions", "chosen-0"]


def rows(table: Any) -> list[str]:
    return sorted(map(str, table.to_pylist()))


@pytest.mark.parametrize(
    "executor", [InlineExecutor(), ProcessExecutor(processes=2)], ids=["inline", "processes"]
)
def test_tables_have_the_types_and_the_rows_of_the_result(tmp_path: Path, executor: InlineExecutor) -> None:
    result = computed(tmp_path / "staging", executor=executor)
    counts = emit(result, {topic: tmp_path / topic for topic in TOPICS})
    for topic in TOPICS:
        found, wanted = pq.read_table(tmp_path / topic), result.emitted(topic)
        assert found.schema.equals(wanted.schema)
        assert rows(found) == rows(wanted)
        assert counts[topic] == len(wanted) > 0


def test_many_small_batches_are_one_group_of_rows(tmp_path: Path) -> None:
    result = computed(tmp_path / "staging", executor=InlineExecutor(batch_rows=2))
    emit(result, {"sessions": tmp_path / "table"})
    files = [pq.ParquetFile(file) for file in tmp_path.glob("table/*.parquet")]
    assert [file.num_row_groups for file in files] == [1, 1]
    assert min(file.metadata.num_rows for file in files) > 2


def test_large_batches_are_groups_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = computed(tmp_path / "staging", executor=InlineExecutor(batch_rows=2))
    monkeypatch.setattr(emit_to_files, "_GROUP_BYTES", 1)
    emit(result, {"sessions": tmp_path / "table"})
    files = [pq.ParquetFile(file) for file in tmp_path.glob("table/*.parquet")]
    assert sum(file.num_row_groups for file in files) >= sum(file.metadata.num_rows for file in files) / 2
    assert rows(pq.read_table(tmp_path / "table")) == rows(result.emitted("sessions"))


def test_emitted_again_they_stay_as_they_are(tmp_path: Path) -> None:
    result = computed(tmp_path / "staging")
    for _ in range(2):
        assert emit(result, {"sessions": f"file://{tmp_path}/table"}) == {
            "sessions": len(result.emitted("sessions"))
        }
    assert rows(pq.read_table(tmp_path / "table")) == rows(result.emitted("sessions"))


@pytest.mark.parametrize("files", [0, 1])
def test_killed_after_some_files_and_done_again_each_row_is_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    result, write, written = computed(tmp_path / "staging"), emit_to_files._write, 0

    def killed(*given: Any) -> int:
        nonlocal written
        if written == files:
            raise KeyboardInterrupt
        written += 1
        return write(*given)

    with monkeypatch.context() as patch:
        patch.setattr(emit_to_files, "_write", killed)
        with pytest.raises(KeyboardInterrupt):
            emit(result, {"sessions": tmp_path / "table"})
    assert len([*tmp_path.glob("table/*")]) == files
    emit(result, {"sessions": tmp_path / "table"})
    assert rows(pq.read_table(tmp_path / "table")) == rows(result.emitted("sessions"))


@pytest.mark.parametrize("moment,whole", [("written", 1), ("moved", 2)])
def test_a_driver_that_died_at_the_second_file_is_resumed_and_each_row_is_there_once(
    tmp_path: Path, moment: str, whole: int
) -> None:
    """``written``: the file is complete, and not in its place yet. ``moved``: it is, and nobody knows."""
    table = tmp_path / "table"
    command = [sys.executable, "-m", "tests.backfill.handover.killed_emit", str(tmp_path), moment]
    killed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    before = {file: file.stat().st_mtime_ns for file in table.glob("*.parquet")}
    assert len(before) == whole
    # Half of it is not seen by readers: its name is hidden.
    assert len([*table.glob(".*.draft")]) == 2 - whole
    assert len(pq.read_table(table)) == sum(len(pq.read_table(file)) for file in before)
    result = computed(tmp_path / "staging", resume=True)
    for _ in range(2):
        emit(result, {"sessions": table})
    assert rows(pq.read_table(table)) == rows(result.emitted("sessions"))
    assert {file: file.stat().st_mtime_ns for file in before} == before


def test_rows_of_a_later_backfill_are_added(tmp_path: Path) -> None:
    first = computed(tmp_path / "first", until={TopicPartition("items", p): 9 for p in range(2)})
    second = computed(tmp_path / "second", previous=tmp_path / "first")
    for result in (first, second, first):
        emit(result, {"big-orders": tmp_path / "table"})
    both = pa.concat_tables([first.emitted("big-orders"), second.emitted("big-orders")])
    assert rows(pq.read_table(tmp_path / "table")) == rows(both)


def test_a_table_with_other_columns_is_refused_before_anything_is_computed(tmp_path: Path) -> None:
    emit(computed(tmp_path / "staging"), {"sessions": tmp_path / "table"})
    planned = plan_backfill(typed(), sources=memory(typed_history(), OUTPUTS))
    with pytest.raises(ConfigError, match="have other columns than the records") as refused:
        check_tables(planned, {"big-orders": tmp_path / "table"})
    assert "session_start timestamp" in refused.value.why


def test_places_that_are_not_folders_of_parquet_files_are_refused(tmp_path: Path) -> None:
    result = computed(tmp_path / "staging")
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "other.parquet").write_text("not Parquet")
    for place, said in (
        ("delta", "is a table of Delta"),
        ("odd", "a file in .*odd is not a Parquet file, or is damaged"),
        ("odd/other.parquet", "other.parquet is a file, not a folder"),
    ):
        with pytest.raises(ConfigError, match=said):
            emit(result, {"sessions": tmp_path / place})


def test_one_table_for_two_topics_is_refused(tmp_path: Path) -> None:
    result = computed(tmp_path / "staging")
    place = str(tmp_path / "table")
    for table in (f"file://{place}", f"{place}/", SparkTable("delta", place)):
        with pytest.raises(
            ConfigError, match="topics sessions and big-orders cannot be emitted to one table"
        ):
            emit(result, {"sessions": place, "big-orders": table})
    assert not (tmp_path / "table").exists()


@pytest.mark.parametrize(
    "inner", ["{}/table/sessions", "file://{}/table/sessions", SparkTable("delta", "{}/table/a")], ids=str
)
def test_a_table_in_the_folder_of_another_is_refused(tmp_path: Path, inner: Any) -> None:
    result, outer = computed(tmp_path / "staging"), tmp_path / "table"
    if isinstance(inner, SparkTable):
        inner = SparkTable("delta", inner.place.format(tmp_path))
    else:
        inner = inner.format(tmp_path)
    for tables in ({"sessions": inner, "big-orders": outer}, {"big-orders": outer, "sessions": inner}):
        with pytest.raises(ConfigError, match="cannot be in one another's folders"):
            emit(result, tables)
    assert not outer.exists()


def test_a_name_in_a_catalog_is_in_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    planned = plan_backfill(typed(), sources=memory(typed_history(), OUTPUTS))
    check_tables(planned, {"sessions": SparkTable("iceberg", "lake.sessions"), "big-orders": tmp_path})


def test_a_file_of_the_backfill_that_is_damaged_is_named(tmp_path: Path) -> None:
    result = computed(tmp_path / "staging")
    emit(result, {"sessions": tmp_path / "table"})
    # The first is looked at before.
    damaged = sorted((tmp_path / "table").glob("*.parquet"))[1]
    damaged.write_bytes(damaged.read_bytes()[:20])
    with pytest.raises(StateError, match="is not a Parquet file, or is damaged") as refused:
        emit(result, {"sessions": tmp_path / "table"})
    assert damaged.name in refused.value.place
    damaged.unlink()
    emit(result, {"sessions": tmp_path / "table"})
    assert rows(pq.read_table(tmp_path / "table")) == rows(result.emitted("sessions"))


def test_a_file_is_on_the_disk_before_it_is_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, safe = computed(tmp_path / "staging"), set()
    sync = os.fsync

    def noted(descriptor: int) -> None:
        sync(descriptor)
        safe.add((os.fstat(descriptor).st_ino, os.fstat(descriptor).st_size))

    monkeypatch.setattr(os, "fsync", noted)
    emit(result, {"sessions": tmp_path / "table"})
    files = [file.stat() for file in (tmp_path / "table").glob("*.parquet")]
    assert {(file.st_ino, file.st_size) for file in files} <= safe
    assert files


def test_a_topic_that_the_application_does_not_write_to_is_refused(tmp_path: Path) -> None:
    planned = plan_backfill(word_count(), sources=memory(history("word count", 3, 2), {"word-counts": 3}))
    with pytest.raises(TopicError, match="the application does not write to topic word-count") as refused:
        check_tables(planned, {"word-count": tmp_path / "table"})
    assert refused.value.hint == "did you mean word-counts?"


def test_a_topic_that_no_record_has_chosen_leaves_its_table_empty(tmp_path: Path) -> None:
    assert emit(computed(tmp_path / "staging"), {"chosen-1": tmp_path / "table"}) == {"chosen-1": 0}
    assert not (tmp_path / "table").exists()


@pytest.mark.parametrize("format", ["iceberg", "delta"])
@pytest.mark.parametrize("executor", [InlineExecutor(), ProcessExecutor(processes=2)])
def test_without_spark_its_tables_are_refused(executor: InlineExecutor, format: str) -> None:
    planned = plan_backfill(typed(), sources=memory(typed_history(), OUTPUTS))
    with pytest.raises(ConfigError, match=f"{format} lake/sessions is a table that Spark writes"):
        prepare_tables(planned, {"sessions": SparkTable(format, "lake/sessions")}, executor)


def test_a_table_that_is_refused_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    result = computed(tmp_path / "staging")
    with pytest.raises(ConfigError, match="is a table that Spark writes"):
        emit(result, {"sessions": tmp_path / "table", "big-orders": SparkTable("delta", "lake/orders")})
    assert not (tmp_path / "table").exists()


def test_tables_that_would_get_rows_twice_are_refused(tmp_path: Path) -> None:
    result = computed(tmp_path / "staging")
    with pytest.raises(ConfigError, match="cannot be emitted once to orc /tables/sessions"):
        emit(result, {"sessions": SparkTable("orc", "/tables/sessions")})
