"""Others write to the table of an archive, at any moment, and stores lose answers: each record is there once, or it is
said what is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from deltalake.table import TableAlterer
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, ForbiddenError
from pyiceberg.transforms import BucketTransform

from pystreams.backfill.archive import merging
from pystreams.backfill.archive.archive import archive
from pystreams.backfill.archive.delta_target import DeltaTarget
from pystreams.backfill.sources import DeltaArchive
from pystreams.backfill.sources.lake import source as lake_source
from pystreams.backfill.sources.lake.delta import url_of
from pystreams.backfill.sources.lake.libraries import reason
from pystreams.backfill.sources.ranges import InputRange
from pystreams.errors import ConfigError, StateError
from tests.backfill.archive.kit import FILES_MIN, ONE, OTHER, from_its_merge_on, history, rows
from tests.backfill.archive.lakes import Delta, Iceberg, Lake
from tests.backfill.sources.files_kit import in_memory, read

LAST = 10 * FILES_MIN

pytestmark = pytest.mark.usefixtures("few_files_are_merged")


def require_each_once(lake: Lake, count: int) -> None:
    for partition in (ONE, OTHER):
        assert lake.archived(partition) == rows(count, partition=partition)
        assert lake.offsets(partition) == [row[0] for row in rows(count)]


def test_a_run_that_looks_between_the_two_commits_of_another_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """delta-rs would set the note behind the files of the other run, of which the note knows nothing."""
    lake = Delta(tmp_path)
    archive(history(5), ["lines"], lake.target())
    target, announce, landed = lake.target(), TableAlterer.set_table_properties, list[bool]()
    write = target._write

    def write_while_another_run_announces(*files: Any) -> None:
        def files_first(*note: Any, **how: Any) -> None:
            if not landed:
                write(*files)
                landed.append(True)
            announce(*note, **how)

        monkeypatch.setattr(TableAlterer, "set_table_properties", files_first)
        with pytest.raises(StateError, match="another run has written"):
            archive(history(20), ["lines"], lake.target())

    monkeypatch.setattr(target, "_write", write_while_another_run_announces)
    assert archive(history(14), ["lines"], target).records == 2 * len(rows(14)[len(rows(5)) :])
    assert landed
    require_each_once(lake, 14)
    monkeypatch.undo()
    archive(history(20), ["lines"], lake.target())
    require_each_once(lake, 20)


@pytest.mark.parametrize("retries", [None, "0"], ids=["several tries", "one try"])
def test_a_commit_that_has_landed_without_a_word_counts(
    lake: Lake, retries: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if it was sent twice: the second time, it is in its own way."""
    archive(history(5), ["lines"], lake.target())
    if isinstance(lake, Iceberg) and retries is not None:
        with lake.table().transaction() as change:
            change.set_properties({"commit.retry.num-retries": retries})
    owner, name, error = {
        Delta: (DeltaTable, "create_write_transaction", CommitFailedError("is there already")),
        Iceberg: (SqlCatalog, "commit_table", CommitFailedException("is there already")),
    }[type(lake)]
    commit, lost = getattr(owner, name), list[bool]()

    def without_a_word(*arguments: Any, **named: Any) -> Any:
        answer = commit(*arguments, **named)
        if not lost:
            lost.append(True)
            raise error
        return answer

    monkeypatch.setattr(owner, name, without_a_word)
    assert archive(history(20), ["lines"], lake.target()).records == 2 * len(rows(20)[len(rows(5)) :])
    assert lost
    require_each_once(lake, 20)


def test_a_delta_table_that_was_restored_to_any_version_is_archived_from_there(tmp_path: Path) -> None:
    made = Delta(tmp_path / "made")
    for count in (5, 14, 20):
        archive(history(count), ["lines"], made.target())
    # A new table, and three commits of each run.
    assert DeltaTable(made.path).version() == 9
    for version in range(9):
        shutil.copytree(made.folder, tmp_path / str(version))
        lake = Delta(tmp_path / str(version))
        DeltaTable(lake.path).restore(version)
        assert lake.offsets() == [row[0] for row in rows((0, 0, 5, 5, 5, 14, 14, 14, 20)[version])]
        assert lake.archived() == [row for row in rows(20) if row[0] in lake.offsets()]
        archive(history(30), ["lines"], lake.target())
        require_each_once(lake, 30)


