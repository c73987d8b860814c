"""Whether the commits of a Kafka are transactions is a property of the broker as it is configured, and threads guard
changelogs only where they are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from pystreams.broker.connecting import open_broker
from pystreams.broker.kafka import KafkaBroker
from pystreams.clock import ManualClock
from pystreams.config.streams_config import StreamsConfig
from pystreams.runtime.tasks.changelog_guard import guard_of

Open = Callable[[str], KafkaBroker]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens the broker of a configuration. Nobody answers there."""
    monkeypatch.setattr(KafkaBroker, "_connect", lambda self, timeout_s: None)
    brokers: list[KafkaBroker] = []

    def opened(guarantee: str) -> KafkaBroker:
        config = StreamsConfig.of(
            application_id="counted", bootstrap_servers="127.0.0.1:1", processing_guarantee=guarantee
        )
        broker = open_broker(config, ManualClock())
        assert isinstance(broker, KafkaBroker)
        brokers.append(broker)
        return broker

    yield opened
    for broker in brokers:
        broker.close()


@pytest.mark.parametrize(
    ("guarantee", "transactional"), [("at_least_once", False), ("exactly_once_v2", True)]
)
def test_the_guarantee_decides(opened: Open, guarantee: str, transactional: bool) -> None:
    broker = opened(guarantee)
    assert broker.transactional is transactional
    context: Any = SimpleNamespace(broker=broker, admin=None, clock=ManualClock())
    nobody: Any = None
    assert (guard_of(context, nobody, nobody, nobody, "thread-1") is None) is transactional
