"""The heartbeats of a member of a group for stream applications: makes the requests from a member's state, and reads
the broker's responses. Source: KIP-1071, StreamsGroupHeartbeatRequestManager."""

# pyright knows an older kafka-python by heart.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
from __future__ import annotations

import platform
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kafka import errors

from pystreams.broker.group_application import GroupApplication, GroupSubtopology
from pystreams.broker.kafka.messages import StreamsGroupHeartbeatRequest as Request
from pystreams.distribution import __version__
from pystreams.ids import TaskId, TopicPartition

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1

STALE_TOPOLOGY: Final = 0
MISSING_SOURCE_TOPICS: Final = 1
INCORRECTLY_PARTITIONED_TOPICS: Final = 2
MISSING_INTERNAL_TOPICS: Final = 3
SHUTDOWN_APPLICATION: Final = 4
ASSIGNMENT_DELAYED: Final = 5

#: The group does not know the member any more.
REMOVED: Final = (errors.UnknownMemberIdError, errors.FencedMemberEpochError, errors.GroupIdNotFoundError)
REMOVED_CODES: Final = frozenset(error.errno for error in REMOVED)

#: The tags in which a member sends its program and its versions. The broker only shows them.
FINGERPRINT_TAG: Final = "pystreams.fingerprint"
PYSTREAMS_TAG: Final = "pystreams.version"
PYTHON_TAG: Final = "pystreams.python"

#: The ``endpoint_epoch`` of a member that requests all endpoints.
NO_ENDPOINTS: Final = -1

_SUBTOPOLOGY: Final = Request.Topology.Subtopology
#: The broker sends all members the host and the port of each owner, for interactive queries. A thread of a process
#: without an endpoint uses its name as the host, with this port.
_NO_PORT: Final = 1


class HeartbeatRefusedError(errors.KafkaError):  # type: ignore[misc]
    """The broker has refused a heartbeat, with the code and the text of its answer."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(f"{errors.for_code(code).__name__} ({code}): {why}" if why else f"error {code}")
        self.code = code


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of a member."""

    active: frozenset[TaskId] = frozenset()
    standbys: frozenset[TaskId] = frozenset()