def test_a_table_without_statistics_may_be_restored(tmp_path: Path) -> None:
    lake = Delta(tmp_path)
    for count in (5, 10):
        archive(history(count), ["lines"], lake.target())
    table = DeltaTable(lake.path)
    table.alter.set_table_properties({"delta.dataSkippingNumIndexedCols": "0"})
    lake.compact()
    archive(history(20), ["lines"], lake.target())
    announced = DeltaTable(lake.path).version() - 2
    assert lake.archived() == rows(20)
    DeltaTable(lake.path).restore(announced)
    assert lake.archived() == rows(10)
    archive(history(30), ["lines"], lake.target())
    require_each_once(lake, 30)


def test_all_records_of_the_last_run_may_be_deleted(lake: Lake) -> None:
    """They do not come back, and are no loss."""
    some = [(offset, 1000 + offset, b"a" if offset < 10 else b"b", b"v", ()) for offset in range(20)]
    for count in (10, 20):
        archive(in_memory({ONE: some[:count]}), ["lines"], lake.target())
    lake.delete_rows("b")
    for _ in range(2):
        assert archive(in_memory({ONE: some}), ["lines"], lake.target()).records == 0
    assert lake.archived() == some[:10]
    lake.delete_rows("a")
    assert archive(in_memory({ONE: some}), ["lines"], lake.target()).records == 0
    assert lake.source().missing(InputRange(ONE, 0, 20)) == []


def test_an_iceberg_table_that_was_rolled_back_is_refused_until_it_is_rolled_forward(tmp_path: Path) -> None:
    lake = Iceberg(tmp_path)
    for count in (5, 14, 20):
        archive(history(count), ["lines"], lake.target())
    snapshots = [snapshot.snapshot_id for snapshot in lake.table().snapshots()]
    with lake.table().manage_snapshots() as manage:
        manage.rollback_to_snapshot(snapshots[0])
    for action in (
        lambda: lake.source().partitions(),
        lambda: archive(history(30), ["lines"], lake.target()),
    ):
        with pytest.raises(StateError, match="was rolled back"):
            action()
    with lake.table().manage_snapshots() as manage:
        manage.set_current_snapshot(snapshots[-1])
    archive(history(30), ["lines"], lake.target())
    require_each_once(lake, 30)


def test_snapshots_that_have_expired_are_no_rollback(tmp_path: Path) -> None:
    lake = Iceberg(tmp_path)
    archive(history(5), ["lines"], lake.target())
    archived = [snapshot.snapshot_id for snapshot in lake.table().snapshots()]
    lake.compact()
    lake.table().maintenance.expire_snapshots().by_ids(archived).commit()
    archive(history(9), ["lines"], lake.target())
    require_each_once(lake, 9)


def test_a_rollback_is_noticed_when_the_snapshots_of_runs_have_expired(tmp_path: Path) -> None:
    lake = Iceberg(tmp_path)
    archive(history(5), ["lines"], lake.target())
    lake.compact()
    compacted = lake.table().current_snapshot().snapshot_id
    archive(history(14), ["lines"], lake.target())
    with lake.table().manage_snapshots() as manage:
        manage.set_current_snapshot(compacted)
    others = [one.snapshot_id for one in lake.table().snapshots() if one.snapshot_id != compacted]
    lake.table().maintenance.expire_snapshots().by_ids(others).commit()
    with pytest.raises(StateError, match="was rolled back"):
        archive(history(20), ["lines"], lake.target())


def test_a_compaction_between_two_merges_is_noticed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "_TOGETHER", 1)
    for count in range(10, LAST, 10):
        archive(history(count), ["lines"], lake.target())
    target = lake.target()
    replace, replaced = target.replace, list[bool]()

    def then_compact(merges: Sequence[merging.Merge]) -> bool:
        replaced.append(replace(merges))
        lake.compact()
        return replaced[-1]

    monkeypatch.setattr(target, "replace", then_compact)
    archive(history(LAST), ["lines"], target)
    assert replaced == [True, False]
    require_each_once(lake, LAST)


