"""A large group in its worst case: every process has old state of all tasks on its disk, and all names are long."""

from __future__ import annotations

import random
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from pystreams.broker.kafka.coordinator import grouped
from pystreams.broker.port import MemberAssignment, MemberInfo
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.group.group_assignor import GroupAssignor
from pystreams.runtime.group.membership_data import (
    AssignmentInfo,
    Subscription,
    decode_assignment_info,
    encode,
    unpack_tasks,
)
from pystreams.runtime.group.situation import AssignorSettings
from pystreams.runtime.group.subscribing import OfProcess, OwnTasks, subscription_now

TOPICS = [
    f"orders-enrichment-KSTREAM-AGGREGATE-STATE-{number:08}-repartition".ljust(60, "x")
    for number in range(10)
]
INPUTS = {
    TaskId(sub, partition): frozenset({TopicPartition(topic, partition)})
    for sub, topic in enumerate(TOPICS)
    for partition in range(100)
}
TASKS = frozenset(INPUTS)
#: As large as that of ten sub-topologies, deflated.
TOPOLOGY = random.Random(7).randbytes(2_300)
#: What Kafka keeps of a member besides: its host, its timeouts, and the lengths of all.
_REST_BYTES = 40


class Log:
    """A log whose changelogs are long, and that has no racks."""

    def end_sums(self, tasks: Collection[TaskId]) -> Mapping[TaskId, int]:
        return dict.fromkeys(tasks, 10**9)

    def racks(self, partitions: object) -> Mapping[TaskId, list[frozenset[str]]]:
        return {}


ASSIGN = GroupAssignor(
    INPUTS,
    TASKS,
    "f" * 64,
    b"",
    INPUTS,
    AssignorSettings(num_standby_replicas=1, rack_aware_assignment_tags=("zone",)),
    Log(),
    follow_up_ms=600_000,
)


@dataclass(slots=True)
class Thread:
    """A thread of a process; the ``first`` of each speaks for all. ``on_disk`` is the state of its process."""

    process_id: str
    name: str
    zone: str
    first: bool
    on_disk: Mapping[TaskId, int]
    held: frozenset[TopicPartition] = frozenset()
    told: AssignmentInfo = field(default_factory=AssignmentInfo)

    @property
    def member_id(self) -> str:
        return f"{self.name}-{uuid.uuid5(uuid.NAMESPACE_DNS, self.name)}"

    def says(self) -> MemberInfo:
        base = Subscription(
            "f" * 64,
            self.process_id,
            self.name,
            worker=1,
            tags={"zone": self.zone},
            rack=self.zone,
            endpoint=f"{self.process_id[:8]}.orders.internal:8080",
            pystreams="1.12.3",
            python="3.11.12",
        )
        standbys = unpack_tasks(self.told.standbys)
        filled = standbys | {task for task, inputs in INPUTS.items() if inputs <= self.held}
        own = OwnTasks(standbys, reached={task: self.on_disk[task] for task in filled})
        of_process = OfProcess(self.on_disk, TOPOLOGY) if self.first else OfProcess()
        said = subscription_now(base, self.told, own, of_process, len(TASKS))
        return MemberInfo(self.member_id, encode(said), self.held)

    def hears(self, assigned: MemberAssignment) -> None:
        self.held = frozenset(assigned.partitions)
        self.told = decode_assignment_info(assigned.user_data)


def threads_of(processes: int, threads: int) -> list[Thread]:
    """The threads of a group. No two processes have got equally far, so that nothing can be said for both."""
    choose = random.Random(7)
    group = []
    for number in range(processes):
        process_id = str(uuid.UUID(int=choose.getrandbits(128)))
        on_disk = {task: choose.randrange(10**8, 10**9) for task in sorted(TASKS)}
        group += [
            Thread(
                process_id,
                f"orders-enrichment-{process_id}-1-StreamThread-{index}",
                "abc"[number % 3],
                index == 1,
                on_disk,
            )
            for index in range(1, threads + 1)
        ]
    return group


def kept_bytes(said: MemberInfo, assigned: MemberAssignment) -> int:
    """What Kafka keeps of a member, in its record of the group."""
    subscription = ConsumerProtocolSubscription(
        version=2,
        topics=TOPICS,
        user_data=said.user_data,
        owned_partitions=grouped(said.owned),
        generation_id=1,
    )
    assignment = ConsumerProtocolAssignment(
        version=1,
        assigned_partitions=grouped(assigned.partitions),
        user_data=assigned.user_data,
    )
    names = 2 * len(said.member_id)  # and that of the client, which is shorter
    return len(subscription.encode()) + len(assignment.encode()) + names + _REST_BYTES
