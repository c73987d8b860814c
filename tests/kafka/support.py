"""What tests on Kafka have in common: the live tests' tools, on another broker."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from pystreams.app import App
from pystreams.broker.kafka import KafkaBroker
from pystreams.broker.kafka.streams_group import list_members
from pystreams.errors import BrokerUnavailableError
from pystreams.ids import MemberName
from tests.broker.following import HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS
from tests.live.support import Log, eventually

#: On a busy machine a broker that runs may not answer for longer than an application waits for its first answer.
CONNECT_TIMEOUT_S = 60.0
#: By default, who has read everything is told so after half a second. Asking more often keeps a broker busy.
QUICK_READS = {"fetch.max.wait.ms": "50"}


def connect(
    bootstrap_servers: str, *, client_settings: Mapping[str, Any] | None = None, **settings: Any
) -> KafkaBroker:
    quick = {
        "session_timeout_ms": SESSION_TIMEOUT_MS,
        "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS,
        "connect_timeout_s": CONNECT_TIMEOUT_S,
    }
    reading = {**QUICK_READS, **(client_settings or {})}
    return KafkaBroker(bootstrap_servers, **{**quick, **settings}, client_settings=reading)


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
            self.remove_members(group.group_id)
            eventually(lambda group=group: self.admin.group_members(group.group_id) == [])
            self.admin.delete_group(group.group_id)
        # Without a transactional id: the records of a stream thread expire with its session, which is short here.
        self._producer = self._stack.enter_context(closing(self.broker.producer("test")))

    def app(self, name: str, **settings: Any) -> App:
        return super().app(name, **{"commit_interval_ms": 100, "poll_ms": 30, **settings})

    def remove_members(self, group: str) -> None:
        """Have the coordinator forget them now: those that were killed would be members until their session is over."""
        described = self.broker._client.describe_consumer_groups([group])[group].result()
        members = [MemberName(member.member_id, member.group_instance_id) for member in described.members]
        members += [MemberName(member.member_id, None) for member in self.streams_members(group)]

        def removed() -> bool:
            try:
                self.admin.remove_members(group, members)
            except BrokerUnavailableError:  # A busy broker may need longer than the admin client waits.
                return False
            return True

        eventually(removed)

    def streams_members(self, group: str) -> list[Any]:
        """The members to which the broker assigns tasks; none if the group is of another kind."""
        return list_members(self.admin._group(group))

    def broker_with(self, **settings: Any) -> KafkaBroker:
        """Another connection, closed at the end of the test."""
        return self._stack.enter_context(closing(connect(self.bootstrap_servers, **settings)))
