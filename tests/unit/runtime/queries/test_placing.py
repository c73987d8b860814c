"""What is not found here is absent only where it could be nowhere else; else it is told where it may be."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pystreams import App, Windowed
from pystreams.dsl.builder import build_topology
from pystreams.errors import StateError
from pystreams.ids import TaskId, TopicPartition
from pystreams.partitioning import partition_for_key
from pystreams.runtime.queries.placing import Found, Placing, placing
from pystreams.serde.primitives import StrSerde

#: By the default partitioner, of four.
KEY, PARTITION = "k1", partition_for_key(b"k1", 4)
OTHERS = {0, 1, 2, 3} - {PARTITION}


def placed(app: App, store: str = "s", **options: object) -> Placing:
    built = build_topology(app, app.config)
    inputs = {TaskId(sub.id, number): [] for sub in built.subtopologies for number in range(4)}
    return placing(built, store, inputs, **options)


def repartitioned(**how: object) -> Placing:
    app = App("a")
    stream = app.stream("in", key=str, value=int).select_key(lambda _, value: str(value), key=str)
    stream.repartition(**how).group_by_key().count(name="s")
    return placed(app)


def grouped() -> Placing:
    app = App("a")
    app.stream("in", key=str, value=int).group_by(lambda _, value: str(value), key=str).count(name="s")
    return placed(app)


def of_a_topic(**options: object) -> Placing:
    app = App("a")
    app.table("in", key=str, value=int, name="s")
    return placed(app, **options)


def told(one: Placing, found: Found, key: object = KEY) -> str:
    with pytest.raises(StateError) as error:
        one.require_absent(key, found)
    return str(error.value)


@pytest.mark.parametrize("one", [grouped(), of_a_topic()])
def test_who_has_all_partitions_knows(one: Placing) -> None:
    one.require_absent(KEY, Found(here={0, 1, 2, 3}))


@pytest.mark.parametrize(
    "one",
    [grouped(), repartitioned(), of_a_topic(partitioner=partition_for_key)],
    ids=["grouped", "by hand", "said"],
)
def test_where_keys_are_spread_by_default_the_partition_decides(one: Placing) -> None:
    one.require_absent(KEY, Found(here={PARTITION}))
    elsewhere = told(one, Found(here=OTHERS, owners={PARTITION: "a-thread"}))
    assert f"partition {PARTITION} is assigned to a-thread" in elsewhere
    assert f"partition {PARTITION} is being restored here" in told(
        one, Found(here=OTHERS, arriving={PARTITION})
    )
    assert f"partition {PARTITION} is not assigned" in told(
        one, Found(here=OTHERS, owners={0: "x"} if PARTITION else {1: "x"})
    )


def test_a_leader_of_before_does_not_say_who_has_what() -> None:
    assert f"partition {PARTITION} is in another process" in told(grouped(), Found(here=OTHERS))


@pytest.mark.parametrize(
    "one",
    [of_a_topic(), repartitioned(partitioner=lambda topic, key, value, count: 0)],
    ids=["another's topic", "a partitioner"],
)
def test_where_it_is_not_known_how_keys_are_spread_any_partition_may_have_one(one: Placing) -> None:
    error = told(one, Found(here={PARTITION}, owners=dict.fromkeys(OTHERS, "a-thread")))
    assert all(f"partition {other} is assigned to a-thread" in error for other in OTHERS)
    assert f"the default partitioner would give partition {PARTITION}" in error


def test_a_key_is_placed_by_the_bytes_that_a_key_has_in_a_topic() -> None:
    """As a key, a dictionary has its fields in order; as a value, it has them as they come."""
    app = App("a")
    counted = app.stream("in", key=str, value=int).group_by(lambda _, value: {"n": value}, key=dict[str, int])
    counted.count(name="s")
    for number in range(20):
        key = {"b": number, "a": 0}
        expected = partition_for_key(b'{"a":0,"b":%d}' % number, 4)
        assert placed(app).likely_partition(key) == expected


def test_a_key_is_serialized_for_the_topic_that_brings_it() -> None:
    """A serde with a schema registry would register a schema for another one."""
    topics: list[str] = []

    class Noted(StrSerde):
        def key_serializer(self, topic: str) -> Callable[[str], bytes]:
            topics.append(topic)
            return super().key_serializer(topic)

    app = App("a")
    app.stream("in", key=str, value=int).group_by(lambda _, value: str(value), key=Noted()).count(name="s")
    built = build_topology(app, app.config)
    task = TaskId(1, 0)
    inputs = {task: [TopicPartition("a-s-repartition", 0)]}
    assert placing(built, "s", inputs).likely_partition(KEY) == 0
    assert topics == ["a-s-repartition"]


def test_what_a_processor_writes_may_be_under_any_key() -> None:
    app = App("a")
    stream = app.stream("in", key=str, value=int).group_by(lambda _, value: str(value), key=str)
    stream.count(name="s").to_stream().process(lambda: None, stores="s")
    assert placed(app).partitioner is None


@pytest.mark.parametrize("key", [None, Windowed("k1", 0, 1), 7])
def test_a_key_that_cannot_be_written_as_one_of_the_store_is_in_no_partition(key: object) -> None:
    assert "another process may have it" in told(grouped(), Found(here=OTHERS), key)
    assert "is not in this process now" in told(grouped(), Found(), key)
