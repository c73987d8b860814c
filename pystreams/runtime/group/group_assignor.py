"""The assignor in the form of the membership port: it turns the members' bytes into partitions and data for each
member, without side effects."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from pystreams.broker.port import MemberAssignment, MemberInfo
from pystreams.errors import TopologyError
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.group.assignor import Assignment, assign_tasks
from pystreams.runtime.group.membership_data import (
    OTHER_TOPOLOGY,
    AssignmentInfo,
    Subscription,
    Whereabouts,
    decode_subscription,
    encode,
    pack_tasks,
    pack_whereabouts,
    state_of,
    unpack_tasks,
)
from pystreams.runtime.group.own_assignor import OwnAssignor
from pystreams.runtime.group.situation import AssignorMember, AssignorSettings, Situation, TaskFacts

log = logging.getLogger(__name__)


class Log(Protocol):
    """The facts for which the leader asks the log. See ``LogFacts``."""

    def end_sums(self, tasks: Collection[TaskId]) -> Mapping[TaskId, int] | None:
        """The sums of the end offsets of the tasks' changelogs; None: the log did not answer."""
        ...

    def racks(
        self, partitions: Mapping[TaskId, Collection[TopicPartition]]
    ) -> Mapping[TaskId, Sequence[frozenset[str]]]:
        """For each task the racks of each of its partitions; empty if they are not known."""
        ...


