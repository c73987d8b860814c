"""The application in the form in which a broker assigns its tasks, and the broker's assignment in the form of the
group's own assignor: ``group_protocol="streams"`` (KIP-1071)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from pystreams.broker.group_application import BrokerAssignment, GroupApplication, GroupSubtopology
from pystreams.config import StreamsConfig
from pystreams.errors import TopologyError
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.group.group_assignor import (
    followers_by_subtopology,
    given_endpoints,
    owners_by_subtopology,
)
from pystreams.runtime.group.membership_data import AssignmentInfo, encode, pack_tasks
from pystreams.topology.built import BuiltTopology, SubTopology


@dataclass(frozen=True, slots=True)
class BrokerAssignor:
    """Describes one application to the broker. ``inputs`` are those of all tasks, ``stateful`` the tasks with
    stores."""

    built: BuiltTopology
    inputs: Mapping[TaskId, frozenset[TopicPartition]]
    stateful: frozenset[TaskId]
    partition_count: Callable[[str], int]
    process_id: str

    def application(
        self,
        thread: str,
        config: StreamsConfig,
        shuts_down: Callable[[], bool],
        difference: Callable[[], str],
    ) -> GroupApplication:
        """The application as a thread describes it. Raises ``TopologyError`` for a topology that brokers do not
        accept."""
        internal = self.built.internal_topics
        return GroupApplication(
            tuple(_subtopology(sub, internal, self.partition_count) for sub in self.built.subtopologies),
            self.inputs,
            self.built.fingerprint,
            self.process_id,
            thread,
            config.client_tags,
            config.client_rack,
            self._to_member,
            shuts_down,
            difference,
            config.application_server or "",
        )

    def _to_member(self, assigned: BrokerAssignment) -> tuple[tuple[TopicPartition, ...], bytes]:
        of_standbys = {name for names in assigned.followers.values() for name in names}
        threads = sorted({*assigned.owners.values(), *of_standbys})
        info = AssignmentInfo(
            tasks=len(self.inputs),
            members=len(set(assigned.owners.values())),
            shutdown=assigned.shutdown,
            threads=threads,
            owners=owners_by_subtopology(self.stateful, self._owners(assigned.owners, threads)),
            standbys=pack_tasks(assigned.standbys & self.inputs.keys()),
            endpoints=given_endpoints(name if name in assigned.endpoints else "" for name in threads),
            followers=followers_by_subtopology(
                [self._followed(assigned.followers, name) for name in threads]
            ),
        )
        known = assigned.active & self.inputs.keys()
        return tuple(sorted(p for task in known for p in self.inputs[task])), encode(info)

    def _owners(self, owners: Mapping[TopicPartition, str], threads: list[str]) -> dict[TaskId, int]:
        """For each task the index of the thread that has it."""
        index = {thread: number for number, thread in enumerate(threads)}
        return {
            task: index[owners[first]]
            for task, of_task in self.inputs.items()
            if (first := next((p for p in of_task if p in owners), None)) is not None
        }

    def _followed(self, followers: Mapping[TopicPartition, tuple[str, ...]], name: str) -> list[TaskId]:
        """The standbys with stores of a thread."""
        return [
            task
            for task in sorted(self.stateful)
            if any(name in followers.get(partition, ()) for partition in self.inputs[task])
        ]


def _subtopology(
    sub: SubTopology, internal: Collection[str], partition_count: Callable[[str], int]
) -> GroupSubtopology:
    if sub.pattern_sources:
        patterns = ", ".join(pattern.pattern for pattern, _ in sub.pattern_sources)
        raise TopologyError(
            "With group_protocol=streams topics cannot be chosen by a pattern",
            where=f"sub-topology {sub.id}, pattern {patterns}",
            why="brokers do not take regular expressions as sources yet (Kafka 4.3)",
            hint="name the topics, or use group_protocol=classic",
        )
    repartition = sub.repartition_source_topics
    return GroupSubtopology(
        sub.id,
        tuple(topic for topic in sub.source_topics if topic not in repartition),
        {topic: partition_count(topic) for topic in sorted(repartition)},
        tuple(topic for topic in sub.sink_topics if topic in internal),
        tuple(sorted(sub.changelogs.values())),
        sub.copartition_groups,
    )
