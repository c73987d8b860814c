"""The rows of a DataFrame or table are the records of a topic, whoever reads it: with the bytes, partitions and order
that producers would have given them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sql

from pystreams.backfill.api import backfill, plan_backfill
from pystreams.backfill.compute.driver import run
from pystreams.backfill.compute.executor import Executor
from pystreams.backfill.compute.inline import InlineExecutor
from pystreams.backfill.exchange.rows import pc
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.sources import DataFrameSource, EmbeddedSource, MemorySource, SparkTable
from pystreams.backfill.spark.arrow import mapped
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.errors import ConfigError, OffsetOutOfRangeError, StateError
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch
from pystreams.times import show_time
from tests.backfill.kit import everything
from tests.backfill.orders import (
    BEGIN,
    ORDERS,
    Order,
    in_order,
    milliseconds,
    revenue,
    some_orders,
    table_of,
)
from tests.backfill.programs import history, word_count
from tests.backfill.twins import Twins
from tests.live.support import Line, Log, run_to_the_end


@dataclass
class Reader:
    """Whoever reads tables: ``frame`` makes a table one that the executor reads."""

    frame: Callable[[pa.Table], Any]
    executor: Executor


@pytest.fixture(params=["Spark", "memory", "Parquet"])
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Reader:
    if request.param == "Spark":
        spark = request.getfixturevalue("spark")
        return Reader(spark.createDataFrame, request.getfixturevalue("executor"))
    if request.param == "memory":
        return Reader(lambda table: table, InlineExecutor())
    numbers = count()
    return Reader(lambda table: in_files(table, tmp_path / f"table-{next(numbers)}"), InlineExecutor())


def in_files(table: pa.Table, folder: Path) -> SparkTable:
    """A table as two files, the second one with several row groups."""
    folder.mkdir()
    half = table.num_rows // 2
    pq.write_table(table.slice(0, half), folder / "part-0.parquet")
    pq.write_table(table.slice(half), folder / "part-1.parquet", row_group_size=5)
    return SparkTable("parquet", str(folder))


def test_rows_give_what_the_same_records_in_a_log_give(
    reader: Reader, tmp_path: Path, new_log: Callable[[str], Log]
) -> None:
    seed = 5
    orders = some_orders(seed)
    log = new_log("log")
    log.create("orders", "totals", partitions=3)
    log.write("orders", in_order(orders), value=Order)
    from_log = backfill(
        revenue(), sources=EmbeddedSource(str(log.path / "log.db")), staging=tmp_path / "log-staging"
    )
    source = DataFrameSource(reader.frame(table_of(orders)), key="customer", timestamp="at")
    from_rows = backfill(
        revenue(),
        sources={"orders": source},
        staging=tmp_path / "staging",
        executor=reader.executor,
        partitions={"orders": 3, "totals": 3},
    )
    assert everything(from_rows) == everything(from_log)
    assert from_rows.manifest.approximate
    staged = [path.name for path in (tmp_path / "staging").iterdir() if path.is_dir()]
    assert sorted(staged) == sorted(from_rows.manifest.folders.values())


# Tables that have the offsets of the topic


def exact(frame: Any, **columns: Any) -> DataFrameSource:
    return DataFrameSource(
        frame, key="key", value="value", timestamp="at", partition="part", offset="place", **columns
    )


def archived(partitions: Sequence[Sequence[Line]]) -> pa.Table:
    """A topic's history as the rows of a table with offsets, in any order."""
    rows = [
        {
            "key": line.key,
            "value": line.value,
            "at": line.timestamp,
            "part": partition,
            "place": offset,
        }
        for partition, lines in enumerate(partitions)
        for offset, line in enumerate(lines)
    ]
    random.Random(3).shuffle(rows)
    types = [pa.binary(), pa.binary(), pa.int64(), pa.int32(), pa.int64()]
    names = ("key", "value", "at", "part", "place")
    return pa.Table.from_pylist(rows, pa.schema(list(zip(names, types, strict=True))))


def test_with_offsets_a_live_application_goes_on_as_if_it_had_been_live(
    reader: Reader, tmp_path: Path, new_log: Callable[[str], Log]
) -> None:
    twins = Twins(new_log, seed=11)
    handed = twins.handed
    # The table has later records, too: the cut leaves them out.
    sources = {
        topic: exact(reader.frame(archived(lines)), partitions=2) for topic, lines in twins.past.items()
    }
    result = backfill(
        twins.app,
        sources=sources,
        staging=tmp_path / "staging",
        executor=reader.executor,
        partitions={"sums": 2},
        until=twins.at,
    )
    hand_over(result, handed.broker, emit=True)
    twins.go_on_alike()


