"""A table of a database is the history of a topic: its rows give what the same records in a log give."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pystreams import App
from pystreams.backfill import backfill
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.cli.commands.backfill.inputs import open_source, parse_source
from pystreams.errors import ConfigError
from tests.backfill.kit import everything, lines, memory

#: Spark brings Derby along; such a database is in the memory of Spark's driver.
DATABASE = "jdbc:derby:memory:shop"


class Payment(msgspec.Struct):
    customer: str
    cents: int


PAYMENTS = [(Payment(f"c{n % 5}", 7 * n), 1_700_000_000_000 + 1_000 * n) for n in range(40)]


def spent() -> App:
    app = App("shop")
    payments = app.stream("payments", key=str, value=Payment)
    payments.map_values(lambda payment: payment.cents, value=int).group_by_key().reduce(
        lambda one, two: one + two, name="spent"
    ).to_stream().to("totals")
    return app


@pytest.fixture(scope="module")
def database(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """It has the payments in a table."""
    # By itself Derby writes its log to the working directory.
    log = tmp_path_factory.mktemp("derby") / "derby.log"
    spark._jvm.java.lang.System.setProperty("derby.stream.error.file", str(log))
    rows = [(one.customer, one.cents, datetime.fromtimestamp(at / 1000, UTC)) for one, at in PAYMENTS]
    table = spark.createDataFrame(rows, "customer string, cents long, at timestamp")
    options = {"url": f"{DATABASE};create=true", "dbtable": "payments"}
    table.write.format("jdbc").options(**options).save()
    return DATABASE


def source_of(text: str) -> Any:
    """As the command opens it."""
    return open_source(parse_source(text), None)  # type: ignore[arg-type]


def test_rows_give_what_the_same_records_in_a_log_give(
    database: str, executor: SparkExecutor, tmp_path: Path
) -> None:
    counts = {"payments": 1, "totals": 1}
    past = [(one.customer, one, at) for one, at in PAYMENTS]
    source = memory({"payments": [lines(past, value=Payment)]}, {"totals": 1})
    expected = backfill(spent(), sources=source, staging=tmp_path / "records")
    found = backfill(
        spent(),
        sources={
            "payments": source_of(
                f"payments={database}?dbtable=payments&key=customer&timestamp=at&numPartitions=2"
            )
        },
        staging=tmp_path / "rows",
        executor=executor,
        partitions=counts,
    )
    assert everything(found) == everything(expected)


def test_a_table_that_the_database_does_not_have_is_named_with_its_url(
    database: str, executor: SparkExecutor, tmp_path: Path
) -> None:
    source = source_of(f"payments={database}?dbtable=nothing&key=customer&timestamp=at")
    with pytest.raises(ConfigError, match=r"(?s)Spark cannot open .*derby:memory:shop.*NOTHING"):
        backfill(
            spent(),
            sources={"payments": source},
            staging=tmp_path,
            executor=executor,
            partitions={"payments": 1},
        )
