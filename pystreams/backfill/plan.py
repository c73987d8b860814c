"""What a backfill does, before it reads anything: slices in the order in which they can be computed, with their tasks.

A slice is a sub-topology and the inputs that it reads at one visit (see dependencies.py); each of its tasks is one
partition of it, as live. What a slice writes to an internal topic is staged and read by the slices behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pystreams.backfill.dependencies import Visit, visits
from pystreams.errors import TopologyError
from pystreams.ids import TopicPartition
from pystreams.topology.built import BuiltTopology
from pystreams.topology.partitions import Partitioning, resolve_partitions


@dataclass(frozen=True, slots=True)
class SliceInput:
    """A topic that a slice reads. ``upstream`` are the slices that write it, in order; none: it is an external one."""

    topic: str
    partitions: int
    upstream: tuple[int, ...] = ()

    @property
    def internal(self) -> bool:
        return bool(self.upstream)


@dataclass(frozen=True, slots=True)
class Slice:
    """A sub-topology at one visit. Its tasks are the partitions 0 to ``tasks`` - 1."""

    index: int
    subtopology: int
    tasks: int
    inputs: tuple[SliceInput, ...]
    #: The slice that visited the sub-topology before; its tasks' state is carried on.
    carried_from: int | None
    #: False: the sub-topology is visited again, so its stores are not final.
    final: bool
    #: By name, each with its changelog topic (None: it has none).
    stores: Mapping[str, str | None]
    #: Internal topics that it writes.
    repartitions: tuple[str, ...]
    #: Other topics that it writes; those chosen by record are not known.
    sinks: tuple[str, ...]

    def topics_of(self, task: int) -> list[SliceInput]:
        """The inputs of one task, whose partition has the task's number."""
        return [input for input in self.inputs if task < input.partitions]


@dataclass(frozen=True, slots=True)
class Plan:
    """The slices of an application, and the partition counts of all topics that they read or write."""

    application_id: str
    fingerprint: str
    slices: tuple[Slice, ...]
    partitions: Mapping[str, int]

    @property
    def external_inputs(self) -> list[TopicPartition]:
        """All partitions to read from outside, sorted."""
        return sorted(
            {
                TopicPartition(input.topic, partition)
                for one in self.slices
                for input in one.inputs
                if not input.internal
                for partition in range(input.partitions)
            }
        )

    @property
    def widest(self) -> int:
        """The tasks of the widest slice: as many partitions has a topic that the plan does not know, because records
        choose it or because it is for dead letters. All slices agree on it, or a key would be in several partitions."""
        return max((one.tasks for one in self.slices), default=1)

    def partitions_of(self, topic: str) -> int:
        """How many partitions a topic is written with."""
        return self.partitions.get(topic, self.widest)

    @property
    def topics(self) -> list[str]:
        """The topics that slices read and write, sorted; those that are chosen by record are not known."""
        read = {input.topic for one in self.slices for input in one.inputs}
        return sorted(read.union(*(one.repartitions + one.sinks for one in self.slices)))

    def last_visit(self, subtopology: int) -> Slice:
        """The slice whose stores and offsets count."""
        return next(one for one in self.slices if one.subtopology == subtopology and one.final)


def make_plan(built: BuiltTopology, partitions: Mapping[str, int]) -> Plan:
    """Plan the backfill of an application; ``partitions`` are the counts of all topics that exist outside of it.

    A sink topic that is not among them is taken to have as many partitions as the widest slice that writes it. Raises
    ``TopicError`` for inputs that do not exist or are not partitioned alike, ``TopologyError`` for a topic that the
    application both writes and reads, and for one that feeds itself.
    """
    _refuse_global_stores(built)
    _refuse_versioned_stores(built)
    partitioning = resolve_partitions(built, partitions)
    topics = _topics(built, partitioning)
    _refuse_written_inputs(built, topics)
    counts = {**partitions, **partitioning.repartition_topics}
    slices = _slices(built, visits(built, topics), counts, partitioning)
    for one in slices:
        for topic in one.sinks:
            if topic not in partitions:
                counts[topic] = max(counts.get(topic, 0), one.tasks)
    return Plan(built.application_id, built.fingerprint, tuple(slices), counts)


def _topics(built: BuiltTopology, partitioning: Partitioning) -> dict[int, list[str]]:
    """The topics that each sub-topology reads, sorted."""
    topics: dict[int, set[str]] = {sub.id: set() for sub in built.subtopologies}
    for task, inputs in partitioning.tasks.items():
        topics[task.subtopology].update(partition.topic for partition in inputs)
    return {sub: sorted(found) for sub, found in topics.items()}


def _refuse_global_stores(built: BuiltTopology) -> None:
    if built.global_stores:
        names = ", ".join(store.spec.name for store in built.global_stores)
        raise TopologyError(
            f"a backfill cannot fill global stores yet: {names}",
            where=f"application {built.application_id}",
            why="every task of every slice would have to read their topics whole before it begins",
            hint="read the topic with table() and join by its key, or by foreign_key=; or start the application live "
            "from the beginning of its inputs",
        )


def _refuse_versioned_stores(built: BuiltTopology) -> None:
    names = [spec.name for spec in built.stores if spec.kind == "versioned"]
    if names:
        raise TopologyError(
            f"a backfill cannot hand versioned stores over yet: {', '.join(names)}",
            where=f"application {built.application_id}",
            why="a changelog gets the last record of each key from a backfill, and they need all versions",
            hint="leave history= out, or start the application live from the beginning of its inputs",
        )


def _refuse_written_inputs(built: BuiltTopology, topics: Mapping[int, list[str]]) -> None:
    own = built.internal_topics
    read = {topic for of_sub in topics.values() for topic in of_sub if topic not in own}
    for sub in built.subtopologies:
        for topic in sub.sink_topics:
            if topic in read:
                raise TopologyError(
                    f"the application both writes topic {topic} and reads it, which a backfill cannot",
                    where=f"application {built.application_id}, sub-topology {sub.id} writes it",
                    why="what the topic holds already was written by the application itself: it would count twice",
                    hint="use stream.repartition() between the two steps, or make them two applications",
                )


def _slices(
    built: BuiltTopology,
    order: list[Visit],
    counts: Mapping[str, int],
    partitioning: Partitioning,
) -> list[Slice]:
    slices: list[Slice] = []
    for index, visit in enumerate(order):
        sub = built.subtopologies[visit.subtopology]
        before = [one.index for one in slices if one.subtopology == sub.id]
        later = any(other.subtopology == sub.id for other in order[index + 1 :])
        inputs = (
            SliceInput(topic, counts[topic], tuple(one.index for one in slices if topic in one.repartitions))
            for topic in visit.topics
        )
        slices.append(
            Slice(
                index=index,
                subtopology=sub.id,
                tasks=sum(task.subtopology == sub.id for task in partitioning.tasks),
                inputs=tuple(inputs),
                carried_from=before[-1] if before else None,
                final=not later,
                stores={spec.name: sub.changelogs.get(spec.name) for spec in sub.stores},
                repartitions=tuple(topic for topic in sub.sink_topics if topic in built.internal_topics),
                sinks=tuple(topic for topic in sub.sink_topics if topic not in built.internal_topics),
            )
        )
    return slices
