"""A foreign-key join follows the changes of both tables, and finds other rows when the foreign key changes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pystreams import KTable, StreamsBuilder, TopologyError, ValueTransformer
from pystreams.processor import FixedKeyProcessor, ProcessorContext, PunctuationType
from pystreams.record import Record
from pystreams.testing import TopologyTestDriver

#: (topic, key, value, timestamp). An order's value is "customer|amount".
Change = tuple[str, str, str | None, int]


def customer_of(order: str) -> str | None:
    return order.split("|", maxsplit=1)[0] or None


def join_to_out(
    orders: KTable[str, str], customers: KTable[str, str], method: str = "join", **given: Any
) -> None:
    given = {"foreign_key": customer_of, "value": str, **given}
    getattr(orders, method)(customers, lambda one, two: f"{one}+{two}", **given).to_stream().to("out")


def joined(method: str = "join", **given: Any) -> StreamsBuilder:
    builder = StreamsBuilder()
    orders, customers = (builder.table(name, key=str, value=str) for name in ("orders", "customers"))
    join_to_out(orders, customers, method, **given)
    return builder


def results(builder: StreamsBuilder, *changes: Change) -> list[tuple[str, Any, int]]:
    """(key, value, timestamp) of what comes out."""
    with TopologyTestDriver(builder, {"statestore_cache_max_bytes": 0}) as driver:
        out = driver.create_output_topic("out", key=str, value=str)
        for topic, key, value, timestamp in changes:
            driver.create_input_topic(topic, key=str, value=str).pipe_input(key, value, timestamp=timestamp)
        records: list[Record[str, str]] = out.read_records()
        return [(record.key, record.value, record.timestamp) for record in records]


def test_all_rows_that_refer_to_a_row_follow_it() -> None:
    changes: list[Change] = [
        ("orders", "o1", "ann|1", 1),
        ("orders", "o2", "ann|2", 2),
        ("orders", "o3", "bob|3", 3),
        ("customers", "ann", "Ann", 9),
    ]
    assert results(joined(), *changes) == [("o1", "ann|1+Ann", 9), ("o2", "ann|2+Ann", 9)]


def test_the_time_of_a_result_is_the_later_one_where_a_row_asks() -> None:
    assert results(joined(), ("customers", "ann", "Ann", 9), ("orders", "o1", "ann|1", 1)) == [
        ("o1", "ann|1+Ann", 9)
    ]


def test_a_changed_foreign_key_finds_another_row_or_none() -> None:
    changes: list[Change] = [
        ("customers", "ann", "Ann", 1),
        ("orders", "o1", "ann|1", 2),
        ("orders", "o1", "bob|1", 3),
        ("customers", "ann", "Anna", 4),
        ("customers", "bob", "Bob", 5),
    ]
    assert results(joined(), *changes) == [
        ("o1", "ann|1+Ann", 2),
        ("o1", None, 3),
        ("o1", "bob|1+Bob", 5),
    ]


def test_a_row_without_a_foreign_key_is_dropped_by_an_inner_join_and_kept_by_a_left_one() -> None:
    assert results(joined(), ("orders", "o1", "|1", 1)) == []
    assert results(joined("left_join"), ("orders", "o1", "|1", 1)) == [("o1", "|1+None", 1)]


def test_a_left_join_has_every_row_of_the_left_table() -> None:
    changes: list[Change] = [
        ("orders", "o1", "ann|1", 1),
        ("customers", "ann", "Ann", 2),
        ("customers", "ann", None, 3),
        ("orders", "o1", None, 4),
    ]
    assert results(joined("left_join"), *changes) == [
        ("o1", "ann|1+None", 1),
        ("o1", "ann|1+Ann", 2),
        ("o1", "ann|1+None", 3),
        ("o1", None, 4),
    ]


def test_functions_may_take_the_key() -> None:
    builder = StreamsBuilder()
    orders, customers = (builder.table(name, key=str, value=str) for name in ("orders", "customers"))
    orders.join(
        customers,
        lambda key, order, name: f"{key}:{order}:{name}",
        foreign_key=lambda key, order: key[:3],
        value=str,
    ).to_stream().to("out")
    assert results(builder, ("customers", "ann", "Ann", 1), ("orders", "ann7", "x", 2)) == [
        ("ann7", "ann7:x:Ann", 2)
    ]


def test_a_table_may_be_joined_with_itself() -> None:
    builder = StreamsBuilder()
    people = builder.table("people", key=str, value=str)
    people.join(
        people, lambda one, two: f"{one}+{two}", foreign_key=lambda boss: boss, value=str
    ).to_stream().to("out")
    assert results(builder, ("people", "ann", "bob", 1), ("people", "bob", "eve", 2)) == [
        ("ann", "bob+eve", 2)
    ]


def steps_of(text: str) -> list[Any]:
    """Several values at once; a hyphen is a deletion."""
    return [None if step == "-" else step for step in text.split(",")]


def test_a_row_that_changes_twice_at_once_does_not_keep_its_old_result() -> None:
    """Deleted and set anew before the answer to its deletion: Kafka Streams drops the answer, and the result stays."""
    builder = StreamsBuilder()
    steps = builder.stream("orders", key=str, value=str).flat_map_values(steps_of, value=str)
    orders = steps.to_table(cached=False)
    customers = builder.table("customers", key=str, value=str)
    join_to_out(orders, customers)
    for later in ("-,nobody|1", "-,|1", "|1,nobody|1", "nobody|1,nobody|2"):
        found = results(
            builder, ("customers", "ann", "Ann", 1), ("orders", "o1", "ann|1", 2), ("orders", "o1", later, 3)
        )
        assert found[0] == ("o1", "ann|1+Ann", 2)
        assert found[-1] == ("o1", None, 3), later


def test_a_row_whose_record_deletes_what_it_is_joined_with_does_not_keep_its_old_result() -> None:
    """Both tables come from one topic: Kafka Streams drops the answer to the change of before, and the result stays."""
    builder = StreamsBuilder()
    orders = builder.table("orders", key=str, value=str)
    totals = orders.group_by(lambda key, value: (key, value), key=str, value=str).aggregate(
        str, lambda total, value: None if value == "c" else total + value, lambda total, _: total, value=str
    )
    joined = orders.join(totals, lambda left, right: f"{left}+{right}", foreign_key=lambda key, _: key)
    joined.to_stream().to("out")
    assert results(builder, ("orders", "a", "a", 31), ("orders", "a", "c", 130)) == [
        ("a", "a+a", 31),
        ("a", None, 130),
    ]


class NobodyIfGone(ValueTransformer[str, str, str]):
    def transform(self, key: str, value: str | None) -> str:
        return "nobody|0" if value is None else value


def test_a_row_whose_time_nobody_knows_asks_again_with_that_of_the_answer() -> None:
    """A transformer makes a row of one that is not there."""
    builder = StreamsBuilder()
    steps = builder.stream("orders", key=str, value=str).flat_map_values(steps_of, value=str)
    orders = steps.to_table(cached=False).transform_values(NobodyIfGone, value=str)
    customers = builder.table("customers", key=str, value=str)
    join_to_out(orders, customers)
    found = results(
        builder,
        ("customers", "ann", "Ann", 1),
        ("orders", "o1", "ann|1", 2),
        ("orders", "o1", "nobody|1,-", 3),
    )
    assert found[-1] == ("o1", None, 3)


def test_a_row_that_its_table_has_forgotten_loses_its_result_with_the_row_that_it_found() -> None:
    """Kafka Streams drops the answer to a row that is not there, and the result stays."""
    builder = StreamsBuilder()
    orders = builder.table("orders", key=str, value=str, persistent=False, max_entries=1)
    customers = builder.table("customers", key=str, value=str)
    join_to_out(orders, customers)
    found = results(
        builder,
        ("orders", "o1", "ann|1", 1),
        ("customers", "ann", "Ann", 2),
        ("orders", "o2", "bob|2", 3),
        ("customers", "ann", None, 4),
    )
    assert found == [("o1", "ann|1+Ann", 2), ("o1", None, 4)]


def test_a_right_table_of_bounded_size_gives_the_rows_that_it_has() -> None:
    """In Kafka Streams its cache still gives those that it has forgotten."""
    builder = StreamsBuilder()
    orders = builder.table("orders", key=str, value=str)
    customers = builder.table("customers", key=str, value=str, persistent=False, max_entries=1)
    join_to_out(orders, customers)
    with TopologyTestDriver(builder) as driver:
        changes = [
            ("customers", "ann", "Ann"),
            ("customers", "bob", "Bob"),
            ("orders", "o1", "ann|1"),
            ("orders", "o2", "bob|2"),
        ]
        for time, (topic, key, value) in enumerate(changes):
            driver.create_input_topic(topic, key=str, value=str).pipe_input(key, value, timestamp=time)
        out = driver.create_output_topic("out", key=str, value=str)
        assert out.read_key_values() == [("o2", "bob|2+Bob")]


@pytest.mark.parametrize("persistent", [True, False])
def test_its_subscriptions_are_kept_where_its_rows_are(persistent: bool) -> None:
    """In Java the setting dsl.store.suppliers.class decides."""
    stores = joined(persistent=persistent, name="rows").build().stores.values()
    kept = {store.persistent for store in stores if "SUBSCRIPTION" in store.name or store.name == "rows"}
    assert kept == {persistent}
    assert len([store for store in stores if "SUBSCRIPTION" in store.name]) == 1


class AtOnce(FixedKeyProcessor[str, str, str]):
    """Hands records on from a punctuator."""

    def init(self, context: ProcessorContext[str, str]) -> None:
        super().init(context)
        self.waiting: list[Record[str, str]] = []
        context.schedule(10, PunctuationType.WALL_CLOCK_TIME, self.forward)

    def process(self, record: Record[str, str]) -> None:
        self.waiting.append(record)

    def forward(self, _time: int) -> None:
        for record in self.waiting:
            self.context.forward(record)


def test_rows_that_a_punctuator_has_forwarded_ask_from_the_tasks_partition() -> None:
    """In Java they ask from partition -1, to which no answer can be written."""
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=str, value=str).process_values(AtOnce, value=str).to_table()
    customers = builder.table("customers", key=str, value=str)
    join_to_out(orders, customers)
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("customers", key=str, value=str).pipe_input("ann", "Ann", timestamp=1)
        driver.create_input_topic("orders", key=str, value=str).pipe_input("o1", "ann|1", timestamp=2)
        driver.advance_wall_clock_time(10)
        (topic,) = (name for name in driver.produced_topics if "REGISTRATION" in name)
        (asked,) = driver.read_raw(topic)
        assert asked.value is not None
        assert asked.value[-4:] == bytes(4)
        out = driver.create_output_topic("out", key=str, value=str)
        assert out.read_key_values() == [("o1", "ann|1+Ann")]


def test_a_named_join_can_be_queried() -> None:
    with TopologyTestDriver(joined(name="rows")) as driver:
        driver.create_input_topic("customers", key=str, value=str).pipe_input("ann", "Ann", timestamp=1)
        driver.create_input_topic("orders", key=str, value=str).pipe_input("o1", "ann|1", timestamp=2)
        assert driver.store("rows").get("o1") == ("ann|1+Ann", 2)


@pytest.mark.parametrize(
    ("other", "given", "complaint"),
    [
        ("customers", {}, "takes a table, not str"),
        (None, {"foreign_key": None, "partitioner": lambda t, k, v, n: 0}, "are for joins by a foreign key"),
        (None, {"foreign_key": lambda a, b, c: a}, "foreign_key of .* takes 3 arguments"),
        (None, {"partitioner": lambda topic: 0}, "partitioner of join"),
    ],
)
def test_what_makes_no_sense_is_refused(other: Any, given: dict[str, Any], complaint: str) -> None:
    builder = StreamsBuilder()
    orders, customers = (builder.table(name, key=str, value=str) for name in ("orders", "customers"))
    join: Any = orders.join
    with pytest.raises(TopologyError) as refused:
        join(other or customers, lambda one, two: one, **{"foreign_key": customer_of, **given})
    assert re.search(complaint, str(refused.value))


def test_tables_of_two_builders_do_not_meet() -> None:
    one, other = (StreamsBuilder().table("t", key=str, value=str) for _ in range(2))
    with pytest.raises(TopologyError, match="belong to different builders"):
        one.join(other, lambda a, b: a, foreign_key=customer_of)
