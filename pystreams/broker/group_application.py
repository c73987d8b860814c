"""The facts with which a broker can assign an application's tasks itself (KIP-1071, ``group_protocol="streams"``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pystreams.ids import TaskId, TopicPartition


@dataclass(frozen=True, slots=True)
class GroupSubtopology:
    """The topics of a sub-topology. ``repartition_sources`` are the source topics that the application itself creates,
    with their partition counts; the other ones are ``sources``."""

    id: int
    sources: tuple[str, ...]
    repartition_sources: Mapping[str, int]
    repartition_sinks: tuple[str, ...]
    changelogs: tuple[str, ...]
    #: Source topics that must have the same number of partitions.
    copartitioned: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class BrokerAssignment:
    """The broker's assignment for one member. ``owners`` has the name of the thread that processes each partition,
    ``followers`` the names of the threads with a standby of it, if they are known; for a process with an endpoint, the
    endpoint is the name of its threads. ``shutdown``: a member has asked the whole application to stop."""

    active: frozenset[TaskId]
    standbys: frozenset[TaskId] = frozenset()
    owners: Mapping[TopicPartition, str] = field(default_factory=dict)
    followers: Mapping[TopicPartition, tuple[str, ...]] = field(default_factory=dict)
    endpoints: frozenset[str] = frozenset()
    shutdown: bool = False


@dataclass(frozen=True, slots=True)
class GroupApplication:
    """An application, as one of its threads describes it to the broker.

    ``to_member`` turns the broker's assignment into the result of the group's own assignor: partitions, and a plan.
    ``shuts_down`` returns whether this thread asks the whole application to stop. All members have the same
    ``fingerprint``; ``difference`` names the first step in which the topology that ran before differs.
    """

    subtopologies: tuple[GroupSubtopology, ...]
    inputs: Mapping[TaskId, frozenset[TopicPartition]]
    fingerprint: str
    process_id: str
    thread: str
    tags: Mapping[str, str]
    rack: str
    to_member: Callable[[BrokerAssignment], tuple[tuple[TopicPartition, ...], bytes]]
    shuts_down: Callable[[], bool]
    difference: Callable[[], str]
    #: The address at which the process answers queries, ``host:port``; empty: it answers none.
    endpoint: str = ""
