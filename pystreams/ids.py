"""The ids of topic-partitions, tasks and members of groups."""

from __future__ import annotations

from typing import NamedTuple


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
    """A member of a group. Static members also have an instance id, which they keep when they come back."""

    member_id: str
    instance_id: str | None = None
