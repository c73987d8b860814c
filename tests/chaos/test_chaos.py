"""Whatever goes wrong with processes, disks and brokers: nothing is lost, and nothing comes twice. `make chaos-kafka`
and `make chaos` do the same for as long as wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.places import Place, on_kafka, on_the_embedded_log
from tests.chaos.run import Run
from tests.kafka.server import KafkaServer

pytestmark = pytest.mark.slow

SEED = 11


def endure_all_faults_once(place: Place, folder: Path) -> None:
    run = Run(place, folder, SEED)
    report = run(run.decks(lambda: True))
    print(report)
    assert report.pairs > 0
    assert len(report.faults) >= len(run.faults.kinds())


def test_on_the_embedded_log(tmp_path: Path):
    with on_the_embedded_log(tmp_path) as place:
        endure_all_faults_once(place, tmp_path)


@pytest.mark.kafka
# kafka-python leaves sockets of refused connections to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_on_kafka_exactly_once(server: KafkaServer, tmp_path: Path):
    """``server`` knows whether Kafka can be had."""
    with on_kafka(tmp_path) as place:
        endure_all_faults_once(place, tmp_path)
