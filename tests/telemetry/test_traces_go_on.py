"""A trace goes on from who wrote a record through each task that it passes, to the record that comes out."""

from __future__ import annotations

import logging

import pytest
from opentelemetry import trace

from pystreams.processor import Processor, ProcessorContext, PunctuationType
from pystreams.record import NO_HEADERS, Record
from pystreams.runtime.streams import Streams
from pystreams.telemetry import Telemetry
from pystreams.telemetry.task_traces import LINKS_MAX
from tests.live.support import eventually
from tests.telemetry.traces_kit import (
    contexts,
    copying,
    headers_of,
    producer_span,
    records,
    run,
    run_at_full_speed,
    write,
)

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("to_collector")]


@pytest.mark.both_logs
def test_a_batch_goes_on_with_the_trace_of_its_record_and_the_output_carries_it(log, collector):
    write(log, ("a", headers_of(producer_span(7))))
    run(log, copying(log))
    [span] = collector.spans
    assert span.name == "process in"
    assert span.context.trace == producer_span(7).trace
    assert span.parent == producer_span(7).span
    assert span.attributes["pystreams.task"] == "0_0"
    assert span.attributes["messaging.batch.message_count"] == 1
    assert span.resource["service.name"] == "copying"
    [out] = records(log, "out")
    assert out.headers == (("shop", b"north"), ("traceparent", span.context.traceparent))


def test_a_batch_of_several_traces_goes_on_with_the_first_and_links_to_the_others(log, collector):
    of_each = [(str(n), headers_of(producer_span(1 + n // 2))) for n in range(8)]
    run_at_full_speed(log, copying(log), ("none", NO_HEADERS), *of_each)
    span = collector.spans[-1]
    assert span.parent == producer_span(1).span
    assert span.links == [producer_span(n) for n in (2, 3, 4)]
    assert set(contexts(records(log, "out")[-9:])) == {span.context}


def test_links_are_bounded(log, collector):
    batch = [(str(n), headers_of(producer_span(1 + n))) for n in range(3 * LINKS_MAX)]
    run_at_full_speed(log, copying(log), *batch)
    assert collector.spans[-1].links == [producer_span(2 + n) for n in range(LINKS_MAX)]


def test_traces_that_nobody_has_sampled_and_headers_that_are_none_begin_a_new_one(log, collector):
    wrong = [("traceparent", value) for value in (None, b"", b"00-x", b"0" * 54 + b"1")]
    write(
        log,
        ("a", headers_of(producer_span(7), sampled=False)),
        *(("b", (header,)) for header in wrong),
    )
    run(log, copying(log))
    spans = {span.context: span for span in collector.spans}
    assert {(span.parent, *span.links) for span in spans.values()} == {("",)}
    assert producer_span(7).trace not in {context.trace for context in spans}
    assert set(contexts(records(log, "out"))) <= spans.keys()


@pytest.mark.both_logs
def test_a_trace_goes_through_a_repartition_topic_and_a_store_with_its_cache(log, collector):
    app = log.app("counting")
    counts = (
        app.stream("in", key=str, value=int)
        .select_key(lambda key, value: key[0], key=str)
        .group_by_key(repartition="by-letter")
        .count(name="counts")
    )
    counts.to_stream().to("out")
    write(log, ("apple", headers_of(producer_span(7))), ("avocado", headers_of(producer_span(7))))
    run(log, app)
    assert {span.context.trace for span in collector.spans} == {producer_span(7).trace}
    names = {span.context: span.name for span in collector.spans}
    parents = {producer_span(7).span: "producer", **{context.span: name for context, name in names.items()}}
    inner = "counting-by-letter-repartition"
    assert {(parents[span.parent], span.name) for span in collector.spans} == {
        ("producer", "process in"),
        ("process in", f"process {inner}"),
        (f"process {inner}", f"flush {inner}"),
    }
    assert {names[context] for context in contexts(records(log, inner))} == {"process in"}
    assert {names[context] for context in contexts(records(log, "out"))} == {f"flush {inner}"}
    changes = records(log, "counting-counts-changelog")
    assert changes
    assert set(contexts(changes)) == {None}


class Ticking(Processor[str, int, str, int]):
    def init(self, context: ProcessorContext[str, int]) -> None:
        super().init(context)
        context.schedule(10, PunctuationType.WALL_CLOCK_TIME, self.tick)

    def process(self, record: Record[str, int]) -> None: ...

    def tick(self, time: int) -> None:
        self.context.forward(Record("tick", 1, 1))


@pytest.mark.both_logs
def test_what_a_punctuator_writes_carries_its_span(log, collector):
    app = log.app("ticking", commit_interval_ms=50)
    app.stream("in", key=str, value=int).process(Ticking).to("out", key=str, value=int)
    streams = Streams(app, broker=log.broker)
    with Telemetry(streams):
        streams.start()
        eventually(lambda: records(log, "out"))
        streams.close()
    spans = {span.context: span.name for span in collector.spans}
    assert {spans[context] for context in contexts(records(log, "out"))} == {"punctuate in"}


def test_a_function_is_inside_of_the_span_of_its_batch(log, collector):
    seen = []

    def look(value: int) -> int:
        seen.append(f"{trace.get_current_span().get_span_context().span_id:016x}")
        return value

    app = log.app("looking")
    app.stream("in", key=str, value=int).map_values(look).to("out")
    write(log, ("a", NO_HEADERS))
    run(log, app)
    assert seen == [span.context.span for span in collector.spans]


@pytest.mark.both_logs
def test_a_batch_that_fails_says_so(log, collector, caplog):
    caplog.set_level(logging.CRITICAL)

    def refuse(value: int) -> int:
        raise ValueError("not today")

    app = log.app("refusing")
    app.stream("in", key=str, value=int).map_values(refuse).to("out")
    write(log, ("a", NO_HEADERS))
    with pytest.raises(Exception, match="not today"):
        run(log, app)
    assert [span.failed for span in collector.spans] == [True]


def test_a_task_without_work_makes_no_spans(log, collector):
    streams = Streams(copying(log), broker=log.broker)
    with Telemetry(streams):
        streams.start()
        write(log, ("a", NO_HEADERS))
        eventually(lambda: collector.spans)
        polls = collector.total("kafka_streams_stream_thread_metrics_poll_total")
        eventually(lambda: collector.total("kafka_streams_stream_thread_metrics_poll_total") > polls + 10)
        streams.close()
    assert len(collector.spans) == 1
