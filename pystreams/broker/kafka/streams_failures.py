"""Errors for requests that a broker refuses to a group of a stream application. Source: KIP-1071."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from pystreams.broker.kafka import streams_heartbeat as beats
from pystreams.broker.kafka.known_topics import MORE_PARTITIONS
from pystreams.broker.kafka.streams_heartbeat import HeartbeatRefusedError
from pystreams.errors import BrokerError, ConfigError, StreamsError, TopicError, TopologyError
from pystreams.ids import TaskId

_CLASSIC: Final = 'use group_protocol="classic"'
_UNKNOWN: Final = -1
_UNSUPPORTED_VERSION: Final = 35
_GROUP_ID_NOT_FOUND: Final = 69
_AUTHORIZATION_FAILED: Final = (29, 30)
_STREAMS_INVALID_TOPOLOGY: Final = 130


def heartbeat_refused(error: HeartbeatRefusedError, where: str) -> StreamsError:
    """The error for a heartbeat that the broker will never accept."""
    # Without the name of the class, which kafka-python puts before it.
    what, why = "The broker does not accept this member of the group", str(error.args[0])
    if "Topology updates" in why:
        return TopologyError(
            "The group runs another topology",
            where=where,
            why=f"brokers up to 4.3 do not change the topology of a group ({why})",
            hint='stop all members, and run the changed application once with group_protocol="classic", which keeps '
            'its offsets; after that "streams" takes it as a new one',
        )
    hints = {
        _UNKNOWN: "the broker's log has the reason; brokers up to 4.3 answer so if a source topic has got more "
        f"partitions than its changelogs: in this case, {MORE_PARTITIONS}",
        _UNSUPPORTED_VERSION: "groups for stream applications need Kafka 4.2 or newer with the feature "
        f"streams.version=1 (kafka-features.sh upgrade --feature streams.version=1); {_CLASSIC}",
        # A join to a group that does not exist creates it, so this error means that the group is of another kind.
        _GROUP_ID_NOT_FOUND: 'the group has members of another kind, such as those with group_protocol="classic": stop '
        "them first",
        **dict.fromkeys(
            _AUTHORIZATION_FAILED,
            "the login needs READ on the group and on the source topics, and CREATE on internal topics",
        ),
    }
    if error.code == _STREAMS_INVALID_TOPOLOGY:
        return TopologyError("The broker cannot run this topology", where=where, why=why, hint=_CLASSIC)
    if "not supported" in why or "not yet supported" in why:
        return ConfigError(what, where=where, why=why, hint=_CLASSIC)
    return BrokerError(what, where=where, why=why, hint=hints.get(error.code, ""))


def other_version(thread: str, difference: str, where: str) -> TopologyError:
    """The error for a member whose topology differs from that of the members in the group. ``difference``: the first
    difference to the topology that ran last, if it is known; the broker does not know the topology of the group."""
    return TopologyError(
        f"the group refuses this member: the topology of {thread} differs from the one that the group runs",
        where=where,
        why=f"the first difference to the topology that ran last: {difference}" if difference else "",
        hint="stop the other members first, or give the changed application another application_id",
    )


def unknown_tasks(tasks: Collection[TaskId], where: str) -> TopicError:
    """The error for tasks that the application did not have when it started."""
    named = ", ".join(map(str, sorted(tasks)))
    return TopicError(
        f"The broker assigns tasks that the application did not have when it started: {named}",
        where=where,
        why="a source topic has got more partitions",
        hint=MORE_PARTITIONS,
    )


def group_cannot_run(status: Mapping[int, str], where: str) -> StreamsError | None:
    """The error for a status in which the broker assigns no tasks to any member; None for another status."""
    if beats.STALE_TOPOLOGY in status:
        return TopologyError(
            "The group runs a newer topology",
            where=where,
            why=status[beats.STALE_TOPOLOGY],
            hint="stop this member",
        )
    for code in (beats.MISSING_SOURCE_TOPICS, beats.INCORRECTLY_PARTITIONED_TOPICS):
        if code in status:
            return TopicError(
                "The broker gives out no tasks",
                where=where,
                why=status[code],
                hint=f"create what is missing; if a topic has got more partitions, {MORE_PARTITIONS}",
            )
    return None
