"""Sends metrics of a running application, and traces of its tasks, over OpenTelemetry's protocol, OTLP.

Begin with ``exporting``, which sends within a ``with`` block. ``instruments`` shows the metrics to a meter,
``task_traces`` makes the spans, and ``trace_headers`` puts the context of a trace into the headers of records.
``environment`` reads OpenTelemetry's own variables, and ``quiet_exporters`` log only once that the receiver does not
accept data. Only this package imports OpenTelemetry (the extra ``otel``).
"""

from __future__ import annotations

from pystreams.telemetry.exporting import Telemetry

__all__ = ["Telemetry"]
