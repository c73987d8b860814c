"""Sends metrics of a running application, and traces of its tasks, over OpenTelemetry's protocol, OTLP.

Begin with ``exporting``, which sends from ``with`` to its end. ``instruments`` shows the metrics to a meter,
``task_traces`` makes the spans, and ``trace_headers`` has the context of a trace in the headers of records.
``environment`` reads OpenTelemetry's own variables, and ``quiet_exporters`` say once that nobody takes what they send.
Only this package imports OpenTelemetry (the extra ``otel``).
"""

from __future__ import annotations

from pystreams.telemetry.exporting import Telemetry

__all__ = ["Telemetry"]
