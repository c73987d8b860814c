"""Counters and gauges of an application, readable in process."""

from __future__ import annotations

from pystreams.metrics.registry import Counter, Gauge, Metrics, Sample

__all__ = ["Counter", "Gauge", "Metrics", "Sample"]
