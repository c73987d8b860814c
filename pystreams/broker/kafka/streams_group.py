"""Requests of non-members about the group of a stream application: list its members, remove the dead ones."""

# pyright knows an older kafka-python by heart.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
from __future__ import annotations

from typing import Any, Final

from kafka import errors

from pystreams.broker.kafka import streams_heartbeat as beats
from pystreams.broker.kafka.coordination import GroupConnection, raise_for
from pystreams.broker.kafka.messages import StreamsGroupDescribeRequest

_TIMEOUT_MS: Final = 10_000.0


def describing(group: str) -> Any:
    """The request for the members of a group."""
    return StreamsGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)


def group_of(response: Any) -> Any:
    """The group in the answer to ``describing``, None if there is no such group. Raises kafka-python's errors."""
    (group,) = response.groups
    if group.error_code == errors.GroupIdNotFoundError.errno:
        return None
    raise_for(group.error_code, group.group_id)
    return group


def members_of(response: Any) -> list[Any]:
    """The members in the answer to ``describing``; none if there is no such group. Raises kafka-python's errors."""
    group = group_of(response)
    return [] if group is None else list(group.members)


def list_members(connection: GroupConnection) -> list[Any]:
    """The members of the connection's group; none if it is of another kind, or the brokers know only those."""
    try:
        return connection.ask(describing(connection.group), members_of, _TIMEOUT_MS)
    except (errors.IncompatibleBrokerVersion, errors.UnsupportedVersionError):
        return []


def remove_member(connection: GroupConnection, member_id: str, timeout_ms: float) -> None:
    """Remove a member whose process is gone. Raises kafka-python's errors."""
    try:
        connection.ask(
            beats.heartbeat(connection.group, member_id, beats.LEAVE_EPOCH), beats.read, timeout_ms
        )
    except beats.HeartbeatRefusedError as error:
        if error.code not in beats.REMOVED_CODES:
            raise
