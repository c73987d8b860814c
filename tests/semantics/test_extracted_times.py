"""Extractors are asked what Java's are asked, and records have the times that they have there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pystreams import Topology, TopologyTestDriver
from pystreams.errors import ProcessingError
from pystreams.timestamps import ConsumedRecord

#: Random records (topic, value, timestamp) of a source of two topics, as Java 4.3.1's test driver read them: what the
#: extractor was asked (topic, timestamp, the partition's time), the times of what came out, and which record failed.
JAVA = json.loads((Path(__file__).parent / "java" / "extracted_times.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", JAVA, ids=[f"{n}-{case['extractor']}" for n, case in enumerate(JAVA)])
def test_records_have_the_times_that_java_gives_them(case: dict[str, Any]) -> None:
    asked: list[list[Any]] = []

    def own(record: ConsumedRecord, partition_time: int) -> int:
        """A value "+n" is the partition's time and n, "-" no time, others the record's own."""
        asked.append([record.topic, record.timestamp, partition_time])
        if record.value == "-":
            return -1
        return partition_time + int(record.value) if record.value.startswith("+") else record.timestamp

    extractor = own if case["extractor"] == "own" else case["extractor"]
    topology = Topology()
    topology.add_source("in", ["in", "in2"], key=str, value=str, timestamp_extractor=extractor)
    topology.add_sink("out", "out", "in", key=str, value=str)
    driver = TopologyTestDriver(topology)
    failed = None
    for at, (topic, value, timestamp) in enumerate(case["records"]):
        try:
            driver.pipe_bytes(topic, b"k", value.encode(), timestamp, ())
        except ProcessingError:
            failed = at
            break
    times = [record.timestamp for record in driver.read_raw("out")] if "out" in driver.produced_topics else []
    driver.close()
    assert (asked, times, failed) == (case["asked"], case["times"], case["fails_at"])
