"""The rows of a DataFrame are the records of a topic: with the bytes, partitions and order that producers would have
given them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import functions as sql

from pystreams.app import App
from pystreams.backfill.api import backfill, plan_backfill
from pystreams.backfill.compute.driver import run
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.sources import DataFrameSource, EmbeddedSource, MemorySource
from pystreams.backfill.spark.arrow import mapped
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.errors import ConfigError, OffsetOutOfRangeError, StateError
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch
from pystreams.times import show_time
from tests.backfill.kit import everything
from tests.backfill.programs import history, word_count
from tests.backfill.twins import Twins
from tests.live.support import Line, Log, run_to_the_end

BEGIN = datetime(2024, 3, 1, tzinfo=UTC)


class Item(msgspec.Struct):
    name: str
    pieces: int


class Order(msgspec.Struct):
    customer: str
    price: Decimal
    at: int
    items: list[Item]
    labels: dict[str, str]
    note: str | None = None


def revenue(**settings: Any) -> App:
    """Pieces by item: with a repartition."""
    app = App("shop", statestore_cache_max_bytes=0, **settings)
    orders = app.stream("orders", key=str, value=Order)
    orders.group_by_key().count(name="orders-of")
    (
        orders.flat_map_values(lambda order: order.items)
        .select_key(lambda key, item: item.name, key=str)
        .group_by_key(value=Item)
        .aggregate(int, lambda total, item: total + item.pieces, value=int, name="pieces")
        .to_stream()
        .to("totals")
    )
    return app


def some_orders(seed: int, count: int = 60) -> list[Order]:
    chance = random.Random(seed)
    return [
        Order(
            customer=f"c{chance.randrange(9)}",
            price=Decimal(chance.randrange(10_000)) / 100,
            at=int(BEGIN.timestamp() * 1000) + chance.randrange(40) * 60_000,
            items=[Item(chance.choice("abc"), chance.randrange(1, 5)) for _ in range(chance.randrange(3))],
            labels={"by": chance.choice(["web", "phone"])},
            note=chance.choice([None, "gift"]),
        )
        for _ in range(count)
    ]


def frame_of(spark: Any, orders: list[Order]) -> Any:
    """The orders as a table, in any order."""
    rows = [
        (o.customer, o.price.quantize(Decimal("0.01")), BEGIN + timedelta(milliseconds=o.at - _ms(BEGIN)),
         [(i.name, i.pieces) for i in o.items], o.labels, o.note)
        for o in orders
    ]  # fmt: skip
    schema = (
        "customer string, price decimal(10,2), at timestamp, items array<struct<name: string, pieces: int>>, "
        "labels map<string, string>, note string"
    )
    return spark.createDataFrame(rows, schema)


def in_order(orders: list[Order]) -> list[tuple[str, Order, int]]:
    """As records, in the order that is promised: by timestamp, ties by the bytes of key and value."""
    encode = msgspec.json.encode
    for order in orders:
        order.price = order.price.quantize(Decimal("0.01"))
    ordered = sorted(orders, key=lambda order: (order.at, order.customer.encode(), encode(order)))
    return [(order.customer, order, order.at) for order in ordered]


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def test_rows_give_what_the_same_records_in_a_log_give(
    spark: Any, executor: SparkExecutor, tmp_path: Path, new_log: Callable[[str], Log]
) -> None:
    seed = 5
    orders = some_orders(seed)
    log = new_log("log")
    log.create("orders", "totals", partitions=3)
    log.write("orders", in_order(orders), value=Order)
    from_log = backfill(
        revenue(), sources=EmbeddedSource(str(log.path / "log.db")), staging=tmp_path / "log-staging"
    )
    source = DataFrameSource(frame_of(spark, orders), key="customer", timestamp="at")
    from_rows = backfill(
        revenue(),
        sources={"orders": source},
        staging=tmp_path / "staging",
        executor=executor,
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


def archived(spark: Any, partitions: Sequence[Sequence[Line]]) -> Any:
    """A topic's history as the rows of a table with offsets, in any order."""
    rows = [
        (line.key, line.value, line.timestamp, partition, offset)
        for partition, lines in enumerate(partitions)
        for offset, line in enumerate(lines)
    ]
    random.Random(3).shuffle(rows)
    return spark.createDataFrame(rows, "key binary, value binary, at bigint, part int, place bigint")


