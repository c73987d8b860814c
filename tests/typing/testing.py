"""What type checkers see of the test driver. Run by mypy and pyright, not by pytest."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, assert_type

from pystreams import Record, Stores, StreamsBuilder, TopologyTestDriver
from pystreams.state.stores.key_value import KeyValueStore
from pystreams.testing import CapturedForward, InputTopic, MockProcessorContext, OutputTopic, play

with TopologyTestDriver(StreamsBuilder(), {"application_id": "types"}) as driver:
    numbers = driver.create_input_topic("numbers", key=str, value=int)
    assert_type(numbers, InputTopic[str, int])
    assert_type(driver.create_input_topic("lines", value=str), InputTopic[Any, str])
    assert_type(driver.create_input_topic("raw"), InputTopic[Any, bytes])
    numbers.pipe_input(1)
    numbers.pipe_input("a", None, timestamp=5)
    numbers.pipe_key_values([("a", 1), (None, None)])

    sums = driver.create_output_topic("sums", key=str, value=int)
    assert_type(sums, OutputTopic[str, int])
    assert_type(driver.create_output_topic("lines", value=str), OutputTopic[Any, str])
    assert_type(sums.read_value(), int)
    assert_type(sums.read_key_value(), tuple[str, int])
    assert_type(sums.read_record(), Record[str, int])
    assert_type(sums.read_map(), dict[str, int])

assert_type(
    play(StreamsBuilder(), ("in", "key", 1, 10), ("in", None, None, 11, (("h", b"x"),)), timedelta(1)), str
)

context = MockProcessorContext[str, int]()
assert_type(context.add_store(Stores.key_value_store("n", str, int)), KeyValueStore[str, int])
assert_type(context.forwarded(), list[CapturedForward[str, int]])
context.forward(Record("key", 1, 10))
assert_type(MockProcessorContext(), MockProcessorContext[Any, Any])
