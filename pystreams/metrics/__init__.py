"""Counters, gauges and measures of an application, readable in its process.

Begin with ``registry``, which holds the metrics of a process by name and tags.

- ``registry`` has counters and gauges, and gives a sample of every metric to those who ask.
- ``measure`` has averages and maxima of what was measured lately: durations, numbers of records.
- ``names`` has the names, which are those of Kafka Streams, so that dashboards for Java applications fit.
- ``catalogue`` has the group and the meaning of each metric; a page of the manual shows the same.
- ``exposed`` has the names and labels under which metrics leave the process, as Prometheus' JMX exporter writes them.

``serving`` and ``telemetry`` send them to Prometheus and OpenTelemetry.
"""

from __future__ import annotations

from pystreams.metrics.measure import Measure
from pystreams.metrics.names import Tags
from pystreams.metrics.registry import Counter, Gauge, Metrics, Sample

__all__ = ["Counter", "Gauge", "Measure", "Metrics", "Sample", "Tags"]
