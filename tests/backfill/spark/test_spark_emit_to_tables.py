"""On Spark, records for topics are rows of Parquet tables, once; formats that Spark does not have are refused before
anything is computed. Tables of Iceberg and Delta: ``tests/backfill/lake``."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pystreams.backfill.api import plan_backfill
from pystreams.backfill.application import NamedApplication
from pystreams.backfill.handover.emit import emit
from pystreams.backfill.handover.emit_to_tables import prepare_tables
from pystreams.backfill.sources import SparkTable
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.errors import ConfigError
from tests.backfill.kit import Backfill, memory
from tests.backfill.typed_program import typed, typed_history

PAST = memory(typed_history(), {"big-orders": 2, "sessions": 2})


def test_parquet_has_the_types_and_the_rows_of_an_inline_run(tmp_path: Path, executor: SparkExecutor) -> None:
    application = NamedApplication("tests.backfill.typed_program")
    on_spark = Backfill(application, PAST, tmp_path / "spark", executor=executor).run()
    inline = Backfill(typed(), PAST, tmp_path / "inline").run()
    for topic in ("big-orders", "sessions"):
        for _ in range(2):
            emit(on_spark, {topic: tmp_path / topic})
        found, wanted = pq.read_table(tmp_path / topic), inline.emitted(topic)
        assert found.schema.equals(wanted.schema)
        assert sorted(map(str, found.to_pylist())) == sorted(map(str, wanted.to_pylist()))


@pytest.mark.parametrize("table", [SparkTable("delta", "/lake/s"), SparkTable("iceberg", "lake.shop.s")])
def test_a_format_that_spark_does_not_have_is_refused(executor: SparkExecutor, table: SparkTable) -> None:
    planned = plan_backfill(typed(), sources=PAST, executor=executor)
    with pytest.raises(ConfigError, match=f"Spark can neither read nor create {table.format} ") as refused:
        prepare_tables(planned, {"sessions": table}, executor)
    assert refused.value.why == f"it does not have the format {table.format}"
    assert "spark.jars" in refused.value.hint
