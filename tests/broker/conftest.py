"""A fresh log of each kind, and what is opened on it: the tests of this folder run on the embedded log and on Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pystreams.broker.port import Consumer, Producer
from tests.broker.following import HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS, Follower, Journal
from tests.broker.kit import P0
from tests.conftest import BOTH_LOGS
from tests.live.support import Log
from tests.unit.broker.log_helpers import deal

Join = Callable[..., Follower]

#: As the tests' connections to Kafka have it.
SESSION = {"session_timeout_ms": SESSION_TIMEOUT_MS, "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS}


@pytest.fixture(params=BOTH_LOGS)
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    """Everything that was opened through it is closed at the end."""
    match request.param:
        case "kafka":
            yield request.getfixturevalue("cluster")
        case "embedded":
            with closing(Log(tmp_path, **SESSION)) as log:
                yield log
        case other:
            raise ValueError(f"there is no log {other}")


@pytest.fixture
def producer(log: Log) -> Iterator[Producer]:
    """Beside the topic ``t``, which has two partitions."""
    log.create(P0.topic, partitions=2)
    with closing(log.broker.producer("p", "p")) as producer:
        yield producer


@pytest.fixture
def consumer(log: Log) -> Iterator[Consumer]:
    with closing(log.broker.consumer("c")) as consumer:
        yield consumer


@pytest.fixture
def journal() -> Journal:
    """What the followers of a test have opened and closed, and when."""
    return []


@pytest.fixture
def join(log: Log, journal: Journal) -> Iterator[Join]:
    """Makes members of the group ``g``, which reads the four partitions of ``t``, named a, b, ...; those still open are
    closed at the end."""
    log.create("t", partitions=4)
    followers: list[Follower] = []

    def join(name: str, assign=None, broker=None) -> Follower:
        member = (broker or log.broker).member(name, "g", ["t"], name.encode, assign or deal("t", 4))
        followers.append(Follower(name, member, journal))
        return followers[-1]

    yield join
    for follower in followers:
        follower.member.close()