def test_files_with_other_records_than_the_table_says_are_not_merged(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for count in range(10, LAST, 10):
        archive(history(count), ["lines"], lake.target())
    in_order = lake_source.LakeArchive.in_order

    def without_the_first(*arguments: Any, **named: Any) -> Iterator[Any]:
        found = in_order(*arguments, **named)
        next(found)
        yield from found

    target = lake.target()
    from_its_merge_on(monkeypatch, target, lake_source.LakeArchive, "in_order", without_the_first)
    assert archive(history(LAST), ["lines"], target).merged.before == 0
    monkeypatch.undo()
    assert "files of lines-0 have other records than the table says" in caplog.text
    require_each_once(lake, LAST)


def test_a_disk_that_cannot_be_read_while_files_are_merged_is_a_warning(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for count in range(10, LAST, 10):
        archive(history(count), ["lines"], lake.target())

    def fail(*arguments: Any, **named: Any) -> None:
        raise OSError(5, "Input/output error")

    target = lake.target()
    from_its_merge_on(monkeypatch, target, pq.ParquetFile, "iter_batches", fail)
    archive(history(LAST), ["lines"], target)
    monkeypatch.undo()
    assert "small files could not be merged: a file of the archive cannot be read" in caplog.text
    require_each_once(lake, LAST)


def test_many_records_of_a_file_in_no_order_are_sorted_in_parts(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for count in (20, 40, 60):
        archive(history(count), ["lines"], lake.target())
    lake.compact()
    sizes = list[int]()
    within = lake_source.LakeArchive._within

    def counted(*arguments: Any) -> pa.Table | None:
        found = within(*arguments)
        sizes.extend([] if found is None else [found.nbytes])
        return found

    monkeypatch.setattr(lake_source, "_WINDOW_BYTES", 2_000)
    monkeypatch.setattr(lake_source.LakeArchive, "_within", counted)
    # Footers do not say how large values are of which a file has few.
    monkeypatch.setattr(lake_source.LakeArchive, "row_bytes", lambda source, file: 1)
    assert lake.archived() == rows(60)
    assert len(sizes) > 1
    assert max(sizes) <= 2_000
    sizes.clear()
    source = lake.source()
    assert read(source, ONE, 11, 17) == [row for row in rows(60) if 11 <= row[0] < 17]
    assert len(sizes) == 1


def test_rows_that_are_only_marked_as_deleted_do_not_keep_new_records_from_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What retention takes meanwhile would be lost. (That Spark marks them: ``tests/backfill/lake``.)"""
    lake = Delta(tmp_path)
    archive(history(5), ["lines"], lake.target())
    monkeypatch.setattr(DeltaTable, "deletion_vectors", lambda table: pa.table({"file": ["a"]}).to_reader())
    with pytest.raises(StateError, match="marked as deleted"):
        lake.source().partitions()
    assert archive(history(9), ["lines"], lake.target()).records > 0
    assert "are not compared" in caplog.text
    monkeypatch.undo()
    require_each_once(lake, 9)


def test_a_table_that_is_partitioned_otherwise_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    lake = Iceberg(tmp_path / "less")
    archive(history(5), ["lines"], lake.target())
    with lake.table().update_spec() as spec:
        spec.remove_field("topic")
    for action in (lambda: lake.source().partitions(), lambda: archive(history(9), ["lines"], lake.target())):
        with pytest.raises(StateError, match="not partitioned by topic and partition any more"):
            action()
    lake = Iceberg(tmp_path / "more")
    archive(history(5), ["lines"], lake.target())
    with lake.table().update_spec() as spec:
        spec.add_field("offset", BucketTransform(4))
    with pytest.raises(StateError, match="not partitioned by topic and partition any more"):
        archive(history(9), ["lines"], lake.target())
    lake = Iceberg(tmp_path / "renamed")
    archive(history(5), ["lines"], lake.target())
    with lake.table().update_schema() as schema:
        schema.rename_column("value", "body")
    with pytest.raises(StateError, match="lacks a column of a record"):
        lake.source().partitions()
    # In another order it is.
    lake = Iceberg(tmp_path / "order")
    archive(history(5), ["lines"], lake.target())
    with lake.table().update_spec() as spec:
        spec.remove_field("topic")
    with lake.table().update_spec() as spec:
        spec.add_identity("topic")
    archive(history(9), ["lines"], lake.target())
    require_each_once(lake, 9)


def test_who_may_not_make_namespaces_uses_one_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Iceberg(tmp_path)

    def refuse(*arguments: Any) -> None:
        raise ForbiddenError("principal shop may not create namespaces")

    monkeypatch.setattr(SqlCatalog, "create_namespace", refuse)
    with pytest.raises(ConfigError, match="the catalog shared cannot be reached, or refuses") as raised:
        archive(history(5), ["lines"], lake.target())
    assert "may not create namespaces" in raised.value.why
    monkeypatch.undo()
    lake.catalog().create_namespace("shop")
    monkeypatch.setattr(SqlCatalog, "create_namespace", refuse)
    archive(history(5), ["lines"], lake.target())
    require_each_once(lake, 5)


def test_of_two_runs_that_make_the_table_at_once_one_goes_on_with_that_of_the_other(tmp_path: Path) -> None:
    lake = Iceberg(tmp_path)
    late = lake.target()
    assert late.open(0) == 0
    archive(history(0), ["lines"], lake.target())
    late.begin(0)
    assert dict(lake.source().partitions()) == {"lines": 2}


def test_errors_of_a_library_are_said_in_a_sentence(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    archive(history(5), ["lines"], lake.target())
    owner, name = {Delta: (DeltaTable, "create_write_transaction"), Iceberg: (SqlCatalog, "commit_table")}[
        type(lake)
    ]

    def fail(*arguments: Any, **named: Any) -> None:
        raise OSError("the store https://me:secret@store/x?token=secret answers 500\nand more")

    monkeypatch.setattr(owner, name, fail)
    with pytest.raises(StateError, match="the table cannot be changed") as raised:
        archive(history(9), ["lines"], lake.target())
    assert raised.value.why == "OSError: the store https://me:***@store/x answers 500"
    monkeypatch.undo()
    archive(history(9), ["lines"], lake.target())
    require_each_once(lake, 9)


def test_secrets_are_not_in_messages() -> None:
    error = ValueError("cannot infer it from mysql://user:secret@host/db; url: /x?token=secret (and more)")
    assert "secret" not in reason(error)
    assert "mysql://user:***@host/db" in reason(error)


@pytest.mark.parametrize("name", ["a b", "a#b", "ü"])
def test_a_folder_may_have_any_name(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    archive(history(5), ["lines"], DeltaTarget(name))
    assert [folder.name for folder in tmp_path.iterdir()] == [name]
    assert read(DeltaArchive(name), ONE, 0, 5) == rows(5)


def test_a_folder_that_the_library_would_take_for_another_is_refused(tmp_path: Path) -> None:
    for action in (
        lambda: archive(history(5), ["lines"], DeltaTarget(str(tmp_path / "a%20b"))),
        lambda: DeltaArchive(str(tmp_path / "a%20b")).partitions(),
    ):
        with pytest.raises(ConfigError, match="a%20b has a %"):
            action()
    assert not list(tmp_path.iterdir())


def test_the_container_of_azure_is_no_login() -> None:
    place = "abfss://box@account.dfs.core.windows.net/archive"
    assert url_of(place) == place


@pytest.mark.parametrize("url", ["s3://bucket/archive?region=eu-1", "s3://me:secret@bucket/archive"])
def test_a_url_with_settings_of_one_library_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="has settings or a login") as raised:
        DeltaArchive(url).partitions()
    assert "secret" not in str(raised.value)
    assert "AWS_REGION" in raised.value.hint


def test_a_delta_table_without_files_is_no_place_for_files_in_parquet(tmp_path: Path) -> None:
    lake = Delta(tmp_path)
    archive(in_memory({ONE: []}), ["lines"], lake.target())
    with pytest.raises(StateError, match="is a table of Delta"):
        archive(history(5), ["lines"], lake.path)
    assert not list(Path(lake.path).rglob("*.parquet"))


def test_files_of_runs_that_died_are_deleted_when_the_table_is_cleaned(tmp_path: Path) -> None:
    lake = Delta(tmp_path)
    archive(history(5), ["lines"], lake.target())
    left = Path(lake.path) / "topic=lines" / "partition=0" / "00000000000000000099-0123abcd.parquet"
    pq.write_table(pa.table({"offset": [1]}), left)
    os.utime(left, (0, 0))
    for count in range(10, LAST, 10):
        archive(history(count), ["lines"], lake.target())
    assert not left.exists()
    require_each_once(lake, LAST - 10)
