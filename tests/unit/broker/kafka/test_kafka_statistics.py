"""Delays by quotas of the brokers are among the metrics of a client, under the names that Java's clients give them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pystreams.broker.kafka.statistics import ClientStatistics
from pystreams.metrics.exposed import exposed_name
from tests.serving.promql_kit import of_kafkas_clients


def report(kind: str) -> str:
    """As librdkafka writes it of a client that two brokers have delayed four times, and a third one never."""

    def broker(number: int, **throttle: int) -> dict[str, Any]:
        return {"nodeid": number, "state": "UP", "throttle": throttle}

    brokers = {
        "a:1/1": broker(1, avg=20, max=50, cnt=3),
        "b:1/2": broker(2, avg=80, max=80, cnt=1),
        "c:1/3": broker(3, avg=0, max=0, cnt=0),
    }
    return json.dumps({"type": kind, "brokers": brokers})


@pytest.mark.parametrize("kind,verb", [("producer", "produce"), ("consumer", "fetch")])
def test_delays_by_quotas_are_shown_as_average_and_maximum_of_all_brokers(kind: str, verb: str) -> None:
    statistics = ClientStatistics(60_000)
    statistics.settings(f"t-{kind}")["stats_cb"](report(kind))
    delays = {exposed_name(one): one.value for one in statistics.samples() if "throttle" in one.name}
    assert {name.rpartition(f"_{verb}_")[2]: delay_ms for name, delay_ms in delays.items()} == {
        "throttle_time_avg": 35,
        "throttle_time_max": 80,
    }
    assert delays.keys() == {name for name in of_kafkas_clients() if f"_{verb}_throttle" in name}
