"""Sends the metrics and traces of a client over OTLP while it runs."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Final, NamedTuple, Self

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from pystreams.clock import Deadline, SystemClock
from pystreams.distribution import DISTRIBUTION, __version__
from pystreams.errors import ConfigError
from pystreams.runtime.streams import Streams
from pystreams.telemetry.environment import resource_of, sampler, sends
from pystreams.telemetry.instruments import Instruments
from pystreams.telemetry.quiet_exporters import QuietMetricExporter, QuietSpanExporter
from pystreams.telemetry.task_traces import Traces

#: The time to send the remaining data at the end.
_END_MS: Final = 5_000.0


class _Sending(NamedTuple):
    """A provider of metrics or traces and its exporter, which sends them in its own thread."""

    provider: MeterProvider | TracerProvider
    exporter: QuietMetricExporter | QuietSpanExporter


class Telemetry:
    """Sends metrics and traces of a client to a collector within a ``with`` block.

    As in::

        streams = Streams(app)
        with Telemetry(streams):
            streams.run()

    OpenTelemetry's own variables set the address, the interval and all other options
    (``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_METRIC_EXPORT_INTERVAL``, ``OTEL_TRACES_SAMPLER``, ...).
    """

    def __init__(self, streams: Streams, *, worker: int | None = None) -> None:
        """``worker`` is the number of this process among those that share an environment.

        Raises ``ConfigError`` for variables that request something that is not available.
        """
        self._streams = streams
        self._resource = resource_of(streams.config.application_id, worker)
        self._sends_metrics = sends("metrics")
        self._sends_traces = sends("traces")
        self._sending: list[_Sending] = []
        self._instruments: Instruments | None = None

    def __enter__(self) -> Self:
        """Begin to send, before the start of the client. Raises ``ConfigError`` for variables whose values are refused,
        and ``StateError`` if the client was already started."""
        try:
            if self._sends_traces:
                self._send_traces()
            if self._sends_metrics:
                self._send_metrics()
        except ValueError as error:
            self._end()
            raise ConfigError(
                "OpenTelemetry refuses the value of a variable",
                where="the environment, OTEL_...",
                why=str(error),
                hint="their values: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/",
            ) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        """Send the remaining data. Data that the receiver does not accept within five seconds are lost."""
        if self._instruments is not None:
            self._instruments.make_missing()
        endings = [
            threading.Thread(target=sending.provider.shutdown, name="otel-end", daemon=True)
            for sending in self._sending
        ]
        for ending in endings:
            ending.start()
        deadline = Deadline(SystemClock(), _END_MS)
        for sending, ending in zip(self._sending, endings, strict=True):
            ending.join(deadline.remaining_ms() / 1000)
            outcome = sending.exporter.outcome
            if ending.is_alive():
                outcome.failed()
                sending.exporter.shutdown()
            else:
                outcome.end()

    def _send_traces(self) -> None:
        provider = TracerProvider(sampler(), self._resource, shutdown_on_exit=False)
        self._streams.set_tracing(Traces(provider.get_tracer(DISTRIBUTION, __version__)))
        exporter = QuietSpanExporter()
        self._begin(provider, exporter)
        provider.add_span_processor(BatchSpanProcessor(exporter))

    def _send_metrics(self) -> None:
        exporter = QuietMetricExporter()
        reader = PeriodicExportingMetricReader(exporter)
        provider = MeterProvider([reader], self._resource, shutdown_on_exit=False)
        self._begin(provider, exporter)
        self._instruments = Instruments(self._streams, provider.get_meter(DISTRIBUTION, __version__))
        self._instruments.make_missing()

    def _begin(
        self, provider: MeterProvider | TracerProvider, exporter: QuietMetricExporter | QuietSpanExporter
    ) -> None:
        exporter.outcome.begin()
        self._sending.append(_Sending(provider, exporter))
