"""Waits for a Java application that was closed and has not left its group.

That is what Kafka Streams does by default, so that it can come back without a rebalance: the group's coordinator takes
it for a member until its session is over. Whether it is closed or at work cannot be told from outside but by waiting
for so long. Meanwhile the coordinator refuses everybody who does not know Java's assignor, and disturbs nobody.
"""

# pyright knows an older kafka-python by heart.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import logging
from typing import Any, Final

from kafka import errors
from kafka.protocol.admin import DescribeGroupsRequest

from pystreams.broker.kafka.coordination import GroupConnection
from pystreams.clock import Clock, Deadline, SystemClock
from pystreams.errors import BrokerError

log = logging.getLogger(__name__)

#: The name of the assignor of Kafka Streams. Source: StreamsPartitionAssignor.name.
_ASSIGNOR: Final = "stream"
_TRY_INTERVAL_MS: Final = 500.0
_REQUEST_TIMEOUT_MS: Final = 10_000.0
#: The coordinator ends a session not before its time, and a little after it.
_MARGIN_MS: Final = 2_000.0


class JavaMembers:
    """Decides, for one member, whether a refusal is to be believed. Called by one thread."""

    def __init__(
        self,
        connection: GroupConnection,
        where: str,
        session_timeout_ms: float,
        clock: Clock | None = None,
    ) -> None:
        """``session_timeout_ms`` is ours: of an application that goes from one to the other it is Java's, too."""
        self._connection = connection
        self._where = where
        self._session_timeout_ms = session_timeout_ms
        self._clock = SystemClock() if clock is None else clock
        self._over: Deadline | None = None
        self._next_try: Deadline | None = None

    def may_join(self) -> bool:
        """False between two attempts."""
        return self._next_try is None or self._next_try.expired()

    def wait(self) -> bool:
        """After the group has refused us as one of another kind: True if another attempt is to be made, later."""
        if self._over is not None and self._over.expired():
            return False
        group = self._describe()
        if group is None or (group.members and group.protocol_data != _ASSIGNOR):
            return False
        if self._over is None:
            self._over = Deadline(self._clock, self._session_timeout_ms + _MARGIN_MS)
            self._tell(group.members)
        self._next_try = Deadline(self._clock, _TRY_INTERVAL_MS)
        return True

    def joined(self) -> None:
        """The group has taken us."""
        if self._over is not None:
            log.info("%s: the members of Java's Kafka Streams are gone; this one has joined", self._where)
        self._over = self._next_try = None

    def _tell(self, members: list[Any]) -> None:
        names = ", ".join(sorted(f"{member.client_id} at {member.client_host}" for member in members))
        log.warning(
            "%s: waiting for up to %g s: Java's Kafka Streams has members in this group (%s). If it was closed, it "
            "stays a member until its session.timeout.ms is over, 45 s by default; if it is running, stop it",
            self._where,
            self._session_timeout_ms / 1000,
            names or "just gone",
        )

    def _describe(self) -> Any:
        """The group, with its members; None if it may not be seen, or is of a type that has no assignors."""
        request = DescribeGroupsRequest(groups=[self._connection.group], max_version=5)
        try:
            return self._connection.ask(request, _only_group, _REQUEST_TIMEOUT_MS)
        except (errors.KafkaError, BrokerError) as error:
            log.debug("%s: the group cannot be described: %s", self._where, error)
            return None


def _only_group(response: Any) -> Any:
    (group,) = response.groups
    if group.error_code:
        raise errors.for_code(group.error_code)(group.group_id)
    return None if group.group_state == "Dead" else group