@dataclass(frozen=True, slots=True)
class Places:
    """The owners and followers of partitions. If a process has an endpoint, this is the name of all its threads."""

    owners: Mapping[TopicPartition, str] = field(default_factory=dict)
    followers: Mapping[TopicPartition, tuple[str, ...]] = field(default_factory=dict)
    endpoints: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a heartbeat. ``tasks`` and ``places`` are None if they are as before."""

    epoch: int
    interval_ms: int
    tasks: Tasks | None
    endpoint_epoch: int
    places: Places | None
    #: Reasons for which the group gives out no tasks, by code.
    status: Mapping[int, str] = field(default_factory=dict)


def heartbeat(
    group: str, member_id: str, epoch: int, endpoint_epoch: int = NO_ENDPOINTS, **fields: Any
) -> Any:
    """A heartbeat that changes only ``fields``; with ``LEAVE_EPOCH`` the member leaves."""
    return Request(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        endpoint_information_epoch=endpoint_epoch,
        **fields,
    )


def joining(application: GroupApplication, rebalance_timeout_ms: int) -> dict[str, Any]:
    """The fields of the first heartbeat."""
    subtopologies = [_subtopology(sub) for sub in application.subtopologies]
    tags = {
        **application.tags,
        FINGERPRINT_TAG: application.fingerprint,
        PYSTREAMS_TAG: __version__,
        PYTHON_TAG: platform.python_version(),
    }
    return {
        "rebalance_timeout_ms": rebalance_timeout_ms,
        "topology": Request.Topology(epoch=0, subtopologies=subtopologies),
        "process_id": application.process_id,
        "user_endpoint": _endpoint(application),
        "client_tags": [Request.KeyValue(key=key, value=value) for key, value in sorted(tags.items())],
        "rack_id": application.rack or None,
        **owning(Tasks()),
    }


def owning(tasks: Tasks) -> dict[str, Any]:
    """The fields with the tasks that the member has."""
    return {
        "active_tasks": _packed(tasks.active),
        "standby_tasks": _packed(tasks.standbys),
        "warmup_tasks": [],
    }


def read(response: Any) -> Answer:
    """The answer in a response. Raises kafka-python's errors if another attempt may help, otherwise
    ``HeartbeatRefusedError``."""
    if code := response.error_code:
        error = errors.for_code(code)
        if getattr(error, "retriable", False):
            raise error(response.error_message or "")
        raise HeartbeatRefusedError(code, response.error_message or "")
    tasks = None
    if response.active_tasks is not None:
        # Warm-up tasks are filled as standbys are.
        standbys = unpacked(response.standby_tasks or []) | unpacked(response.warmup_tasks or [])
        tasks = Tasks(unpacked(response.active_tasks), standbys)
    return Answer(
        response.member_epoch,
        response.heartbeat_interval_ms,
        tasks,
        response.endpoint_information_epoch,
        None
        if response.partitions_by_user_endpoint is None
        else _places(response.partitions_by_user_endpoint),
        {status.status_code: status.status_detail for status in response.status or ()},
    )


def fingerprints(members: Iterable[Any]) -> set[str]:
    """The fingerprints of described members."""
    return {tag.value for member in members for tag in member.client_tags if tag.key == FINGERPRINT_TAG}


def _subtopology(sub: GroupSubtopology) -> Any:
    sources, repartition = list(sub.sources), sorted(sub.repartition_sources)
    return _SUBTOPOLOGY(
        subtopology_id=str(sub.id),
        source_topics=sources,
        source_topic_regex=[],
        # The broker derives the number of partitions, and refuses any other than 0.
        state_changelog_topics=[_topic(name, 0) for name in sub.changelogs],
        repartition_sink_topics=list(sub.repartition_sinks),
        repartition_source_topics=[_topic(name, sub.repartition_sources[name]) for name in repartition],
        copartition_groups=[
            _SUBTOPOLOGY.CopartitionGroup(
                source_topics=_indexes(sources, topics),
                source_topic_regex=[],
                repartition_source_topics=_indexes(repartition, topics),
            )
            for topics in sub.copartitioned
        ],
    )


def _topic(name: str, partitions: int) -> Any:
    return _SUBTOPOLOGY.TopicInfo(name=name, partitions=partitions, replication_factor=0, topic_configs=[])


def _indexes(names: list[str], chosen: Collection[str]) -> list[int]:
    return [index for index, name in enumerate(names) if name in chosen]


def _packed(tasks: Iterable[TaskId]) -> list[Any]:
    partitions: dict[int, list[int]] = {}
    for task in sorted(tasks):
        partitions.setdefault(task.subtopology, []).append(task.partition)
    return [Request.TaskIds(subtopology_id=str(sub), partitions=of_sub) for sub, of_sub in partitions.items()]


def unpacked(packed: Iterable[Any]) -> frozenset[TaskId]:
    """The tasks in a message."""
    return frozenset(
        TaskId(int(of_sub.subtopology_id), partition) for of_sub in packed for partition in of_sub.partitions
    )


def _endpoint(application: GroupApplication) -> Any:
    if not application.endpoint:
        return Request.Endpoint(host=application.thread, port=_NO_PORT)
    host, _, port = application.endpoint.rpartition(":")
    return Request.Endpoint(host=host, port=int(port))


def endpoint_of(given: Any) -> str:
    """The endpoint of a described member, ``host:port``; empty if its process has none."""
    return "" if given is None or given.port == _NO_PORT else f"{given.host}:{given.port}"


def _places(endpoints: Iterable[Any]) -> Places:
    owners: dict[TopicPartition, str] = {}
    followers: dict[TopicPartition, tuple[str, ...]] = {}
    reachable: set[str] = set()
    for endpoint in endpoints:
        name = endpoint_of(endpoint.user_endpoint)
        if name:
            reachable.add(name)
        else:
            name = endpoint.user_endpoint.host
        owners.update(dict.fromkeys(_partitions(endpoint.active_partitions), name))
        for partition in _partitions(endpoint.standby_partitions):
            followers[partition] = (*followers.get(partition, ()), name)
    return Places(owners, followers, frozenset(reachable))


def _partitions(topics: Iterable[Any]) -> list[TopicPartition]:
    return [TopicPartition(topic.topic, partition) for topic in topics for partition in topic.partitions]
