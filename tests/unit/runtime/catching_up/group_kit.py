"""A group in memory: topics that grow, and what its tasks have committed."""

from __future__ import annotations

from collections.abc import Mapping

from pystreams.broker.port import CommittedOffset
from pystreams.engine.offset_metadata import encode_committed
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.catching_up.group_lag import GroupLag, GroupView, Reading
from pystreams.runtime.catching_up.stages import order
from pystreams.topology.built import BuiltTopology

COMMIT_INTERVAL_MS = 30_000
WAIT_MAX_MS = 300_000
DISTANCE_MS_MIN = 60_000


def inputs_of(built: BuiltTopology, partitions: int) -> dict[TaskId, frozenset[TopicPartition]]:
    """The inputs of all tasks, if each topic has so many partitions."""
    return {
        TaskId(sub.id, n): frozenset(TopicPartition(topic, n) for topic in sub.source_topics)
        for sub in built.subtopologies
        for n in range(partitions)
    }


class Group:
    """Sub-topologies, each with one topic ``t<number>`` that it reads, and others if they are given."""

    def __init__(
        self,
        writers_of: Mapping[int, set[int]],
        partitions: int = 1,
        *,
        hold_back: Mapping[int, int] | None = None,
        timed: frozenset[int] | None = None,
        more_inputs: Mapping[int, str] | None = None,
        by_time: bool = True,
        wait_max_ms: float = WAIT_MAX_MS,
    ) -> None:
        others = more_inputs or {}
        self.topics = {sub: [f"t{sub}", *([others[sub]] if sub in others else [])] for sub in writers_of}
        self.inputs = {
            TaskId(sub, n): frozenset(TopicPartition(topic, n) for topic in topics)
            for sub, topics in self.topics.items()
            for n in range(partitions)
        }
        writers = {sub: frozenset(those) for sub, those in writers_of.items()}
        self.lag = GroupLag(
            order(
                writers,
                {sub: (hold_back or {}).get(sub, 0) for sub in writers},
                frozenset({max(writers)}) if timed is None else timed,
            ),
            self.inputs,
            {sub: {f"t{sub}": those} for sub, those in writers.items()},
            commit_interval_ms=COMMIT_INTERVAL_MS,
            wait_max_ms=wait_max_ms,
            distance_ms_min=DISTANCE_MS_MIN,
            by_time=by_time,
        )
        self.now_ms = 1_000.0
        self.beginnings = dict.fromkeys((p for ps in self.inputs.values() for p in ps), 0)
        self.ends = dict(self.beginnings)
        self.committed: dict[TopicPartition, CommittedOffset] = {}

    def write(self, sub: int, partition: int, records: int, topic: str | None = None) -> None:
        """Records arrive in an input of a sub-topology."""
        self.ends[TopicPartition(topic or f"t{sub}", partition)] += records

    def commit(
        self,
        sub: int,
        partition: int,
        *offsets: int,
        time: int,
        seen: int | None = None,
        times: Mapping[str, int] | None = None,
        head: int | None = None,
    ) -> None:
        """A task commits offsets of its topics, in their order, with its stream time, the time of its inputs, and that
        of its next record."""
        positions = {
            TopicPartition(topic, partition): at for topic, at in zip(self.topics[sub], offsets, strict=False)
        }
        own = {"py//time": time} if seen is None else {"py//time": time, "py//seen": seen}
        own |= {} if head is None else {"py//head": head}
        partition_times = {p: (times or {}).get(p.topic, time) for p in positions}
        self.committed |= encode_committed(positions, partition_times, own, {})

    def read(self, after_ms: float = 200) -> GroupView:
        """What follows from the offsets some time later."""
        self.now_ms += after_ms
        missing = {p: at for p, at in self.beginnings.items() if p not in self.committed}
        return self.lag.update(Reading(self.now_ms, dict(self.committed), missing, dict(self.ends)))
