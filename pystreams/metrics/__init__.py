"""Counters and gauges of an application, readable in its process.

``registry`` holds them by name and tags, ``names`` has the names, which are Kafka Streams' own.
"""

from __future__ import annotations

from pystreams.metrics.registry import Counter, Gauge, Metrics, Sample

__all__ = ["Counter", "Gauge", "Metrics", "Sample"]