@dataclass(frozen=True, slots=True)
class GroupAssignor:
    """Assigns the tasks of one topology. ``inputs`` are the input partitions of every task; ``stateful`` are the tasks
    with stores, and ``changelogs`` the changelog partitions of the tasks that have some, which standbys can follow.

    The member that leads the group calls this; ``fingerprint``, ``topology`` (``pack_topology``) and ``settings`` are
    those of the leader. A group that is not balanced yet rebalances again after ``follow_up_ms``. ``own`` is the
    assignor of the program, if it has one.
    """

    inputs: Mapping[TaskId, frozenset[TopicPartition]]
    stateful: frozenset[TaskId]
    fingerprint: str
    topology: bytes
    changelogs: Mapping[TaskId, Collection[TopicPartition]] = field(default_factory=dict)
    settings: AssignorSettings = field(default_factory=AssignorSettings)
    log: Log | None = None
    follow_up_ms: int = 0
    own: OwnAssignor | None = None

    def __call__(self, members: Sequence[MemberInfo]) -> dict[str, MemberAssignment]:
        """Assign the tasks to the members that can take part. The others get no partitions, but the reason."""
        subscriptions, states, unreadable = self._read(members)
        refused = {member_id: AssignmentInfo(error=error) for member_id, error in unreadable.items()}
        fingerprint = _fingerprint_in_force(members, subscriptions)
        in_force = self._topology_of(fingerprint, subscriptions)
        for member_id, subscription in list(subscriptions.items()):
            if subscription.fingerprint != fingerprint:
                error = f"the topology of {subscription.thread} {OTHER_TOPOLOGY}"
                refused[member_id] = AssignmentInfo(error=error, topology=in_force)
                del subscriptions[member_id]
        owned = self._owned_tasks(members)
        taking_part = [
            _assignor_member(member_id, subscription, owned[member_id], states[member_id])
            for member_id, subscription in subscriptions.items()
        ]
        assignment, follow_up_ms = self._assign(taking_part)
        result = {member_id: MemberAssignment((), encode(info)) for member_id, info in refused.items()}
        for member_id, info in self._infos(assignment, follow_up_ms, taking_part, subscriptions).items():
            tasks = assignment.active[member_id]
            partitions = sorted(partition for task in tasks for partition in self.inputs[task])
            result[member_id] = MemberAssignment(tuple(partitions), encode(info))
        return result

    def _assign(self, members: Sequence[AssignorMember]) -> tuple[Assignment, int]:
        """The assignment, and the time (ms) after which to ask for a rebalance if none comes before; 0: never."""
        facts = self._facts(members)
        if self.own is not None and members:
            return self.own(Situation(facts, members, self.settings))
        assignment = assign_tasks(facts, members, self.settings)
        return assignment, self.follow_up_ms if assignment.pending else 0

    def _facts(self, members: Sequence[AssignorMember]) -> TaskFacts:
        tasks, replicable = frozenset(self.inputs), frozenset(self.changelogs)
        # Within one process no state has to move, and all members are in the same rack.
        if self.log is None or len({member.process_id for member in members}) < 2:
            return TaskFacts(tasks, self.stateful, replicable)
        ends = self.log.end_sums(replicable) if replicable else {}
        if self.settings.rack_aware_assignment_strategy == "none":
            return TaskFacts(tasks, self.stateful, replicable, ends)
        racks, changelog_racks = self.log.racks(self.inputs), self.log.racks(self.changelogs)
        return TaskFacts(tasks, self.stateful, replicable, ends, racks, changelog_racks)

    def _infos(
        self,
        assignment: Assignment,
        follow_up_ms: int,
        members: Sequence[AssignorMember],
        subscriptions: Mapping[str, Subscription],
    ) -> dict[str, AssignmentInfo]:
        """The data that each member gets besides its partitions."""
        shutdown = any(subscription.shutdown for subscription in subscriptions.values())
        common = AssignmentInfo(tasks=len(self.inputs), members=len(members), shutdown=shutdown)
        to_send = _with_whereabouts(common, self._whereabouts(assignment, subscriptions), subscriptions)
        process_of = {task: member.process_id for member in members for task in member.owned}
        asks = self._who_asks(assignment)
        infos = {}
        for member in members:
            name = member.member_id
            # Active tasks of this member that another process still runs: their standbys continue here until then.
            arriving = {
                task
                for task in member.standbys.intersection(assignment.active[name])
                if process_of.get(task, member.process_id) != member.process_id
            }
            infos[name] = msgspec.structs.replace(
                to_send[name],
                standbys=pack_tasks({*assignment.standbys[name], *assignment.warm_ups[name], *arriving}),
                awaited=pack_tasks({*assignment.warm_ups[name], *assignment.coming[name]}),
                coming=pack_tasks(assignment.coming[name]),
                follow_up_ms=follow_up_ms if name == asks else 0,
            )
        return infos

    def _whereabouts(self, assignment: Assignment, subscriptions: Mapping[str, Subscription]) -> Whereabouts:
        """The threads that have the tasks with stores, and those that keep standbys of them."""
        threads = sorted(assignment.active) if self.stateful else []
        return Whereabouts(
            [subscriptions[member_id].thread for member_id in threads],
            given_endpoints(subscriptions[member_id].endpoint for member_id in threads),
            owners_by_subtopology(
                self.stateful,
                {task: index for index, name in enumerate(threads) for task in assignment.active[name]},
            ),
            followers_by_subtopology([assignment.standbys[name] for name in threads]),
        )

    def _who_asks(self, assignment: Assignment) -> str:
        """The member that asks for the next rebalance: preferably one with stores to fill."""
        filling = [m for m in sorted(assignment.active) if assignment.warm_ups[m] or assignment.coming[m]]
        return next(iter(filling or sorted(assignment.active)), "")

    def _read(
        self, members: Sequence[MemberInfo]
    ) -> tuple[dict[str, Subscription], dict[str, Mapping[TaskId, int]], dict[str, str]]:
        """The subscriptions of the members, the progress of the state that they report, and why other subscriptions
        cannot be read."""
        subscriptions: dict[str, Subscription] = {}
        states: dict[str, Mapping[TaskId, int]] = {}
        errors: dict[str, str] = {}
        for member in members:
            try:
                said = decode_subscription(member.user_data)
                states[member.member_id] = state_of(said)
                subscriptions[member.member_id] = said
            except TopologyError as error:
                log.warning("member %s cannot take part: %s", member.member_id, error)
                errors[member.member_id] = str(error)
        return subscriptions, states, errors

    def _topology_of(self, fingerprint: str, subscriptions: Mapping[str, Subscription]) -> bytes:
        """The topology of the leader, or of one of the members; empty if no member has sent it."""
        if fingerprint == self.fingerprint:
            return self.topology
        return next(
            (s.topology for s in subscriptions.values() if s.fingerprint == fingerprint and s.topology), b""
        )

    def _owned_tasks(self, members: Sequence[MemberInfo]) -> dict[str, frozenset[TaskId]]:
        task_of = {partition: task for task, inputs in self.inputs.items() for partition in inputs}
        return {
            member.member_id: frozenset(
                task_of[partition] for partition in member.owned if partition in task_of
            )
            for member in members
        }


