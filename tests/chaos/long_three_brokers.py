"""Of three brokers any one may be killed, or frozen with its connections open: every partition is processed without it,
and nothing is lost or comes twice: ``make trouble``.

Not collected by itself: name the file. It takes about six minutes, because the group and its transactions need up to a
minute after the loss of the broker that coordinated them.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.chaos.places import on_kafka
from tests.chaos.run import Run
from tests.kafka.server import KafkaServer

# kafka-python leaves sockets of refused connections to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)

SEED = 5
PROGRESS_TIMEOUT_S = 240.0


def test_each_broker_is_killed_and_frozen_in_turn(server: KafkaServer, tmp_path: Path):
    """``server`` knows whether Kafka can be had."""
    with on_kafka(tmp_path, brokers=3) as place:
        run = Run(place, tmp_path, SEED, progress_timeout_s=PROGRESS_TIMEOUT_S)
        report = run(
            [kind]
            for broker in place.brokers
            for kind in (partial(run.faults.kill_broker, broker), partial(run.faults.freeze_broker, broker))
        )
        print(report)
        assert report.faults == {"broker killed": 3, "broker frozen": 3}
        assert report.pairs > 0
