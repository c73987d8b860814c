"""The assignor in the form of the membership port: from members' bytes to partitions and plans, without side
effects."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pystreams.broker.port import MemberAssignment, MemberInfo
from pystreams.errors import TopologyError
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.group.assignor import AssignorMember, assign_tasks
from pystreams.runtime.group.membership_data import AssignmentInfo, Subscription, decode_subscription, encode

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GroupAssignor:
    """Assigns the tasks of one topology. ``inputs`` are the input partitions of every task; ``stateful`` the tasks
    that have stores to restore. Called by whichever member leads the group; ``fingerprint`` and ``topology``
    (``pack_topology``) are its own."""

    inputs: Mapping[TaskId, frozenset[TopicPartition]]
    stateful: frozenset[TaskId]
    fingerprint: str
    topology: bytes

    def __call__(self, members: Sequence[MemberInfo]) -> dict[str, MemberAssignment]:
        """Assign the tasks to the members that can take part. The others get no partitions, and the reason."""
        subscriptions, unreadable = self._read(members)
        refused = {member_id: AssignmentInfo(error=error) for member_id, error in unreadable.items()}
        fingerprint = _fingerprint_in_force(members, subscriptions)
        in_force = self._topology_of(fingerprint, subscriptions)
        for member_id, subscription in list(subscriptions.items()):
            if subscription.fingerprint != fingerprint:
                error = _mismatch(subscription, fingerprint)
                refused[member_id] = AssignmentInfo(error=error, topology=in_force)
                del subscriptions[member_id]
        shutdown = any(subscription.shutdown for subscription in subscriptions.values())
        owned = {member.member_id: self._owned_tasks(member.owned) for member in members}
        tasks = assign_tasks(
            self.inputs,
            self.stateful,
            [
                AssignorMember(member_id, s.process_id, s.thread, owned[member_id], _state(s))
                for member_id, s in subscriptions.items()
            ],
        )
        result = {member_id: MemberAssignment((), encode(info)) for member_id, info in refused.items()}
        threads = sorted(tasks) if self.stateful else []
        info = encode(
            AssignmentInfo(
                tasks=len(self.inputs),
                members=len(subscriptions),
                shutdown=shutdown,
                threads=[subscriptions[member_id].thread for member_id in threads],
                owners=self._owners([tasks[member_id] for member_id in threads]),
            )
        )
        for member_id, assigned in tasks.items():
            partitions = sorted(partition for task in assigned for partition in self.inputs[task])
            result[member_id] = MemberAssignment(tuple(partitions), info)
        return result

    def _owners(self, assigned: Sequence[Collection[TaskId]]) -> dict[int, list[int]]:
        """As ``AssignmentInfo.owners``: the tasks of each member, the other way round."""
        owner = {task: index for index, tasks in enumerate(assigned) for task in tasks}
        owners: dict[int, list[int]] = {}
        for subtopology, partition in sorted(self.stateful):
            of_partitions = owners.setdefault(subtopology, [])
            of_partitions += [-1] * (partition + 1 - len(of_partitions))
            of_partitions[partition] = owner.get(TaskId(subtopology, partition), -1)
        return owners

    def _read(self, members: Sequence[MemberInfo]) -> tuple[dict[str, Subscription], dict[str, str]]:
        subscriptions: dict[str, Subscription] = {}
        errors: dict[str, str] = {}
        for member in members:
            try:
                subscriptions[member.member_id] = decode_subscription(member.user_data)
            except TopologyError as error:
                log.warning("member %s cannot take part: %s", member.member_id, error)
                errors[member.member_id] = str(error)
        return subscriptions, errors

    def _topology_of(self, fingerprint: str, subscriptions: Mapping[str, Subscription]) -> bytes:
        """The topology of the leader, or of one of the members; empty if no member has sent it."""
        if fingerprint == self.fingerprint:
            return self.topology
        return next(
            (s.topology for s in subscriptions.values() if s.fingerprint == fingerprint and s.topology), b""
        )

    def _owned_tasks(self, owned: frozenset[TopicPartition]) -> frozenset[TaskId]:
        return frozenset(task for task, inputs in self.inputs.items() if inputs & owned)


def _state(subscription: Subscription) -> dict[TaskId, int]:
    return {TaskId.parse(task): reached for task, reached in subscription.state.items()}


def _fingerprint_in_force(members: Sequence[MemberInfo], subscriptions: Mapping[str, Subscription]) -> str:
    """The topology that the group keeps: the one of most of the owned partitions, then of most members."""
    votes: Counter[str] = Counter()
    for member in members:
        if member.member_id in subscriptions:
            votes[subscriptions[member.member_id].fingerprint] += 1 + len(members) * len(member.owned)
    return min(votes, key=lambda fingerprint: (-votes[fingerprint], fingerprint), default="")


def _mismatch(subscription: Subscription, fingerprint: str) -> str:
    return (
        f"the topology of {subscription.thread} differs from the one that the group runs "
        f"(fingerprint {subscription.fingerprint[:12]}, the group's {fingerprint[:12]})"
    )
