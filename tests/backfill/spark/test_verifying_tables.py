"""An application whose history came from a table without offsets is verified with this table and its boundary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill import Verified, backfill, hand_over, verify
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.sources import DataFrameSource, EmbeddedSource
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.errors import ConfigError, OffsetOutOfRangeError
from tests.backfill.orders import Order, in_order, revenue, some_orders, table_of
from tests.backfill.verification.verification_kit import NewLog
from tests.live.support import Log, run_to_the_end

ORDERS = in_order(some_orders(8))
BOUNDARY = ORDERS[35][2]


@pytest.fixture
def log(new_log: NewLog) -> Log:
    """The log has only what came from shortly before the boundary on, behind 7 records that are not in the table."""
    log = new_log("log")
    log.create("orders", "totals", partitions=2)
    log.write("orders", [("c0", ORDERS[0][1], 1)] * 7, value=Order)
    log.write("orders", [one for one in ORDERS if one[2] > ORDERS[20][2]], value=Order)
    return log


def sources(spark: Any, log: Log) -> dict[str, Any]:
    table = spark.createDataFrame(table_of([order for _, order, at in ORDERS if at < BOUNDARY]))
    return {
        "orders": DataFrameSource(table, key="customer", timestamp="at"),
        "*": EmbeddedSource(str(log.path / "log.db")),
    }


def handed_over(spark: Any, executor: SparkExecutor, log: Log, staging: Path) -> BackfillResult:
    result = backfill(
        revenue(),
        sources=sources(spark, log),
        boundary=BOUNDARY,
        staging=staging,
        executor=executor,
        partitions={"totals": 2},
    )
    hand_over(result, log.broker)
    return result


def verified(log: Log, **given: Any) -> Verified:
    return verify(revenue(state_dir=log.path / "state"), log.broker, wait_ms=0, **given)


def test_a_migration_from_a_table_is_equal_and_without_the_table_it_says_which_boundary_to_give(
    spark: Any, executor: SparkExecutor, log: Log, tmp_path: Path
) -> None:
    result = handed_over(spark, executor, log, tmp_path / "staging")
    assert result.manifest.boundaries == {"orders": BOUNDARY}
    with pytest.raises(ConfigError) as refused:
        verified(log, sources=EmbeddedSource(str(log.path / "log.db")))
    message = str(refused.value)
    assert message.startswith("shop was handed over from a table before 2024-03-01T00:")
    assert "history from the log alone cannot equal it" in message
    assert "--boundary 2024-03-01T00:" in message
    assert "in Python boundary='2024-03-01T00:" in message
    # Later ones, and ones that come late: their time is before the boundary, and live counts them.
    log.write("orders", [(key, order, at + 10**9) for key, order, at in ORDERS[:10]], value=Order)
    log.write("orders", ORDERS[:4], value=Order)
    run_to_the_end(log, revenue(state_dir=log.path / "state"))
    found = verified(log, sources=sources(spark, log), boundary=BOUNDARY, executor=executor)
    assert found.equal, found
    assert found.counts.compared


def test_late_records_count_though_none_has_come_after_the_boundary(
    spark: Any, executor: SparkExecutor, new_log: NewLog, tmp_path: Path
) -> None:
    log = new_log("log")
    log.create("orders", "totals", partitions=2)
    handed_over(spark, executor, log, tmp_path / "staging")
    log.write("orders", ORDERS[:4], value=Order)
    log.write("orders", ORDERS[50:], value=Order)
    run_to_the_end(log, revenue(state_dir=log.path / "state"))
    found = verified(log, sources=sources(spark, log), boundary=BOUNDARY, executor=executor)
    assert found.equal, found


def test_a_table_without_offsets_and_without_a_boundary_is_refused_first(spark: Any, log: Log) -> None:
    # Neither the executor, nor the number of partitions is looked at.
    with pytest.raises(ConfigError, match="the records of a source have no offsets") as refused:
        verified(log, sources=sources(spark, log))
    assert "--boundary TIME" in str(refused.value)


def test_an_application_that_has_not_come_to_the_boundary_is_refused(
    spark: Any, executor: SparkExecutor, log: Log
) -> None:
    app = revenue(state_dir=log.path / "state")
    run_to_the_end(log, app)
    later = ORDERS[-1][2] + 10**6
    log.write("orders", [("c1", ORDERS[0][1], later), ("c0", ORDERS[0][1], later)] * 3, value=Order)
    log.write("orders", [(f"c{i}", ORDERS[0][1], later + 10**6) for i in range(9)], value=Order)
    with pytest.raises(
        OffsetOutOfRangeError, match="the application has not come to the boundary in orders-"
    ):
        verified(log, sources=sources(spark, log), boundary=later + 10**6, executor=executor)


def test_a_backfill_that_continues_another_keeps_its_boundary(
    spark: Any, executor: SparkExecutor, log: Log, tmp_path: Path
) -> None:
    handed_over(spark, executor, log, tmp_path / "first")
    log.write("orders", [(key, order, at + 10**9) for key, order, at in ORDERS[:10]], value=Order)
    second = backfill(
        revenue(),
        sources=EmbeddedSource(str(log.path / "log.db")),
        staging=tmp_path / "second",
        previous=tmp_path / "first",
        executor=executor,
        partitions={"totals": 2},
    )
    assert second.manifest.boundaries == {"orders": BOUNDARY}
