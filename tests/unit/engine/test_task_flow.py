"""The bytes that a task reads are those that its log names; where it names none, they are counted as in Java."""

from __future__ import annotations

import pytest

from pystreams.clock import ManualClock
from pystreams.engine.task_flow import TaskFlow
from pystreams.metrics import Metrics
from pystreams.record import NO_HEADERS, RecordBatch


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def read_bytes(metrics: Metrics, batch: RecordBatch) -> float:
    """What the metric says after a task has read the batch."""
    TaskFlow(metrics, ManualClock(), task_id="0_0").source("from-left", "left").read(batch)
    (size_bytes,) = (one.value for one in metrics.snapshot() if one.name == "bytes-consumed-total")
    return size_bytes


def test_the_size_in_the_log_counts(metrics: Metrics) -> None:
    batch = RecordBatch("left", 0, [b"k"], [b"v"], [5], [0], None, 1, size_bytes=77)
    assert read_bytes(metrics, batch) == 77


def test_a_record_is_its_key_value_headers_and_topic_and_twenty_bytes(metrics: Metrics) -> None:
    headers = [(("name", b"12"), ("empty", None)), NO_HEADERS, NO_HEADERS]
    batch = RecordBatch(
        "left", 0, [b"k", None, b"key"], [b"v", b"value", None], [5, 6, 7], [0, 1, 2], headers, 3
    )
    keys, values, of_headers = 1 + 3, 1 + 5, len("name") + 2 + len("empty")
    assert read_bytes(metrics, batch) == 3 * (20 + len("left")) + keys + values + of_headers
