"""Sinks write each record to the topic and the partitions that are chosen for it."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams.dsl.operators.stateless import MapValues, SelectKey
from pystreams.errors import ProcessingError, ProductionError
from pystreams.handlers import ErrorContext, Response
from pystreams.partitioning import partition_for_key
from pystreams.serde import FLOAT32, INT, STR, TimeWindowedSerde
from pystreams.testing.producer import MemoryProducer
from pystreams.topology.nodes import Node
from pystreams.windowed import Windowed
from tests.unit.engine.task_kit import Harness, fn, sink, source, step


def partitions(harness: Harness) -> list[int | None]:
    return [record.partition for record in harness.producer.records]


def test_the_producer_chooses_the_partition_by_default() -> None:
    harness = Harness([source(), sink("source")])
    harness.run(("k", "a", 1))
    assert partitions(harness) == [None]


@pytest.mark.parametrize(
    "choice, expected",
    [(2, [2]), ((3, 1), [3, 1]), ({1}, [1]), ([1, 1], [1]), (None, [None]), ((), [])],
    ids=["one", "several", "set", "twice", "default", "none"],
)
def test_a_partitioner_may_choose_any_number_of_partitions(choice: Any, expected: list[int | None]) -> None:
    asked: list[Any] = []

    def partitioner(topic: str, key: Any, value: Any, count: int) -> Any:
        asked.append((topic, key, value, count))
        return choice

    harness = Harness([source(), sink("source", partitioner=partitioner)], partition_count=4)
    harness.run(("k", "a", 1))
    assert asked == [("out", "k", "a", 4)]
    assert partitions(harness) == expected
    assert harness.dropped() == (0 if expected else 1)


def test_a_partition_that_does_not_exist_is_an_error() -> None:
    harness = Harness([source(), sink("source", partitioner=lambda *_: 4)], partition_count=4)
    harness.feed(("k", "a", 1))
    with pytest.raises(ProductionError, match="partitions 0 to 3"):
        harness.process()


def test_windowed_keys_go_where_their_inner_keys_go() -> None:
    nodes: list[Node] = [
        source(),
        step("window", "source", SelectKey(fn(lambda key, value: Windowed(key, 5, 15)))),
        sink("window", key=TimeWindowedSerde(STR, 10)),
    ]
    harness = Harness(nodes, partition_count=7)
    harness.run(("a", "x", 1), ("b", "y", 2))
    assert partitions(harness) == [partition_for_key(b"a", 7), partition_for_key(b"b", 7)]


def test_a_topic_may_be_chosen_for_each_record() -> None:
    harness = Harness([source(), sink("source", None, chooser=lambda key, value: f"to-{key}")])
    harness.run(("a", "x", 1), ("b", "y", 2), ("a", "z", 3))
    assert harness.values("to-a") == ["x", "z"]
    assert harness.values("to-b") == ["y"]


@pytest.mark.parametrize("chooser", [lambda value: None, lambda value: 1 / 0], ids=["gives-none", "raises"])
def test_a_topic_chooser_that_fails_is_a_matter_of_the_processing_handler(chooser: Any) -> None:
    harness = Harness([source(), sink("source", None, chooser=chooser)])
    harness.feed(("k", "a", 1))
    with pytest.raises(ProcessingError, match="step sink raised") as caught:
        harness.process()
    assert "test_sinks.py" in caught.value.where
    going_on = Harness(
        [source(), sink("source", None, chooser=chooser)], processing_exception_handler="continue"
    )
    going_on.run(("k", "a", 1))
    assert going_on.dropped() == 1


@pytest.mark.parametrize("partitioner", [None, lambda *_: 0], ids=["plain", "partitioner"])
def test_a_value_that_cannot_be_serialized_is_a_matter_of_the_production_handler(partitioner: Any) -> None:
    nodes = [source(), sink("source", value=INT, partitioner=partitioner), sink("source", "all", name="all")]
    harness = Harness(nodes)
    harness.feed(("k", "a", 1))
    with pytest.raises(ProductionError, match="topic out cannot be serialized") as caught:
        harness.process()
    assert "in-0 offset 0" in str(caught.value)
    contexts: list[ErrorContext] = []

    def handler(context: ErrorContext) -> Response:
        contexts.append(context)
        return Response.CONTINUE

    going_on = Harness(nodes, production_exception_handler=handler)
    going_on.run(("k", "a", 1))
    assert going_on.values("all") == ["a"]
    assert (contexts[0].step, contexts[0].key, contexts[0].value) == ("sink", "k", "a")


@pytest.mark.parametrize(("serde", "value"), [(STR, "\ud800"), (FLOAT32, 3.5e38)], ids=["half", "great"])
def test_a_value_that_java_would_write_as_another_is_a_matter_of_the_production_handler(
    serde: Any, value: Any
) -> None:
    """Java writes a question mark for half a character, and infinity for what is too great."""
    nodes = [source(), step("made", "source", MapValues(fn(lambda text: value))), sink("made", value=serde)]
    stopping = Harness(nodes)
    stopping.feed(("k", "a", 1))
    with pytest.raises(ProductionError, match="topic out cannot be serialized"):
        stopping.process()
    going_on = Harness(nodes, production_exception_handler="continue")
    going_on.run(("k", "a", 1))
    assert going_on.producer.records == []
    assert going_on.dropped() == 1


class Refusing(MemoryProducer):
    """Takes no value of more than 3 bytes."""

    def send(self, topic: str, partition: Any, key: Any, value: Any, timestamp: int, headers: Any) -> None:
        if len(value) > 3:
            raise ProductionError("too large")
        super().send(topic, partition, key, value, timestamp, headers)


def test_a_record_that_the_producer_refuses_is_a_matter_of_the_production_handler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.unit.engine.task_kit.MemoryProducer", Refusing)
    stopping = Harness([source(), sink("source")])
    stopping.feed(("k", "abcd", 1))
    with pytest.raises(ProductionError, match="too large"):
        stopping.process()
    going_on = Harness([source(), sink("source")], production_exception_handler="continue")
    going_on.run(("k", "abcd", 1), ("k", "abc", 2))
    assert going_on.values() == ["abc"]
    assert going_on.dropped() == 1
