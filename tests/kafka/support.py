"""What tests on Kafka have in common: the live tests' tools, on another broker; members that do as they are told."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from pystreams.app import App
from pystreams.broker.kafka import KafkaBroker
from pystreams.broker.kafka.member import KafkaMember
from pystreams.broker.port import Assigned, Lost
from tests.live.support import Log, eventually

#: Quick to notice who is gone.
SESSION_TIMEOUT_MS = 3_000
HEARTBEAT_INTERVAL_MS = 200


def connect(bootstrap_servers: str, **settings: Any) -> KafkaBroker:
    quick = {"session_timeout_ms": SESSION_TIMEOUT_MS, "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS}
    return KafkaBroker(bootstrap_servers, **{**quick, **settings})


class Cluster(Log):
    """A Kafka cluster without topics and groups, and a folder for state."""

    def __init__(self, bootstrap_servers: str, path: Path) -> None:
        self.path = path
        self.bootstrap_servers = bootstrap_servers
        self._stack = ExitStack()
        self.broker = self._stack.enter_context(closing(connect(bootstrap_servers)))
        self.admin = self._stack.enter_context(closing(self.broker.admin()))
        self.admin.delete_topics(self.admin.describe_topics().keys())
        for group in self.broker._client.list_consumer_groups().result().valid:
            # Members that were killed are members until their session is over.
            eventually(lambda group=group: self.admin.group_members(group.group_id) == [])
            self.admin.delete_group(group.group_id)
        self._producer = self._stack.enter_context(closing(self.broker.producer("test", "test")))

    def app(self, name: str, **settings: Any) -> App:
        return super().app(name, **{"commit_interval_ms": 100, **settings})

    def broker_with(self, **settings: Any) -> KafkaBroker:
        """Another connection, closed at the end of the test."""
        return self._stack.enter_context(closing(connect(self.bootstrap_servers, **settings)))


class Follower:
    """A member that claims what it is given at once, and writes down what happened."""

    def __init__(
        self, name: str, member: KafkaMember, journal: list[tuple[float, str, str, frozenset[int]]]
    ) -> None:
        self.name = name
        self.member = member
        self.held: frozenset[int] = frozenset()
        self.events: list[Assigned | Lost] = []
        self._journal = journal

    def poll(self) -> None:
        for event in self.member.poll():
            self.events.append(event)
            given = event.partitions if isinstance(event, Assigned) else ()
            self._note(frozenset(partition.partition for partition in given))
            self.member.claim(given)

    def close_all(self) -> None:
        self._note(frozenset())

    def _note(self, now: frozenset[int]) -> None:
        """What is given up is closed before what is new is opened, and both before the claim."""
        if self.held - now:
            self._journal.append((time.monotonic(), self.name, "close", self.held - now))
        if now - self.held:
            self._journal.append((time.monotonic(), self.name, "open", now - self.held))
        self.held = now
