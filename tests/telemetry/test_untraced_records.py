"""Without tracing, and in what is not sampled, records come out as if there were no OpenTelemetry, and tasks run the
same code."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from pystreams.engine.stream_task import StreamTask
from pystreams.engine.traced_task import TracedTask
from pystreams.record import NO_HEADERS
from pystreams.runtime.streams import Streams
from pystreams.telemetry import Telemetry
from pystreams.telemetry.environment import DEFAULT_RATIO, sampler
from tests.live.support import Log, eventually
from tests.telemetry.traces_kit import copying, headers_of, producer_span, records, run, write

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("to_collector")]


def write_both(log: Log) -> list:
    """Two records with their headers; without tracing they come out as they came."""
    write(log, ("a", NO_HEADERS), ("b", headers_of(producer_span(7))))
    return [(b"a", NO_HEADERS), (b"b", headers_of(producer_span(7)))]


def test_what_is_not_sampled_comes_out_as_it_came(log, collector, monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    wanted = write_both(log)
    run(log, copying(log))
    assert [(line.key, line.headers) for line in records(log, "out")] == wanted
    assert not collector.spans


@pytest.mark.parametrize("traces", ["none", "otlp"])
def test_tasks_run_other_code_only_while_traces_are_sent(log, collector, monkeypatch, traces):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", traces)
    wanted = write_both(log)
    streams = Streams(copying(log), broker=log.broker)
    with Telemetry(streams):
        streams.start()
        eventually(lambda: len(records(log, "out")) == 2)
        [[(kind, sends_itself)]] = [
            thread.call(lambda tasks: [_code_of(task.stream) for task in tasks.running]).result(60)
            for thread in streams._threads
        ]
        streams.close()
    if traces == "none":
        assert kind is StreamTask
        # What generated code calls for each record of a sink is the method of the producer itself.
        assert sends_itself
        assert [(line.key, line.headers) for line in records(log, "out")] == wanted
    else:
        assert kind is TracedTask
        assert not sends_itself


def _code_of(task: StreamTask) -> tuple[type, bool]:
    assert task._linked is not None
    return type(task), task._linked._globals["send"] == task._services.producer.send


def test_the_usual_sampler_goes_on_with_what_others_sample_and_begins_few_traces(monkeypatch):
    monkeypatch.delenv("OTEL_TRACES_SAMPLER")
    usual = sampler()
    assert usual is not None
    step = (1 << 64) // 1000
    traces = [n * step + step // 2 for n in range(1000)]
    begun = [usual.should_sample(None, trace, "process in").decision for trace in traces]
    assert sum(decision is Decision.RECORD_AND_SAMPLE for decision in begun) == 1000 * DEFAULT_RATIO
    for flag, wanted in ((TraceFlags(1), Decision.RECORD_AND_SAMPLE), (TraceFlags(0), Decision.DROP)):
        parent = set_span_in_context(NonRecordingSpan(SpanContext(7, 7, is_remote=True, trace_flags=flag)))
        decisions = {usual.should_sample(parent, trace, "process in").decision for trace in traces}
        assert decisions == {wanted}
