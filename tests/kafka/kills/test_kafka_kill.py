"""``kill -9`` on Kafka, at least once: no window loses a record, and none counts twice what was not processed twice.
`make kills-kafka` does the same at length."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafka.kills.job import Flights
from tests.kafka.kills.scenarios import Chaos
from tests.kafka.server import KafkaServer

pytestmark = pytest.mark.slow

SEED = 5
FLIGHTS = 30_000


@pytest.fixture(scope="module")
def flights() -> Flights:
    """The first month of 2013, and a few days."""
    return Flights(FLIGHTS)


@pytest.fixture
def chaos(server: KafkaServer, tmp_path: Path, flights: Flights) -> Chaos:
    return Chaos(server.bootstrap_servers, tmp_path, flights)


def test_undisturbed_every_count_equals_the_truth(chaos: Chaos):
    result = chaos.undisturbed().result
    assert (result.again, result.doubled) == (0, 0)


def test_killed_alone_at_a_random_moment(chaos: Chaos):
    outcome = chaos.alone(SEED, 1)
    print(outcome)
    assert outcome.result.hits == 1


def test_one_of_three_killed_at_random_moments(chaos: Chaos):
    outcome = chaos.one_of_three(SEED, 2)
    print(outcome)
    assert outcome.result.kills == 2


def test_killed_in_a_commit_in_a_restore_and_in_a_rebalance(chaos: Chaos):
    outcome = chaos.aimed(["all-delivered", "restore-batch-written", "claim-comes"], SEED)
    print(outcome)
    assert outcome.result.kills == 3
