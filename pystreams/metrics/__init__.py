"""Counters, gauges and measures of an application, readable in its process.

Begin with ``registry``, which holds them by name and tags. ``measure`` has averages and maxima of what was measured
lately, ``names`` the names, which are Kafka Streams' own, ``catalogue`` the groups and meanings of all, ``units`` their
units, and ``exposed`` the names under which others see them.
"""

from __future__ import annotations

from pystreams.metrics.measure import Measure
from pystreams.metrics.names import Tags
from pystreams.metrics.registry import Counter, Gauge, Metrics, Sample

__all__ = ["Counter", "Gauge", "Measure", "Metrics", "Sample", "Tags"]
