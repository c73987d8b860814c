"""The ids of topic-partitions, tasks and members of groups."""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID, uuid5

_INSTANCES: Final = UUID("6d1f2a58-3c0b-4c39-9d25-7b0c8a3f4e11")


class TopicPartition(NamedTuple):
    """One partition of a topic. Sorts by topic, then partition: records of equal time are processed in this order."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TaskId(NamedTuple):
    """A sub-topology and a partition, printed ``0_1`` as in Kafka Streams."""

    subtopology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TaskId:
        """The task that ``text`` (``"0_1"``) names. Raises ``ValueError`` for anything else."""
        subtopology, _, partition = text.partition("_")
        return cls(int(subtopology), int(partition))


class MemberName(NamedTuple):
    """A member of a group. Static members also have an instance id, which they keep when they come back. One that has
    yet to join has an empty member id."""

    member_id: str
    instance_id: str | None = None


def instance_id_of(given: str, worker: int, thread: int) -> str:
    """The instance id of a thread, from the ``group_instance_id`` of its application and the number of its worker.
    Source: StreamsConfig.getMainConsumerConfigs, without the worker's number."""
    return f"{given}-{worker}-{thread}"


def transactional_id_of_instance(group: str, instance_id: str) -> str:
    """The transactional id of a static member, the same after each restart. Instance ids may contain anything: ``shop``
    with ``eu-1`` must not look like ``shop-eu`` with ``1``. So a hash of both stands where others have the random id of
    their process."""
    return f"{group}-{uuid5(_INSTANCES, f'{group} {instance_id}')}-1"
