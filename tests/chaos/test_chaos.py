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
#: Nearly always, because that takes less time.
TWO_AT_ONCE = 0.8

#: What the kinds of faults say that they have done. A storm always has processes join; on a busy machine, it may find
#: none that works and can leave.
OF_PROCESSES = {
    "killed",
    "killed at a point of a commit or an assignment",
    "killed, and its state directory deleted",
    "frozen for a moment",
    "frozen for longer than the session",
    "joined",
    "ended by a full disk",
    "store files damaged",
}
OF_BROKERS = {"broker killed"}


def endure_all_faults_once(place: Place, folder: Path, faults: set[str]) -> None:
    run = Run(place, folder, SEED, two_at_once=TWO_AT_ONCE)
    report = run(run.decks(lambda: True))
    print(report)
    assert report.pairs > 0
    assert report.faults.keys() - {"left"} == faults


def test_on_the_embedded_log(tmp_path: Path):
    with on_the_embedded_log(tmp_path) as place:
        endure_all_faults_once(place, tmp_path, OF_PROCESSES)


@pytest.mark.kafka
# kafka-python leaves sockets of refused connections to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_on_kafka_exactly_once(server: KafkaServer, tmp_path: Path):
    """``server`` knows whether Kafka can be had."""
    with on_kafka(tmp_path) as place:
        endure_all_faults_once(place, tmp_path, OF_PROCESSES | OF_BROKERS)
