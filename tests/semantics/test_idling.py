"""With max_task_idle_ms a task waits for an empty partition, so that records are processed in order of time."""

from __future__ import annotations

import pytest

from pystreams import StreamsBuilder
from pystreams.testing import InputTopic, OutputTopic, TopologyTestDriver

Topics = tuple[TopologyTestDriver, InputTopic[str, str], InputTopic[str, str], OutputTopic[str, str]]


@pytest.fixture
def topics():
    builder = StreamsBuilder()
    one, two = (builder.stream(topic, key=str, value=str) for topic in ("one", "two"))
    one.merge(two).to("out")
    with TopologyTestDriver(builder, {"max_task_idle_ms": 50}, initial_wall_clock=0) as driver:
        inputs = (driver.create_input_topic(topic, key=str, value=str) for topic in ("one", "two"))
        yield (driver, *inputs, driver.create_output_topic("out", key=str, value=str))


def test_the_older_record_of_the_other_partition_comes_first(topics: Topics) -> None:
    _, one, two, out = topics
    one.pipe_input("a", "late", timestamp=9)
    assert out.is_empty
    two.pipe_input("a", "early", timestamp=3)
    assert out.read_values() == ["early"]


def test_the_wait_ends_when_its_time_is_up(topics: Topics) -> None:
    driver, one, _, out = topics
    one.pipe_input("a", "x", timestamp=9)
    driver.advance_wall_clock_time(49)
    assert out.is_empty
    driver.advance_wall_clock_time(1)
    assert out.read_values() == ["x"]


def test_several_partitions_are_waited_for_at_the_same_time() -> None:
    """In Java one after the other."""
    builder = StreamsBuilder()
    one, two, three = (builder.stream(topic, key=str, value=str) for topic in ("one", "two", "three"))
    one.merge(two).merge(three).to("out")
    with TopologyTestDriver(builder, {"max_task_idle_ms": 50}, initial_wall_clock=0) as driver:
        driver.create_input_topic("one", key=str, value=str).pipe_input("a", "x", timestamp=9)
        out = driver.create_output_topic("out", key=str, value=str)
        driver.advance_wall_clock_time(49)
        assert out.is_empty
        driver.advance_wall_clock_time(1)
        assert out.read_values() == ["x"]


def test_a_partition_that_had_records_is_waited_for_anew(topics: Topics) -> None:
    driver, one, two, out = topics
    one.pipe_input("a", "1", timestamp=1)
    driver.advance_wall_clock_time(49)
    two.pipe_input("a", "2", timestamp=2)
    assert out.read_values() == ["1"]
    one.pipe_input("a", "3", timestamp=3)
    assert out.read_values() == ["2"]
    driver.advance_wall_clock_time(49)
    assert out.is_empty
    driver.advance_wall_clock_time(1)
    assert out.read_values() == ["3"]
