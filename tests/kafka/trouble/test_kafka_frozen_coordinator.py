"""A broker is frozen while the group waits for its members: another one coordinates the group, and they join there.

The answer to a join may take minutes, because it waits for members that work. From a frozen broker it never comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from tests.broker.following import LONG_SESSION_MS, Follower, Journal, balanced, follow_until
from tests.chaos.places import Place, on_kafka
from tests.kafka.server import KafkaServer
from tests.kafka.support import connect
from tests.live.support import eventually
from tests.unit.broker.log_helpers import deal

# kafka-python leaves sockets of refused connections to the garbage collector.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]

GROUP = "g"
#: Far less than the poll interval of five minutes, for which the answer to a join may be waited for.
JOIN_TIMEOUT_S = 150.0


@pytest.fixture
def place(server: KafkaServer, tmp_path: Path) -> Iterator[Place]:
    """Three brokers. (``server`` knows whether Kafka can be had.)"""
    with on_kafka(tmp_path, brokers=3) as place:
        yield place


def coordinator(place: Place) -> int:
    """The number of the broker that coordinates the group."""
    broker: Any = place.log.broker
    return int(broker._client.describe_consumer_groups([GROUP])[GROUP].result().coordinator.id)


def test_members_join_where_another_broker_coordinates_the_group(place: Place):
    place.log.create("t", partitions=4)
    journal: Journal = []
    with ExitStack() as stack:

        def member(name: str) -> Follower:
            broker = stack.enter_context(
                closing(connect(place.arguments[1], session_timeout_ms=LONG_SESSION_MS))
            )
            joined = broker.member(name, GROUP, ["t"], lambda: b"", deal("t", 4))
            stack.callback(joined.close, leave=False)
            return Follower(name, joined, journal)

        first = member("first")
        follow_until(lambda: len(first.held) == 4, first)
        eventually(place.may_lose_a_broker, "every broker has everything", 120)
        second = member("second")
        # The group waits for the first member, which works and does not poll.
        waiting: Any = second.member
        follow_until(lambda: waiting.joining, second)
        place.brokers[coordinator(place) - 1].freeze()
        follow_until(balanced(first, second), first, second, timeout_s=JOIN_TIMEOUT_S)