def _with_whereabouts(
    common: AssignmentInfo, whereabouts: Whereabouts, subscriptions: Mapping[str, Subscription]
) -> dict[str, AssignmentInfo]:
    """For each member ``common``; one thread of each process gets ``whereabouts``, too. Members with an older version
    of pystreams all get it, in the fields that this version knows."""
    of_older = msgspec.structs.replace(common, **msgspec.structs.asdict(whereabouts))
    for_receiver = msgspec.structs.replace(common, whereabouts=pack_whereabouts(whereabouts))
    infos: dict[str, AssignmentInfo] = {}
    receivers: dict[tuple[str, int, str], str] = {}
    for member_id, said in sorted(subscriptions.items()):
        # Two processes have the same process id if a state directory was copied. Within one process the names of the
        # threads differ, but both processes have a thread with the receiver's name: so both receive it.
        receiver = receivers.setdefault((said.process_id, said.worker, said.endpoint), said.thread)
        infos[member_id] = (
            of_older if said.worker < 0 else for_receiver if said.thread == receiver else common
        )
    return infos


def owners_by_subtopology(stateful: Collection[TaskId], owner: Mapping[TaskId, int]) -> dict[int, list[int]]:
    """The owners of tasks in the form of ``Whereabouts.owners``. ``owner``: the index of the thread that has a task."""
    owners: dict[int, list[int]] = {}
    for subtopology, partition in sorted(stateful):
        of_partitions = owners.setdefault(subtopology, [])
        of_partitions += [-1] * (partition + 1 - len(of_partitions))
        of_partitions[partition] = owner.get(TaskId(subtopology, partition), -1)
    return owners


def followers_by_subtopology(standbys: Sequence[Collection[TaskId]]) -> dict[int, list[list[int]]]:
    """The followers of tasks in the form of ``Whereabouts.followers``. ``standbys`` has the standbys of each thread."""
    followers: dict[int, list[list[int]]] = {}
    for index, tasks in enumerate(standbys):
        for subtopology, partition in tasks:
            of_partitions = followers.setdefault(subtopology, [])
            of_partitions += [[] for _ in range(partition + 1 - len(of_partitions))]
            of_partitions[partition].append(index)
    return followers


def given_endpoints(endpoints: Iterable[str]) -> list[str]:
    """The endpoints of threads in the form of ``Whereabouts.endpoints``: empty if no thread has one."""
    given = list(endpoints)
    return given if any(given) else []


def _assignor_member(
    member_id: str, subscription: Subscription, owned: frozenset[TaskId], state: Mapping[TaskId, int]
) -> AssignorMember:
    return AssignorMember(
        member_id,
        subscription.process_id,
        subscription.thread,
        owned,
        state,
        unpack_tasks(subscription.standbys),
        unpack_tasks(subscription.coming),
        unpack_tasks(subscription.restoring),
        subscription.tags,
        subscription.rack,
    )


def _fingerprint_in_force(members: Sequence[MemberInfo], subscriptions: Mapping[str, Subscription]) -> str:
    """The topology that the group keeps: that of the members that own the most partitions; if equal, that of the most
    members."""
    votes: Counter[str] = Counter()
    for member in members:
        if member.member_id in subscriptions:
            votes[subscriptions[member.member_id].fingerprint] += 1 + len(members) * len(member.owned)
    return min(votes, key=lambda fingerprint: (-votes[fingerprint], fingerprint), default="")
