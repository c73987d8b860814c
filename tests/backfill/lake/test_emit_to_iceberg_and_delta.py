"""Records that a backfill wrote for topics are rows of Iceberg's and Delta's tables, with the types of
``result.emitted``, once however often it is tried."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from pystreams.backfill.api import backfill, plan_backfill
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.handover.emit import emit
from pystreams.backfill.handover.emit_to_tables import prepare_tables
from pystreams.backfill.sources import SparkTable
from pystreams.backfill.spark import appending
from pystreams.backfill.spark.arrow import table_of as rows_of
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.errors import ConfigError, StateError
from tests.backfill.kit import memory
from tests.backfill.lake.killed_driver import TOPIC, backfill_on
from tests.backfill.spark.killing import killed_driver
from tests.backfill.typed_program import typed, typed_history

TOPICS = ["big-orders", "counts-per-minute", "sessions", "chosen-0"]
PAST = memory(typed_history(), dict.fromkeys([*TOPICS, "chosen-1"], 2))


@pytest.fixture(scope="module")
def result(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> BackfillResult:
    return backfill_on(SparkExecutor(spark), tmp_path_factory.mktemp("staging")).run()


def read(spark: Any, table: SparkTable) -> Any:
    return spark.read.format(table.format).load(table.place)


def contents(frame: Any) -> list[str]:
    return sorted(map(str, rows_of(frame).to_pylist()))


@pytest.mark.parametrize("topic", TOPICS)
def test_a_table_has_the_types_and_the_rows_of_the_result(
    spark: Any, result: BackfillResult, table: SparkTable, topic: str
) -> None:
    counts = emit(result, {topic: table})
    found, wanted = read(spark, table), result.emitted(topic)
    # Without what may be null.
    assert found.schema.simpleString() == wanted.schema.simpleString()
    assert contents(found) == contents(wanted)
    assert counts == {topic: found.count()}
    assert found.count() > 0


def test_emitted_again_the_rows_are_there_once(spark: Any, result: BackfillResult, table: SparkTable) -> None:
    for _ in range(3):
        emit(result, {TOPIC: table})
    assert contents(read(spark, table)) == contents(result.emitted(TOPIC))


def test_rows_of_others_and_of_another_backfill_stay(
    spark: Any, result: BackfillResult, executor: SparkExecutor, table: SparkTable, tmp_path: Path
) -> None:
    emit(result, {TOPIC: table})
    # Somebody else's rows, with a commit of their own.
    result.emitted(TOPIC).write.format(table.format).mode("append").save(table.place)
    another = backfill_on(executor, tmp_path / "staging").run()
    for again in (another, result, another):
        emit(again, {TOPIC: table})
    assert contents(read(spark, table)) == sorted(3 * contents(result.emitted(TOPIC)))


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["amid", "after"])
def test_a_driver_that_died_while_it_appended_does_it_again_and_the_rows_are_there_once(
    spark: Any, executor: SparkExecutor, lake: Path, table: SparkTable, tmp_path: Path, moment: str
) -> None:
    """``amid``: files are written, but not committed. ``after``: the commit is done, but nobody has heard of it."""
    name = re.split(r"[./]", table.place)[-1]
    staging = tmp_path / "staging"
    killed_driver("tests.backfill.lake.killed_driver", str(lake), table.format, name, str(staging), moment)
    resumed = backfill_on(executor, staging).run(resume=True)
    found = read(spark, table).count()
    assert found == (0 if moment == "amid" else resumed.emitted(TOPIC).count())
    emit(resumed, {TOPIC: table})
    assert contents(read(spark, table)) == contents(resumed.emitted(TOPIC))


def test_the_batch_is_found_though_the_table_was_compacted(
    spark: Any, result: BackfillResult, table: SparkTable
) -> None:
    emit(result, {TOPIC: table})
    if table.format == "iceberg":
        options = "options => map('rewrite-all', 'true')"
        spark.sql(f"CALL lake.system.rewrite_data_files(table => '{table.place}', {options})")
    else:
        spark.sql(f"OPTIMIZE delta.`{table.place}`")
    emit(result, {TOPIC: table})
    assert contents(read(spark, table)) == contents(result.emitted(TOPIC))


@pytest.fixture
def expired(spark: Any, result: BackfillResult, lake: Path, tmp_path: Path) -> SparkTable:
    """A table of Iceberg's that has forgotten the snapshot with the batch."""
    table = SparkTable("iceberg", f"lake.shop.{tmp_path.name}")
    emit(result, {TOPIC: table})
    result.emitted(TOPIC).limit(1).write.format("iceberg").mode("append").save(table.place)
    now = "timestamp '2100-01-01 00:00:00'"
    spark.sql(f"CALL lake.system.expire_snapshots('{table.place}', {now}, 1)")
    return table


