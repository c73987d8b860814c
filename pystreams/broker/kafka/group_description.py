"""A group as its coordinator shows it to everybody: the members and their assignments."""

# pyright knows an older kafka-python by heart.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from typing import Any, Final

from kafka import errors
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from pystreams.broker.kafka import streams_group
from pystreams.broker.kafka.coordination import GroupConnection, raise_for
from pystreams.broker.kafka.streams_heartbeat import (
    FINGERPRINT_TAG,
    PYSTREAMS_TAG,
    PYTHON_TAG,
    endpoint_of,
    unpacked,
)
from pystreams.broker.port import GroupDescription, MemberDescription
from pystreams.ids import TopicPartition

_TIMEOUT_MS: Final = 10_000.0
#: The states, by Kafka's names, in which nothing changes.
_STABLE: Final = frozenset({"Stable", "Empty", "Dead"})


def describe_group(connection: GroupConnection) -> GroupDescription:
    """The connection's group. Raises kafka-python's errors, and ``BrokerUnavailableError``."""
    group = connection.ask(_describing(connection.group), _only_group, _TIMEOUT_MS)
    if group.members:
        return GroupDescription(
            tuple(map(_member, group.members)), rebalancing=group.group_state not in _STABLE
        )
    try:
        by_task = connection.ask(
            streams_group.describing(connection.group), streams_group.group_of, _TIMEOUT_MS
        )
    except (errors.IncompatibleBrokerVersion, errors.UnsupportedVersionError):
        by_task = None
    if by_task is None:
        return GroupDescription()
    members = tuple(map(_member_by_task, by_task.members))
    return GroupDescription(members, rebalancing=bool(members) and by_task.group_state not in _STABLE)


def list_member_ids(connection: GroupConnection, timeout_ms: float) -> list[str]:
    """The ids of the members of the connection's group, of whatever kind; none if there is no such group. Raises like
    ``describe_group``.

    librdkafka's requests to coordinators end the process if a connection is lost at the wrong moment (librdkafka issue
    4605), so they come from kafka-python.
    """
    try:
        group = connection.ask(_describing(connection.group), _only_group, timeout_ms)
    except errors.GroupIdNotFoundError:
        return []
    members = group.members or streams_group.list_members(connection)
    return sorted(str(member.member_id) for member in members)


def _describing(group: str) -> Any:
    return DescribeGroupsRequest(groups=[group], max_version=5)


def _only_group(response: Any) -> Any:
    (group,) = response.groups
    raise_for(group.error_code, group.group_id)
    return group


def _member(member: Any) -> MemberDescription:
    """A member with its data and partitions. Both are empty while the group changes its assignment."""
    joined, given = bytes(member.member_metadata or b""), bytes(member.member_assignment or b"")
    subscription = ConsumerProtocolSubscription.decode(joined) if joined else None
    assignment = ConsumerProtocolAssignment.decode(given) if given else None
    return MemberDescription(
        member.member_id,
        member.client_id,
        member.client_host.removeprefix("/"),
        tuple(sorted(TopicPartition(*one) for one in assignment.partitions())) if assignment else (),
        bytes(subscription.user_data or b"") if subscription else b"",
        bytes(assignment.user_data or b"") if assignment else b"",
    )


def _member_by_task(member: Any) -> MemberDescription:
    assigned = member.assignment
    tags = {tag.key: tag.value for tag in member.client_tags}
    return MemberDescription(
        member.member_id,
        member.client_id,
        member.client_host.removeprefix("/"),
        tasks=tuple(sorted(unpacked(assigned.active_tasks))),
        standbys=tuple(sorted(unpacked([*assigned.standby_tasks, *assigned.warmup_tasks]))),
        process_id=member.process_id,
        fingerprint=tags.get(FINGERPRINT_TAG, ""),
        endpoint=endpoint_of(member.user_endpoint),
        pystreams=tags.get(PYSTREAMS_TAG, ""),
        python=tags.get(PYTHON_TAG, ""),
    )
