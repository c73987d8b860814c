"""Headers travel with their record, through topics, tables and aggregations."""

from __future__ import annotations

from pystreams import StreamsBuilder
from pystreams.processor import Processor
from pystreams.record import Record
from pystreams.testing import TopologyTestDriver

HEADERS = (("trace", b"1"), ("trace", None))


class Signed(Processor[str, str, str, str]):
    """Adds a header."""

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record.with_headers((*record.headers, ("signed", b"yes"))))


def test_headers_pass_steps_and_repartition_topics() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", key=str, value=str).map(lambda value: (value, value), key=str, value=str)
    stream.repartition(name="middle").to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("a", "x", headers=HEADERS)
        out = driver.create_output_topic("out", key=str, value=str)
        assert out.read_record().headers == HEADERS


def test_a_result_has_the_headers_of_the_record_that_brought_it_about() -> None:
    builder = StreamsBuilder()
    for cached in (True, False):
        grouped = builder.stream(f"in-{cached}", key=str, value=str).group_by_key()
        grouped.count(cached=cached).to_stream().to(f"out-{cached}")
    with TopologyTestDriver(builder) as driver:
        for cached in (True, False):
            topic = driver.create_input_topic(f"in-{cached}", key=str, value=str)
            topic.pipe_input("a", "x", headers=HEADERS)
            topic.pipe_input("a", "x")
            out = driver.create_output_topic(f"out-{cached}", key=str, value=int)
            assert [record.headers for record in out.read_records()] == [HEADERS, ()]


def test_a_processors_headers_reach_its_children_only() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    stream.process(Signed, key=str, value=str).to("signed")
    stream.to("plain")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("a", "x", headers=HEADERS)
        signed = driver.create_output_topic("signed", key=str, value=str).read_record()
        plain = driver.create_output_topic("plain", key=str, value=str).read_record()
        assert signed.headers == (*HEADERS, ("signed", b"yes"))
        assert plain.headers == HEADERS