def test_where_snapshots_have_expired_it_is_refused_to_guess(
    spark: Any, result: BackfillResult, expired: SparkTable
) -> None:
    rows = read(spark, expired).count()
    with pytest.raises(StateError, match="nobody knows any more whether iceberg lake"):
        emit(result, {TOPIC: expired})
    assert read(spark, expired).count() == rows


def test_snapshots_that_expired_before_the_backfill_began_do_not_matter(
    spark: Any, executor: SparkExecutor, expired: SparkTable, tmp_path: Path
) -> None:
    later = backfill(typed(), sources=PAST, staging=tmp_path / "later", executor=executor)
    rows = read(spark, expired).count()
    for _ in range(2):
        emit(later, {TOPIC: expired})
    assert read(spark, expired).count() == rows + later.emitted(TOPIC).count()


def test_a_table_is_made_before_anything_is_computed_and_others_are_refused(
    spark: Any, executor: SparkExecutor, table: SparkTable
) -> None:
    planned = plan_backfill(typed(), sources=PAST, executor=executor)
    for _ in range(2):
        prepare_tables(planned, {TOPIC: table}, executor)
    assert read(spark, table).count() == 0
    with pytest.raises(ConfigError, match="do not fit the records") as refused:
        prepare_tables(planned, {"big-orders": table}, executor)
    assert "the records have no column session_start" in refused.value.why
    assert "value is struct<name:string,cents:bigint>, and struct<total:" in refused.value.why


def test_a_table_that_could_not_be_read_at_first_is_looked_at_again(
    spark: Any, executor: SparkExecutor, table: SparkTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = plan_backfill(typed(), sources=PAST, executor=executor)
    prepare_tables(planned, {TOPIC: table}, executor)
    read_columns, failures = appending._columns, [AnalysisException("the catalog does not answer")]

    def columns(*given: Any) -> Any:
        if failures:
            raise failures.pop()
        return read_columns(*given)

    monkeypatch.setattr(appending, "_columns", columns)
    with pytest.raises(ConfigError, match="do not fit the records"):
        prepare_tables(planned, {"big-orders": table}, executor)


@pytest.mark.parametrize("format", ["iceberg", "delta"])
def test_a_place_that_cannot_be_a_table_is_refused(executor: SparkExecutor, format: str) -> None:
    place = "nowhere.shop.sessions.at.all" if format == "iceberg" else "nowhere://bucket/sessions"
    planned = plan_backfill(typed(), sources=PAST, executor=executor)
    with pytest.raises(ConfigError, match=f"Spark can neither read nor create {format} nowhere"):
        prepare_tables(planned, {TOPIC: SparkTable(format, place)}, executor)


def test_a_write_that_fails_says_which_table(
    result: BackfillResult, table: SparkTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table got other columns after it was checked."""
    emit(result, {"big-orders": table})
    monkeypatch.setattr(appending, "prepare", lambda *_: None)
    with pytest.raises(StateError, match=f"cannot be appended to {table.format} ") as failed:
        emit(result, {TOPIC: table})
    assert "--resume" in failed.value.hint