def test_with_offsets_a_live_application_goes_on_as_if_it_had_been_live(
    spark: Any, executor: SparkExecutor, tmp_path: Path, new_log: Callable[[str], Log]
) -> None:
    twins = Twins(new_log, seed=11)
    handed = twins.handed
    # The table has later records, too: the cut leaves them out.
    sources = {topic: exact(archived(spark, lines), partitions=2) for topic, lines in twins.past.items()}
    result = backfill(
        twins.app,
        sources=sources,
        staging=tmp_path / "staging",
        executor=executor,
        partitions={"sums": 2},
        until=twins.at,
    )
    hand_over(result, handed.broker, emit=True)
    twins.go_on_alike()


def test_holes_between_offsets_stay_where_they_are(
    spark: Any, executor: SparkExecutor, tmp_path: Path
) -> None:
    past = history("word count", 3, 2)
    times = sorted(line.timestamp for lines in past["lines"] for line in lines)
    frame = (
        archived(spark, past["lines"]).where("place % 3 <> 1").withColumn("place", sql.expr("place * 2 + 5"))
    )
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
    on_spark = backfill(
        word_count(), sources={"lines": exact(frame, partitions=2)}, staging=tmp_path / "spark",
        executor=executor, until=times[len(times) // 2],
    )  # fmt: skip
    assert [one for one in on_spark.manifest.inputs if one.start != 5] == []
    assert on_spark.manifest.inputs == inline.manifest.inputs
    assert everything(on_spark) == everything(inline)


# Tables whose records are in the log from a boundary on


def test_before_a_boundary_records_come_from_the_table_and_then_from_the_log(
    spark: Any, executor: SparkExecutor, tmp_path: Path, new_log: Callable[[str], Log]
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
    table = frame_of(spark, [order for _, order, _ in orders])
    result = backfill(
        app[log],
        sources={
            "orders": DataFrameSource(table, key="customer", timestamp="at"),
            "*": EmbeddedSource(str(log.path / "log.db")),
        },
        boundary=boundary,
        staging=tmp_path / "staging",
        executor=executor,
        partitions={"totals": 2},
    )
    hand_over(result, log.broker, emit=True)
    for one in (log, live):
        one.write("orders", later, value=Order)
        run_to_the_end(one, app[one])
    assert log.table("totals") == live.table("totals")
    assert len(log.read("totals")) == len(live.read("totals"))


def test_a_log_that_begins_after_the_boundary_is_refused(
    spark: Any, executor: SparkExecutor, new_log: Callable[[str], Log]
) -> None:
    log = new_log("log")
    log.create("orders", partitions=1)
    log.write("orders", in_order(some_orders(8)), value=Order)
    log.admin.delete_records({TopicPartition("orders", 0): 5})
    sources = {
        "orders": DataFrameSource(frame_of(spark, some_orders(8)), key="customer", timestamp="at"),
        "*": EmbeddedSource(str(log.path / "log.db")),
    }
    with pytest.raises(
        OffsetOutOfRangeError, match="may have lost records of orders-0 after the boundary"
    ) as refused:
        plan_backfill(revenue(), sources=sources, boundary=_ms(BEGIN), executor=executor)
    assert str(refused.value).endswith(
        "so retention may have deleted others from after the boundary\n"
        "  next: choose a boundary that is later than the first record of the log"
    )


def bounded(spark: Any, log: Log, orders: list[Order]) -> dict[str, Any]:
    return {
        "orders": DataFrameSource(frame_of(spark, orders), key="customer", timestamp="at"),
        "*": EmbeddedSource(str(log.path / "log.db")),
    }


def test_rows_of_the_table_that_a_younger_log_lacks_are_refused(
    spark: Any, executor: SparkExecutor, new_log: Callable[[str], Log]
) -> None:
    orders = some_orders(8)
    ordered = in_order(orders)
    log = new_log("log")
    log.create("orders", partitions=2)
    # Out of order, as logs are.
    log.write("orders", [*ordered[35:45], *ordered[30:35], *ordered[45:]], value=Order)
    with pytest.raises(OffsetOutOfRangeError, match="orders would be lost behind the boundary") as refused:
        plan_backfill(
            revenue(), sources=bounded(spark, log, orders), boundary=ordered[10][2], executor=executor
        )
    assert f"the table has some from {show_time(ordered[10][2])} on" in str(refused.value)
    assert f"the first record of the log is of {show_time(ordered[30][2])}" in str(refused.value)


def test_what_is_at_the_boundary_is_told_and_stays_with_the_result(
    spark: Any,
    executor: SparkExecutor,
    tmp_path: Path,
    new_log: Callable[[str], Log],
    caplog: pytest.LogCaptureFixture,
) -> None:
    orders = some_orders(8)
    last = in_order(orders)[-1][2]
    log = new_log("log")
    log.create("orders", "totals", partitions=2)
    boundary = datetime(2024, 3, 5, tzinfo=UTC)
    log.write("orders", [(order.customer, order, _ms(boundary)) for order in orders[:10]], value=Order)
    given: dict[str, Any] = {
        "sources": bounded(spark, log, orders),
        "staging": tmp_path / "staging",
        "executor": executor,
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


def planned(spark: Any, frame: Any, executor: Any = None, **columns: Any) -> Any:
    columns = {"key": "customer", "timestamp": "at", "partitions": 2, **columns}
    return plan_backfill(revenue(), sources={"orders": DataFrameSource(frame, **columns)}, executor=executor)


def test_a_table_that_does_not_fit_is_refused_before_it_is_read(spark: Any, executor: SparkExecutor) -> None:
    never = sql.raise_error(sql.lit("this row was read")).cast("double")
    frame = frame_of(spark, some_orders(1)).withColumn("price", never).drop("items")
    with pytest.raises(ConfigError) as refused:
        planned(spark, frame, executor)
    assert "there is no column items, which Order needs" in str(refused.value)
    assert "column price is double, but the type wants Decimal" in str(refused.value)


def test_a_table_is_not_read_without_spark(spark: Any) -> None:
    with pytest.raises(ConfigError, match="orders comes from a table that Spark reads"):
        planned(spark, frame_of(spark, some_orders(1)))


def test_the_number_of_partitions_must_be_known(spark: Any, executor: SparkExecutor) -> None:
    with pytest.raises(ConfigError, match="number of partitions of topic orders is not known"):
        planned(spark, frame_of(spark, some_orders(1)), executor, partitions=None)


def test_rows_that_cannot_be_records_are_counted(spark: Any, executor: SparkExecutor) -> None:
    columns = {"value": "customer", "partition": "part", "offset": "place"}
    rows = [(b"a", *one) for one in [(None, 0, 0), (5, 7, 1), (5, None, 2), (5, 1, None), (-1, 1, 3)]]
    frame = spark.createDataFrame(rows, "customer binary, at bigint, part int, place bigint")
    with pytest.raises(ConfigError) as refused:
        planned(spark, frame, executor, **columns)
    assert (
        "2 rows have no timestamp, or one before 1970; 1 rows have no partition; 1 rows have no offset; "
        "there are rows of the partitions 7, of 2"
    ) in str(refused.value)


def test_nulls_where_the_type_has_none_are_counted(spark: Any, executor: SparkExecutor) -> None:
    late = BEGIN + timedelta(minutes=20)
    frame = frame_of(spark, orders := some_orders(1)).withColumn(
        "price", sql.when(sql.col("at") >= late, None).otherwise(sql.col("price"))
    )
    lacking = sum(order.at >= _ms(late) for order in orders)
    with pytest.raises(ConfigError) as refused:
        planned(spark, frame, executor)
    assert str(refused.value).splitlines()[2].endswith(f"{lacking} rows have no price, which cannot be null")


def test_an_offset_that_is_there_twice_is_refused(
    spark: Any, executor: SparkExecutor, tmp_path: Path
) -> None:
    frame = archived(spark, history("word count", 3, 1)["lines"])
    sources = {"lines": exact(frame.unionAll(frame.where("place = 2")), partitions=1)}
    with pytest.raises(ConfigError, match="the table holds an offset of lines-0 twice"):
        backfill(word_count(), sources=sources, staging=tmp_path / "staging", executor=executor)


def test_a_table_that_changes_while_it_is_read_is_noticed(
    spark: Any, executor: SparkExecutor, tmp_path: Path
) -> None:
    size = tmp_path / "size"
    size.write_text("3")

    def rows(batches: Iterator[Any]) -> Iterator[Any]:
        for _ in batches:
            count = int(size.read_text())
            columns = [pa.array([b"a"] * count), pa.array(range(count), pa.int64())]
            yield pa.record_batch(columns, ["customer", "at"])

    frame = mapped(spark.range(1), rows, "customer binary, at bigint")
    source = DataFrameSource(frame, key="customer", value="customer", timestamp="at", partitions=1)
    plan = plan_backfill(revenue(), sources={"orders": source}, executor=executor)
    size.write_text("4")
    with pytest.raises(StateError, match="the table has changed while records of orders-0 were read"):
        run(plan, executor, str(tmp_path / "staging"))
