"""The plan of a backfill: slices in the order in which they can be computed, with their tasks.

A slice is a sub-topology and the inputs that it reads at one visit (see dependencies.py); each of its tasks is one
partition of it, as live. The records that a slice writes to an internal topic are staged, and later slices read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pystreams.backfill.plan.dependencies import Visit, visits
from pystreams.errors import TopicError, TopologyError
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
class BackfillPlan:
    """The slices of an application, and the partition counts of all topics that they read or write. ``global_topics``
    are those of global stores, with the store that each fills; the tasks of all slices may read these."""

    application_id: str
    fingerprint: str
    slices: tuple[Slice, ...]
    partitions: Mapping[str, int]
    global_topics: Mapping[str, str] = field(default_factory=dict)
    #: The stores whose values include headers, sorted. It is not part of the fingerprint: a live run may change it.
    with_headers: tuple[str, ...] = ()

    def title_of(self, one: Slice) -> str:
        """A slice for people: ``revenue, slice 2 of 3``, by its stores, or else by the topics that it writes."""
        makes = ", ".join(
            one.stores or one.sinks or one.repartitions or [input.topic for input in one.inputs]
        )
        return f"{makes}, slice {one.index + 1} of {len(self.slices)}"

    @property
    def external_inputs(self) -> list[TopicPartition]:
        """All partitions that slices read from outside, sorted."""
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
    def global_inputs(self) -> list[TopicPartition]:
        """All partitions of global topics, sorted."""
        return [
            TopicPartition(topic, partition)
            for topic in sorted(self.global_topics)
            for partition in range(self.partitions[topic])
        ]

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


def make_plan(built: BuiltTopology, partitions: Mapping[str, int]) -> BackfillPlan:
    """Plan the backfill of an application; ``partitions`` are the counts of all topics that exist outside of it.

    A sink topic that is not among them is taken to have as many partitions as the widest slice that writes it. Raises
    ``TopicError`` for inputs that do not exist or are not partitioned alike, ``TopologyError`` for a topic that the
    application both writes and reads, and for one that feeds itself.
    """
    _require_global_topics(built, partitions)
    partitioning = resolve_partitions(built, partitions)
    topics = _topics(built, partitioning)
    _refuse_written_inputs(built, topics)
    counts = {**partitions, **partitioning.repartition_topics}
    slices = _slices(built, visits(built, topics), counts, partitioning)
    for one in slices:
        for topic in one.sinks:
            if topic not in partitions:
                counts[topic] = max(counts.get(topic, 0), one.tasks)
    global_topics = {store.topic: store.spec.name for store in built.global_stores}
    with_headers = tuple(sorted(spec.name for spec in built.stores if spec.headers))
    return BackfillPlan(
        built.application_id, built.fingerprint, tuple(slices), counts, global_topics, with_headers
    )


def _topics(built: BuiltTopology, partitioning: Partitioning) -> dict[int, list[str]]:
    """The topics that each sub-topology reads, sorted."""
    topics: dict[int, set[str]] = {sub.id: set() for sub in built.subtopologies}
    for task, inputs in partitioning.tasks.items():
        topics[task.subtopology].update(partition.topic for partition in inputs)
    return {sub: sorted(found) for sub, found in topics.items()}


def _require_global_topics(built: BuiltTopology, partitions: Mapping[str, int]) -> None:
    for store in built.global_stores:
        if store.topic not in partitions:
            raise TopicError(
                f"topic {store.topic} does not exist",
                where=f"global store {store.spec.name} of application {built.application_id}",
                why="input topics are never created by the application",
                hint="create it, or name a source that has it",
            )


def _refuse_written_inputs(built: BuiltTopology, topics: Mapping[int, list[str]]) -> None:
    own = built.internal_topics
    read = {topic for of_sub in topics.values() for topic in of_sub if topic not in own} | built.global_topics
    for sub in built.subtopologies:
        for topic in sub.sink_topics:
            if topic in read:
                raise TopologyError(
                    f"the application both writes topic {topic} and reads it, which a backfill cannot",
                    where=f"application {built.application_id}, sub-topology {sub.id} writes it",
                    why="the application itself wrote the records that the topic already holds: they would count twice",
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
