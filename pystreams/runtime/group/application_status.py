"""The state of an application as its log shows it to everybody: members, their tasks, and the progress of the tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pystreams.broker.port import Admin, MemberDescription
from pystreams.errors import TopologyError
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.group.membership_data import (
    AssignmentInfo,
    Subscription,
    decode_assignment_info,
    decode_subscription,
    unpack_tasks,
)
from pystreams.topology.built import BuiltTopology
from pystreams.topology.partitions import resolve_partitions


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """A stream thread: its name, the id of its process' state directory, the host from which it connects, and its
    tasks. ``same_program``: whether its topology is the one of the caller; None: the member has not sent it.
    ``fingerprint`` is that of its program, ``pystreams`` and ``python`` are versions, ``endpoint`` is the address at
    which its process answers queries; each is empty if the member has not sent it."""

    thread: str
    process_id: str
    host: str
    tasks: tuple[TaskId, ...]
    standbys: tuple[TaskId, ...]
    same_program: bool | None
    fingerprint: str = ""
    pystreams: str = ""
    python: str = ""
    endpoint: str = ""

    @property
    def client(self) -> str:
        """The name of its process: processes that share a state directory, such as workers, have the same
        ``process_id``."""
        return self.thread.rpartition("-StreamThread-")[0] or self.thread


@dataclass(frozen=True, slots=True)
class InputStatus:
    """A partition that a task reads. ``committed`` is the offset of the next record (None: nothing was committed),
    ``end`` the partition's end, ``lag`` the number of offsets in between."""

    partition: TopicPartition
    task_id: TaskId
    thread: str | None
    committed: int | None
    end: int
    lag: int


@dataclass(frozen=True, slots=True)
class ApplicationStatus:
    """``rebalancing``: the group is assigning tasks again, so members may be shown without their tasks."""

    application_id: str
    rebalancing: bool
    members: tuple[MemberStatus, ...]
    inputs: tuple[InputStatus, ...]
    tasks: tuple[TaskId, ...]

    @property
    def lag(self) -> int:
        """The number of offsets that all tasks together have not committed yet."""
        return sum(one.lag for one in self.inputs)

    @property
    def committed(self) -> int:
        """The sum of all committed offsets, which grows as records are processed."""
        return sum(one.committed or 0 for one in self.inputs)

    @property
    def runs(self) -> bool:
        """Whether it has members, and these have all tasks, or are assigning them again."""
        return bool(self.members) and (self.rebalancing or not self.unassigned)

    @property
    def processes(self) -> int:
        """The number of processes in which it runs; each worker is one."""
        return len({(member.process_id, member.client) for member in self.members})

    @property
    def unassigned(self) -> tuple[TaskId, ...]:
        """The tasks that no member has."""
        had = {task for member in self.members for task in member.tasks}
        return tuple(task for task in self.tasks if task not in had)

    def lag_of(self, tasks: Collection[TaskId]) -> int:
        """The lag of some tasks together."""
        return sum(one.lag for one in self.inputs if one.task_id in tasks)


def application_status(
    admin: Admin, built: BuiltTopology, auto_offset_reset: str, *, reads_committed: bool
) -> ApplicationStatus:
    """Ask the log. ``auto_offset_reset`` is the application's setting.

    Raises ``TopicError`` if an input does not exist, ``BrokerUnavailableError``, and ``BrokerError`` if the login may
    not see the group.
    """
    counts = admin.partition_counts()
    task_inputs = resolve_partitions(built, counts).tasks
    group = admin.describe_group(built.application_id)
    task_of = {partition: task for task, partitions in task_inputs.items() for partition in partitions}
    members = tuple(
        sorted(
            (_member(member, task_of, built.fingerprint) for member in group.members),
            key=lambda member: member.thread,
        )
    )
    thread_of = {task: member.thread for member in members for task in member.tasks}
    inputs = _inputs(
        admin,
        built,
        auto_offset_reset,
        _existing(task_of, counts),
        thread_of,
        reads_committed=reads_committed,
    )
    return ApplicationStatus(
        built.application_id, group.rebalancing, members, tuple(inputs), tuple(sorted(task_inputs))
    )


def endpoints_of(admin: Admin, application_id: str) -> list[str]:
    """Where the members of an application answer queries (``application_server``), each once. Raises
    ``BrokerUnavailableError``, and ``BrokerError`` if the login may not see the group."""
    said = map(_said, admin.describe_group(application_id).members)
    return sorted({one.endpoint for one in said if one is not None and one.endpoint})


def _existing(
    task_of: Mapping[TopicPartition, TaskId], counts: Mapping[str, int]
) -> dict[TopicPartition, TaskId]:
    """The inputs without those of repartition topics that do not exist yet."""
    return {
        partition: task
        for partition, task in sorted(task_of.items())
        if partition.partition < counts.get(partition.topic, 0)
    }


def _inputs(
    admin: Admin,
    built: BuiltTopology,
    auto_offset_reset: str,
    task_of: Mapping[TopicPartition, TaskId],
    thread_of: Mapping[TaskId, str],
    *,
    reads_committed: bool,
) -> Iterable[InputStatus]:
    committed = admin.group_offsets(built.application_id, stable=False)
    beginnings = admin.beginning_offsets(task_of)
    # Read last, so that no committed offset is higher than the end.
    ends = admin.stable_end_offsets(task_of) if reads_committed else admin.end_offsets(task_of)
    for partition, task in task_of.items():
        end, offset = ends[partition], committed.get(partition)
        if offset is not None:
            position = offset.offset
        else:
            position = beginnings[partition] if _from_earliest(built, partition, auto_offset_reset) else end
        yield InputStatus(
            partition,
            task,
            thread_of.get(task),
            None if offset is None else offset.offset,
            end,
            max(0, end - max(position, beginnings[partition])),
        )


def _from_earliest(built: BuiltTopology, partition: TopicPartition, auto_offset_reset: str) -> bool:
    """Whether a task that has committed nothing reads the partition from its beginning."""
    if partition.topic in built.internal_topics:
        return True
    sources = (sub.source_for(partition.topic) for sub in built.subtopologies)
    chosen = next((source.auto_offset_reset for source in sources if source is not None), None)
    return (chosen or auto_offset_reset) == "earliest"


def _member(
    member: MemberDescription, task_of: Mapping[TopicPartition, TaskId], fingerprint: str
) -> MemberStatus:
    said, plan = _said(member), _plan(member.plan)
    tasks = member.tasks or tuple(
        sorted({task_of[partition] for partition in member.partitions if partition in task_of})
    )
    return MemberStatus(
        member.client_id if said is None else said.thread,
        member.process_id if said is None else said.process_id,
        member.host,
        tasks,
        member.standbys if plan is None else tuple(sorted(unpack_tasks(plan.standbys))),
        None if said is None else said.fingerprint == fingerprint,
        *(
            ("", "", "", "")
            if said is None
            else (said.fingerprint, said.pystreams, said.python, said.endpoint)
        ),
    )


def _said(member: MemberDescription) -> Subscription | None:
    """The subscription that a member has sent; None for members of other programs, such as Java's, and while the group
    does not show it."""
    if member.fingerprint:
        return Subscription(
            member.fingerprint,
            member.process_id,
            member.client_id,
            endpoint=member.endpoint,
            pystreams=member.pystreams,
            python=member.python,
        )
    try:
        return decode_subscription(member.user_data) if member.user_data else None
    except TopologyError:
        return None


def _plan(data: bytes) -> AssignmentInfo | None:
    """The data that came with a member's assignment; None as for ``_said``."""
    try:
        return decode_assignment_info(data) if data else None
    except TopologyError:
        return None
