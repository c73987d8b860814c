"""The partition counts of internal topics, and the list of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pystreams.errors import TopicError
from pystreams.ids import TaskId, TopicPartition
from pystreams.topology.built import BuiltTopology, SubTopology
from pystreams.topology.nodes import ProcessorNode, SourceNode


@dataclass(frozen=True, slots=True)
class Partitioning:
    """Partition counts of the topics that the application creates, and its tasks with their input partitions,
    sorted."""

    repartition_topics: Mapping[str, int]
    changelog_topics: Mapping[str, int]
    tasks: Mapping[TaskId, tuple[TopicPartition, ...]]


def resolve_partitions(built: BuiltTopology, external: Mapping[str, int]) -> Partitioning:
    """Determine partition counts and tasks, given the partition counts of all existing topics.

    Patterns are matched against ``external``. Raises ``TopicError`` for a source topic that does not exist, and for
    topics that must be co-partitioned but are not. Source: RepartitionTopics, CopartitionedTopicsEnforcer,
    PartitionGrouper.
    """
    own = built.internal_topics
    existing = {topic: count for topic, count in external.items() if topic not in own}
    inputs = {sub.id: _input_topics(sub, existing, own) for sub in built.subtopologies}
    counts = existing | {name: t.partitions for name, t in own.items() if t.partitions is not None}
    _size_repartition_topics(built, inputs, counts)
    for sub in built.subtopologies:
        for group in _copartition_groups(sub, existing):
            _copartition(built, sub, group, counts)
    changelogs: dict[str, int] = {}
    tasks: dict[TaskId, tuple[TopicPartition, ...]] = {}
    for sub in built.subtopologies:
        topics = inputs[sub.id]
        width = max((counts[topic] for topic in topics), default=0)
        changelogs |= dict.fromkeys(sub.changelogs.values(), width)
        for i in range(width):
            tasks[TaskId(sub.id, i)] = tuple(TopicPartition(t, i) for t in topics if i < counts[t])
    return Partitioning({name: counts[name] for name in own}, changelogs, tasks)


def _copartition_groups(sub: SubTopology, existing: Mapping[str, int]) -> Iterable[frozenset[str]]:
    found = {node.name: [t for t in existing if p.fullmatch(t)] for p, node in sub.pattern_sources}
    named = {node.name: node.topics for node in sub.sources.values()}
    for names in sub.copartitioned_sources:
        yield frozenset(topic for name in names for topic in (*named.get(name, ()), *found.get(name, ())))


def _input_topics(sub: SubTopology, existing: Mapping[str, int], own: Iterable[str]) -> list[str]:
    missing = [topic for topic in sub.source_topics if topic not in existing and topic not in own]
    if missing:
        raise TopicError(
            f"topic {', '.join(missing)} does not exist",
            where=f"sub-topology {sub.id} reads it",
            why="the application never creates input topics",
            hint="create it with the number of partitions you want, then start again",
        )
    found = [topic for topic in existing if any(p.fullmatch(topic) for p, _ in sub.pattern_sources)]
    return sorted({*sub.source_topics, *found})


def _size_repartition_topics(
    built: BuiltTopology, inputs: Mapping[int, list[str]], counts: dict[str, int]
) -> None:
    """Give each repartition topic the largest partition count among the inputs of the sub-topologies that write to it.

    A topic is sized after the topics that feed it; where topics feed each other, the known sizes decide.
    """
    feeders = {
        name: [topic for sub in built.subtopologies if name in sub.sink_topics for topic in inputs[sub.id]]
        for name in built.internal_topics
    }
    unknown = [name for name in built.internal_topics if name not in counts]
    while unknown:
        ready = [name for name in unknown if feeders[name] and counts.keys() >= set(feeders[name])]
        ready = ready or [name for name in unknown if any(topic in counts for topic in feeders[name])][:1]
        if not ready:
            raise TopicError(
                f"the partition count of {', '.join(sorted(unknown))} cannot be determined",
                why="no topic that feeds it exists yet, or no topic matches the pattern of its source",
                hint="create the input topics, or give the repartition step partitions=",
            )
        counts |= {name: max(counts[t] for t in feeders[name] if t in counts) for name in ready}
        unknown = [name for name in unknown if name not in ready]


def _copartition(
    built: BuiltTopology, sub: SubTopology, group: frozenset[str], counts: dict[str, int]
) -> None:
    """Give the repartition topics of a co-partitioned group the partition count of its other topics."""
    own = built.internal_topics
    given = {topic: counts[topic] for topic in group if topic not in own}
    fixed = {
        t: own_partitions for t in group if t in own and (own_partitions := own[t].partitions) is not None
    }
    demanded = given | fixed
    if len(set(demanded.values())) > 1:
        spelled = ", ".join(f"{topic} has {count}" for topic, count in sorted(demanded.items()))
        step = _meeting_step(sub, group)
        raise TopicError(
            f"topics that must be co-partitioned have different numbers of partitions: {spelled}",
            where=f"application {built.application_id}" + (f", step {step}" if step else ""),
            why="a task reads the same partition of each topic, so a key must be in the same partition of all of them",
            hint="repartition one side: stream.repartition(partitions=...), or re-create the topic",
        )
    width = next(iter(demanded.values())) if demanded else max(counts[topic] for topic in group)
    for topic in group:
        if topic in own:
            counts[topic] = width


def _meeting_step(sub: SubTopology, group: frozenset[str]) -> str:
    """The first step that receives records of several topics of ``group``, directly or through a store."""
    reached: dict[str, set[str]] = {}
    in_store: dict[str, set[str]] = {}
    for node in sub.nodes:
        if isinstance(node, SourceNode):
            found = {t for t in group if sub.source_for(t) is node}
        else:
            found = set().union(*(reached[parent] for parent in node.parents))
        if isinstance(node, ProcessorNode):
            found |= set().union(*(in_store.get(store, set()) for store in node.stores))
            for store in node.stores:
                in_store.setdefault(store, set()).update(found)
        reached[node.name] = found
        if len(found) > 1 and not isinstance(node, SourceNode):
            return node.name
    return ""
