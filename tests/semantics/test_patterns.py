"""A source that reads a pattern gets the records of every topic that matches it."""

from __future__ import annotations

import re

import pytest

from pystreams import Processor, Record, StreamsBuilder
from pystreams.errors import TopicError
from pystreams.testing import TopologyTestDriver


class TopicOfRecord(Processor[str, str, str, str]):
    """Forwards the name of the topic that a record came from."""

    def process(self, record: Record[str, str]) -> None:
        metadata = self.context.record_metadata()
        assert metadata is not None
        self.context.forward(record.with_value(metadata.topic))


def test_records_know_which_topic_they_came_from() -> None:
    builder = StreamsBuilder()
    orders = builder.stream(re.compile("orders-.*"), key=str, value=str)
    orders.process(TopicOfRecord, key=str, value=str).to("out")
    with TopologyTestDriver(builder) as driver:
        for topic in ("orders-eu", "orders-us"):
            driver.create_input_topic(topic, key=str, value=str).pipe_input("a", "x")
        out = driver.create_output_topic("out", key=str, value=str)
        assert out.read_values() == ["orders-eu", "orders-us"]
        with pytest.raises(TopicError, match="returns-eu"):
            driver.create_input_topic("returns-eu", key=str, value=str).pipe_input("a", "x")
