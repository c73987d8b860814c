"""A collector that takes nothing disturbs nobody: the application works, one line says so, and one when it is back."""

from __future__ import annotations

import logging

import pytest

from pystreams.runtime.streams import Streams
from pystreams.telemetry import Telemetry
from tests.live.support import eventually
from tests.telemetry.traces_kit import copying, headers_of, producer_span, records, write

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("to_collector")]


def test_it_is_said_once_for_each_kind_and_once_that_it_is_over(log, collector, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    # Metrics are tried once, traces twice within so many seconds.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "1.5")
    # Meanwhile the queue of spans is full.
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
    collector.refuses = True
    streams = Streams(copying(log), broker=log.broker)
    with Telemetry(streams):
        streams.start()
        for number in range(1, 41):
            write(log, ("a", headers_of(producer_span(number))))
            eventually(lambda: len(records(log, "out")) == number)  # noqa: B023
        eventually(lambda: len(said(caplog)) >= 2 and len(collector.requests) > 10)
        assert said(caplog) == [
            "metrics for OpenTelemetry are lost until somebody takes them, and the application goes on without",
            "traces for OpenTelemetry are lost until somebody takes them, and the application goes on without",
        ]
        collector.refuses = False
        eventually(lambda: collector.points)
        write(log, ("a", headers_of(producer_span(99))))
        eventually(lambda: any(span.parent == producer_span(99).span for span in collector.spans))
        streams.close()
    assert said(caplog)[2:] == [
        "metrics for OpenTelemetry are taken again",
        "traces for OpenTelemetry are taken again",
    ]


#: The reader of metrics starts its thread before it is registered. At the tests' interval of 100 ms, this shows on a
#: busy machine.
_BEGINS_EARLY = "Cannot call collect on a MetricReader until it is registered"


def said(caplog) -> list[str]:
    """What was logged of OpenTelemetry, without the reasons; in order for each time that something changed."""
    lines = [
        record.getMessage().partition(":")[0]
        for record in caplog.records
        if record.name.startswith(("opentelemetry", "pystreams.telemetry"))
        and not record.getMessage().startswith(_BEGINS_EARLY)
    ]
    return sorted(lines[:2]) + sorted(lines[2:])