def test_holes_between_offsets_stay_where_they_are(reader: Reader, tmp_path: Path) -> None:
    past = history("word count", 3, 2)
    times = sorted(line.timestamp for lines in past["lines"] for line in lines)
    rows = [
        row | {"place": row["place"] * 2 + 5}
        for row in archived(past["lines"]).to_pylist()
        if row["place"] % 3 != 1
    ]
    frame = reader.frame(pa.Table.from_pylist(rows, archived([]).schema))
    kept = {
        TopicPartition("lines", p): [
            (offset * 2 + 5, line) for offset, line in enumerate(lines) if offset % 3 != 1
        ]
        for p, lines in enumerate(past["lines"])
    }
    batches = {
        partition: [
            RecordBatch(
                *partition,
                [line.key for _, line in lines],
                [line.value for _, line in lines],
                [line.timestamp for _, line in lines],
                [offset for offset, _ in lines],
                None,
                lines[-1][0] + 1,
            )
        ]
        for partition, lines in kept.items()
    }
    inline = backfill(
        word_count(), sources=MemorySource({"lines": 2}, batches), staging=tmp_path / "inline",
        until=times[len(times) // 2],
    )  # fmt: skip
    of_table = backfill(
        word_count(), sources={"lines": exact(frame, partitions=2)}, staging=tmp_path / "table",
        executor=reader.executor, until=times[len(times) // 2],
    )  # fmt: skip
    assert [one for one in of_table.manifest.inputs if one.start != 5] == []
    assert of_table.manifest.inputs == inline.manifest.inputs
    assert everything(of_table) == everything(inline)


# Tables whose records are in the log from a boundary on


def test_before_a_boundary_records_come_from_the_table_and_then_from_the_log(
    reader: Reader, tmp_path: Path, new_log: Callable[[str], Log]
) -> None:
    orders = in_order(some_orders(8))
    boundary = orders[35][2]
    shuffled = [*orders]
    random.Random(4).shuffle(shuffled)
    # The log has lost its first records, and is out of order around the boundary.
    log, live = new_log("log"), new_log("live")
    for one in (log, live):
        one.create("orders", "totals", partitions=2)
    log.write("orders", [("c0", orders[0][1], 1)] * 30, value=Order)
    log.write("orders", [one for one in shuffled if one[2] > orders[20][2]], value=Order)
    later = [(key, order, at + 10**9) for key, order, at in orders[:10]]
    app = {one: revenue(state_dir=one.path / "state") for one in (log, live)}
    # A live run from the beginning: by timestamp up to the boundary, then as the log has them.
    before = [one for one in orders if one[2] < boundary]
    live.write("orders", [*before, *(one for one in shuffled if one[2] >= boundary)], value=Order)
    run_to_the_end(live, app[live])
    # The table has later records than the boundary, too.
    table = reader.frame(table_of([order for _, order, _ in orders]))
    result = backfill(
        app[log],
        sources={
            "orders": DataFrameSource(table, key="customer", timestamp="at"),
            "*": EmbeddedSource(str(log.path / "log.db")),
        },
        boundary=boundary,
        staging=tmp_path / "staging",
        executor=reader.executor,
        partitions={"totals": 2},
    )
    hand_over(result, log.broker, emit=True)
    for one in (log, live):
        one.write("orders", later, value=Order)
        run_to_the_end(one, app[one])
    assert log.table("totals") == live.table("totals")
    assert len(log.read("totals")) == len(live.read("totals"))


def test_a_log_that_begins_after_the_boundary_is_refused(
    reader: Reader, new_log: Callable[[str], Log]
) -> None:
    log = new_log("log")
    log.create("orders", partitions=1)
    log.write("orders", in_order(some_orders(8)), value=Order)
    log.admin.delete_records({TopicPartition("orders", 0): 5})
    sources = {
        "orders": DataFrameSource(reader.frame(table_of(some_orders(8))), key="customer", timestamp="at"),
        "*": EmbeddedSource(str(log.path / "log.db")),
    }
    with pytest.raises(
        OffsetOutOfRangeError, match="may have lost records of orders-0 after the boundary"
    ) as refused:
        plan_backfill(revenue(), sources=sources, boundary=milliseconds(BEGIN), executor=reader.executor)
    assert str(refused.value).endswith(
        "so retention may have deleted others from after the boundary\n"
        "  next: choose a boundary that is later than the first record of the log"
    )


def bounded(reader: Reader, log: Log, orders: list[Order]) -> dict[str, Any]:
    return {
        "orders": DataFrameSource(reader.frame(table_of(orders)), key="customer", timestamp="at"),
        "*": EmbeddedSource(str(log.path / "log.db")),
    }


def test_rows_of_the_table_that_a_younger_log_lacks_are_refused(
    reader: Reader, new_log: Callable[[str], Log]
) -> None:
    orders = some_orders(8)
    ordered = in_order(orders)
    log = new_log("log")
    log.create("orders", partitions=2)
    # Out of order, as logs are.
    log.write("orders", [*ordered[35:45], *ordered[30:35], *ordered[45:]], value=Order)
    with pytest.raises(OffsetOutOfRangeError, match="orders would be lost behind the boundary") as refused:
        plan_backfill(
            revenue(),
            sources=bounded(reader, log, orders),
            boundary=ordered[10][2],
            executor=reader.executor,
        )
    assert f"the table has some from {show_time(ordered[10][2])} on" in str(refused.value)
    assert f"the first record of the log is of {show_time(ordered[30][2])}" in str(refused.value)


def test_what_is_at_the_boundary_is_told_and_stays_with_the_result(
    reader: Reader,
    tmp_path: Path,
    new_log: Callable[[str], Log],
    caplog: pytest.LogCaptureFixture,
) -> None:
    orders = some_orders(8)
    last = in_order(orders)[-1][2]
    log = new_log("log")
    log.create("orders", "totals", partitions=2)
    boundary = datetime(2024, 3, 5, tzinfo=UTC)
    log.write(
        "orders", [(order.customer, order, milliseconds(boundary)) for order in orders[:10]], value=Order
    )
    given: dict[str, Any] = {
        "sources": bounded(reader, log, orders),
        "staging": tmp_path / "staging",
        "executor": reader.executor,
    }
    result = backfill(revenue(), boundary=boundary, **given)
    rows = f"60 rows, {show_time(in_order(orders)[0][2])} to {show_time(last)}"
    told = f"{rows}; log: 10 records from 2024-03-05T00:00:00Z"
    gap = f"the table ends at {show_time(last)}, 4 d before the boundary"
    assert f"Topic orders: table: {told}; boundary: 2024-03-05T00:00:00Z." in repr(result)
    assert f"Warning: Topic orders: {gap}" in repr(result)
    assert gap in caplog.text
    # The finished result is not taken for that of another boundary, or of other sources.
    with pytest.raises(ConfigError, match="begun with other settings") as refused:
        backfill(revenue(), boundary="2024-03-04", resume=True, **given)
    assert "boundary was 2024-03-05T00:00:00Z, now it is 2024-03-04T00:00:00Z" in str(refused.value)
    again = backfill(revenue(), boundary="2024-03-05", resume=True, **given)
    assert repr(again) == repr(result)


# What is refused


def planned(table: Any, executor: Executor | None = None, **columns: Any) -> Any:
    columns = {"key": "customer", "timestamp": "at", "partitions": 2, **columns}
    return plan_backfill(revenue(), sources={"orders": DataFrameSource(table, **columns)}, executor=executor)


def test_a_table_that_does_not_fit_is_refused(reader: Reader) -> None:
    table = table_of(some_orders(1))
    prices = table.column("price").cast(pa.float64())
    table = table.set_column(1, "price", prices).drop_columns(["items"])
    with pytest.raises(ConfigError) as refused:
        planned(reader.frame(table), reader.executor)
    assert "there is no column items, which Order needs" in str(refused.value)
    assert "column price is double, but the type wants Decimal" in str(refused.value)


def test_a_table_that_does_not_fit_is_not_read_by_spark(spark: Any, executor: SparkExecutor) -> None:
    never = sql.raise_error(sql.lit("this row was read")).cast("double")
    # Spark computes the columns of rows that it has in memory when it plans.
    frame = spark.createDataFrame(table_of(some_orders(1))).repartition(1).withColumn("price", never)
    with pytest.raises(ConfigError, match="column price is double, but the type wants Decimal"):
        planned(frame, executor)


def test_a_dataframe_of_spark_is_not_read_without_spark(spark: Any) -> None:
    with pytest.raises(ConfigError, match="orders comes from a table that Spark reads"):
        planned(spark.createDataFrame(table_of(some_orders(1))))


def test_the_number_of_partitions_must_be_known(reader: Reader) -> None:
    with pytest.raises(ConfigError, match="number of partitions of topic orders is not known"):
        planned(reader.frame(table_of(some_orders(1))), reader.executor, partitions=None)


def test_rows_that_cannot_be_records_are_counted(reader: Reader) -> None:
    columns = {"value": "customer", "partition": "part", "offset": "place"}
    places = [(None, 0, 0), (5, 7, 1), (5, None, 2), (5, 1, None), (-1, 1, 3)]
    times, parts, offsets = zip(*places, strict=True)
    table = pa.table(
        {
            "customer": pa.array([b"a"] * len(places), pa.binary()),
            "at": pa.array(times, pa.int64()),
            "part": pa.array(parts, pa.int32()),
            "place": pa.array(offsets, pa.int64()),
        }
    )
    with pytest.raises(ConfigError) as refused:
        planned(reader.frame(table), reader.executor, **columns)
    assert (
        "2 rows have no timestamp, or one before 1970; 1 rows have no partition; 1 rows have no offset; "
        "there are rows of the partitions 7, of 2"
    ) in str(refused.value)


def test_nulls_where_the_type_has_none_are_counted(reader: Reader) -> None:
    late = BEGIN + timedelta(minutes=20)
    rows = table_of(orders := some_orders(1)).to_pylist()
    for row in rows:
        row["price"] = None if row["at"] >= late else row["price"]
    lacking = sum(order.at >= milliseconds(late) for order in orders)
    with pytest.raises(ConfigError) as refused:
        planned(reader.frame(pa.Table.from_pylist(rows, ORDERS)), reader.executor)
    assert str(refused.value).splitlines()[2].endswith(f"{lacking} rows have no price, which cannot be null")


def test_an_offset_that_is_there_twice_is_refused(reader: Reader, tmp_path: Path) -> None:
    table = archived(history("word count", 3, 1)["lines"])
    again = table.filter(pc.equal(table.column("place"), 2))
    sources = {"lines": exact(reader.frame(pa.concat_tables([table, again])), partitions=1)}
    with pytest.raises(ConfigError, match="the table holds an offset of lines-0 twice"):
        backfill(word_count(), sources=sources, staging=tmp_path / "staging", executor=reader.executor)


def test_a_table_that_changes_while_spark_reads_it_is_noticed(
    spark: Any, executor: SparkExecutor, tmp_path: Path
) -> None:
    size = tmp_path / "size"
    size.write_text("3")

    def given(batches: Iterator[Any]) -> Iterator[Any]:
        for _ in batches:
            rows = int(size.read_text())
            columns = [pa.array([b"a"] * rows), pa.array(range(rows), pa.int64())]
            yield pa.record_batch(columns, ["customer", "at"])

    frame = mapped(spark.range(1), given, "customer binary, at bigint")
    source = DataFrameSource(frame, key="customer", value="customer", timestamp="at", partitions=1)
    plan = plan_backfill(revenue(), sources={"orders": source}, executor=executor)
    size.write_text("4")
    with pytest.raises(StateError, match="the table has changed while records of orders-0 were read"):
        run(plan, executor, str(tmp_path / "staging"))


def test_files_that_change_while_they_are_read_are_noticed(tmp_path: Path) -> None:
    table = pa.table({"word": pa.array([b"a"] * 4), "at": pa.array(range(4), pa.int64())})
    files = in_files(table, tmp_path / "table")
    sources = {"lines": DataFrameSource(files, value="word", timestamp="at", partitions=1)}
    plan = plan_backfill(word_count(), sources=sources)
    pq.write_table(table, tmp_path / "table" / "part-1.parquet")
    with pytest.raises(
        StateError, match="the table has changed while records of lines-0 were read"
    ) as raised:
        run(plan, InlineExecutor(), str(tmp_path / "staging"))
    assert "it had 4 of them when the backfill was planned, now it has 6" in str(raised.value)
