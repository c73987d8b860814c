"""Waits for a Java application that was closed and has not left its group.

By default Kafka Streams does not leave, so that it can come back without a rebalance: the coordinator keeps it as a
member until its session times out. From outside, a closed application cannot be distinguished from a running one except
by waiting that long. Meanwhile the coordinator refuses members without Java's assignor, and the group is not disturbed.
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
#: The coordinator ends a session a little later than its timeout.
_MARGIN_MS: Final = 2_000.0


class JavaMembers:
    """Decides, for one member, whether to try to join again after a refusal. For one thread."""

    def __init__(
        self,
        connection: GroupConnection,
        where: str,
        session_timeout_ms: float,
        clock: Clock | None = None,
    ) -> None:
        """``session_timeout_ms`` is ours: an application that moves between Java and pystreams has the same in both."""
        self._connection = connection
        self._where = where
        self._session_timeout_ms = session_timeout_ms
        self._clock = SystemClock() if clock is None else clock
        self._over: Deadline | None = None
        self._next_try: Deadline | None = None

    def may_join(self) -> bool:
        """False until the next attempt is due."""
        return self._next_try is None or self._next_try.expired()

    def wait(self) -> bool:
        """Called when the group has refused us as a member of another kind: whether to try again later."""
        if self._over is not None and self._over.expired():
            return False
        group = self._describe()
        if group is None or (group.members and group.protocol_data != _ASSIGNOR):
            return False
        if self._over is None:
            self._over = Deadline(self._clock, self._session_timeout_ms + _MARGIN_MS)
            self._warn(group.members)
        self._next_try = Deadline(self._clock, _TRY_INTERVAL_MS)
        return True

    def joined(self) -> None:
        """Called when the group has accepted us."""
        if self._over is not None:
            log.info("%s: the members of Java's Kafka Streams are gone; this one has joined", self._where)
        self._over = self._next_try = None

    def _warn(self, members: list[Any]) -> None:
        names = ", ".join(sorted(f"{member.client_id} at {member.client_host}" for member in members))
        log.warning(
            "%s: waiting for up to %g s: Java's Kafka Streams has members in this group (%s). If it was closed, it "
            "stays a member until its session.timeout.ms is over, 45 s by default; if it is running, stop it",
            self._where,
            self._session_timeout_ms / 1000,
            names or "just gone",
        )

    def _describe(self) -> Any:
        """The group with its members; None if the login may not see it, or the group's type has no assignors."""
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
