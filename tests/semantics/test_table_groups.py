"""An aggregated table subtracts a row from its old group before it adds it to the new one."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from pystreams import Processor, Record, StreamsBuilder
from pystreams.engine.processors.same_key import same_key
from pystreams.errors import ProcessingError
from pystreams.serde import JsonSerde
from pystreams.testing import TopologyTestDriver


def test_a_row_that_moves_leaves_its_old_group_first() -> None:
    builder = StreamsBuilder()
    table = builder.table("in", key=str, value=str)
    table.group_by(lambda key, value: (value, key), key=str, value=str).count().to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_key_values(
            [("a", "red"), ("b", "red"), ("a", "blue"), ("b", None)]
        )
        assert driver.create_output_topic("out", key=str, value=int).read_key_values() == [
            ("red", 1),
            ("red", 2),
            ("red", 1),
            ("blue", 1),
            ("red", 0),
        ]


def test_a_change_within_a_group_is_one_record_with_both_values() -> None:
    builder = StreamsBuilder()
    table = builder.table("in", key=str, value=str)
    group = table.group_by(lambda key, value: (value[0], value), key=str, value=str)
    group.reduce(lambda one, two: f"{one}+{two}", lambda one, two: f"{one}-{two}", name="g")
    with TopologyTestDriver(builder, {"application_id": "app"}) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_key_values([("a", "x1"), ("a", "x2")])
        values = [record.value for record in driver.read_raw("app-g-repartition")]
        assert values == [b"x1\x01", b"\x04x2x1\x02"]
        assert driver.store("g").get("x")[0] == "x1-x1+x2"


def test_a_group_keeps_the_greatest_timestamp() -> None:
    builder = StreamsBuilder()
    table = builder.table("in", key=str, value=str)
    table.group_by(lambda key, value: ("all", value), key=str, value=str).count().to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        topic.pipe_input("a", "x", timestamp=10)
        topic.pipe_input("b", "x", timestamp=5)
        records = driver.create_output_topic("out", key=str, value=int).read_records()
        assert [(record.value, record.timestamp) for record in records] == [(1, 10), (2, 10)]


def test_null_keys_and_values_of_the_mapper_leave_that_half_out() -> None:
    builder = StreamsBuilder()
    table = builder.table("in", key=str, value=str)
    grouped = table.group_by(lambda key, value: (value or None, key), key=str, value=str)
    grouped.count().to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_key_values(
            [("a", ""), ("a", "red"), ("a", "")]
        )
        out = driver.create_output_topic("out", key=str, value=int)
        assert out.read_key_values() == [("red", 1), ("red", 0)]


class Place(msgspec.Struct):
    x: Any


class Tuned(msgspec.Struct, repr_omit_defaults=True):
    x: int = 0


#: Equal in Python, and written as other bytes.
EQUAL_KEYS: list[tuple[Any, Any]] = [
    (1, True),
    (0, False),
    (1, 1.0),
    (0.0, -0.0),
    ([1, "a"], [True, "a"]),
    ({"x": 1}, {"x": 1.0}),
    ({"x": {"y": 0.0}}, {"x": {"y": -0.0}}),
]


@pytest.mark.parametrize("old, new", EQUAL_KEYS + [(new, old) for old, new in EQUAL_KEYS], ids=str)
def test_a_row_moves_between_groups_that_only_python_takes_for_one(old: Any, new: Any) -> None:
    builder = StreamsBuilder()
    table = builder.table("in", key=str, value=str)
    groups = {"old": old, "new": new}
    counts = table.group_by(lambda value: (groups[value], 7), key=JsonSerde(Any), value=int).reduce(
        lambda one, two: one + two, lambda one, two: one - two, name="sums"
    )
    counts.to_stream().to("out")
    encode = JsonSerde(Any).key_serializer("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_key_values([("a", "old"), ("a", "new")])
        sums = {record.key: record.value for record in driver.read_raw("out")}
        seven, nothing = (7).to_bytes(8), (0).to_bytes(8)
        assert sums == {encode(old): nothing, encode(new): seven}
    assert old == new


@pytest.mark.parametrize(
    "one, other, same",
    [
        ("a", "a", True),
        ("a", "b", False),
        (1, 1, True),
        (1.5, 1.5, True),
        (float("inf"), float("inf"), True),
        ((1, "a"), (1, "a"), True),
        (Place(1), Place(1), True),
        (Place(1), Place(True), False),
        (Tuned(), Tuned(0), True),
        (Decimal("1.0"), Decimal("1.00"), False),
        (b"a", "a", False),
    ],
)
def test_keys_are_the_same_if_they_are_equal_and_look_it(one: Any, other: Any, same: bool) -> None:
    assert same_key(one, other) == same


def test_what_is_the_same_object_is_the_same_key() -> None:
    nan = float("nan")
    assert same_key(nan, nan)


class Renaming(Processor[Any, str, Any, str]):
    """Forwards a key that is only equal."""

    def process(self, record: Record[Any, str]) -> None:
        self.context.forward(record)
        self.context.forward(Record(True, record.value, record.timestamp))


def test_a_key_that_is_only_equal_is_another_one_where_keys_are_kept() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", key=JsonSerde(Any), value=str)
    stream.process_values(Renaming, value=str).to("out")
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("in", key=JsonSerde(Any), value=str)
        with pytest.raises(ProcessingError, match="changed the key"):
            topic.pipe_input(1, "x")
