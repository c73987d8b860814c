"""Exporters that log once that the collector does not accept data, and once that it does again.

OpenTelemetry's own exporters write several lines for each attempt, as long as the collector is not available.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

log = logging.getLogger(__name__)

#: The logger of the queue of spans, which is soon full if the collector does not accept them.
_QUEUE_LOGGER: Final = "opentelemetry.sdk._shared_internal"


class Outcome(logging.Filter):
    """Notes whether the exports of ``what`` succeed. It is a filter of the exporter's logger: the last line that this
    logs is the reason of a failure."""

    def __init__(self, what: str, logger: str) -> None:
        super().__init__()
        self._what = what
        self._logger = logging.getLogger(logger)
        #: The last line since the last success.
        self._reason = ""
        self._failing = False

    def begin(self) -> None:
        """Begin to filter the log lines of the exporter and its queue."""
        self._logger.addFilter(self)
        logging.getLogger(_QUEUE_LOGGER).addFilter(self._of_queue)

    def end(self) -> None:
        self._logger.removeFilter(self)
        logging.getLogger(_QUEUE_LOGGER).removeFilter(self._of_queue)

    def filter(self, record: logging.LogRecord) -> bool:
        self._reason = record.getMessage()
        return False

    def _of_queue(self, _record: logging.LogRecord) -> bool:
        return not self._reason

    def sent(self) -> None:
        """The collector has accepted data."""
        self._reason = ""
        if self._failing:
            self._failing = False
            log.warning("%s are taken again", self._what)

    def failed(self) -> None:
        """The collector has not accepted data."""
        if not self._failing:
            self._failing = True
            log.warning(
                "%s are lost until somebody takes them, and the application goes on without: %s",
                self._what,
                self._reason or "no answer in time",
            )


class QuietMetricExporter(OTLPMetricExporter):
    """Sends metrics."""

    def __init__(self) -> None:
        super().__init__()
        self.outcome = Outcome("metrics for OpenTelemetry", OTLPMetricExporter.__module__)

    def export(
        self, metrics_data: MetricsData, timeout_millis: float | None = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        result = super().export(metrics_data, timeout_millis, **kwargs)
        self.outcome.sent() if result is MetricExportResult.SUCCESS else self.outcome.failed()
        return result


class QuietSpanExporter(OTLPSpanExporter):
    """Sends spans."""

    def __init__(self) -> None:
        super().__init__()
        self.outcome = Outcome("traces for OpenTelemetry", OTLPSpanExporter.__module__)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = super().export(spans)
        self.outcome.sent() if result is SpanExportResult.SUCCESS else self.outcome.failed()
        return result
