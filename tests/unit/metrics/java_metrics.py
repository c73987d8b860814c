"""The metrics that an application of Kafka Streams 4.3.1 registers, as Java lists them at the recording level DEBUG.

Recorded by hand, with a Kafka that ``tests.kafka.with_kafka`` starts, and kafka-streams-4.3.1.jar on the class path:

    python -m tests.kafka.with_kafka sh -c 'java -cp "JARS/*" tests/unit/metrics/java/DumpMetrics.java \
        $PYSTREAMS_BOOTSTRAP_SERVERS > tests/unit/metrics/java/metrics-4.3.1.json'
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final, NamedTuple


class JavaMetric(NamedTuple):
    """``tags`` are the names of its tags. ``level``: from which recording level on Java records it."""

    group: str
    name: str
    tags: frozenset[str]
    level: str
    description: str


_LISTED: Final = json.loads(
    (Path(__file__).parent / "java" / "metrics-4.3.1.json").read_text(encoding="utf-8")
)
JAVA_METRICS: Final = [
    JavaMetric(one["group"], one["name"], frozenset(one["tags"]), one["level"], one["description"])
    for one in _LISTED
]

#: Words of Java's names and descriptions, and the unit that they say; the first that is found counts.
_WORDS: Final = (
    ("per.second", "per second"),
    (r"\bratio", "share"),
    (r"\bin ms\b", "ms"),
    ("latency", "latency"),
    (r"byte|memory|\bsize of buffered", "bytes"),
)


def unit_of(metric: JavaMetric) -> str:
    """The unit that Java says; empty: none, so it is a number of things. Latencies are in ms, those of stores in ns,
    which Java does not say (org.apache.kafka.streams.state.internals.MeteredKeyValueStore)."""
    text = f"{metric.description} {metric.name}".lower()
    unit = next((unit for words, unit in _WORDS if re.search(words, text)), "")
    if unit == "latency":
        return "ns" if metric.group == "stream-state-metrics" else "ms"
    return unit
