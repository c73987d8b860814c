"""The topics that an application uses and does not create itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pystreams.broker.port import TopicSpec
from pystreams.config import StreamsConfig
from pystreams.topology.built import BuiltTopology
from pystreams.topology.nodes import SinkNode


@dataclass(frozen=True, slots=True)
class UsersTopics:
    """The topics that the topology names: not topics that match patterns or are chosen for each record."""

    read: frozenset[str]
    written: frozenset[str]

    @property
    def used(self) -> frozenset[str]:
        return self.read | self.written


def users_topics(built: BuiltTopology, config: StreamsConfig) -> UsersTopics:
    """Inputs, outputs and the dead-letter topic."""
    read = {topic for sub in built.subtopologies for topic in sub.source_topics} | built.global_topics
    written = {topic for sub in built.subtopologies for topic in sub.sink_topics}
    if config.errors_dead_letter_queue_topic_name is not None:
        written.add(config.errors_dead_letter_queue_topic_name)
    own = built.internal_topics.keys()
    return UsersTopics(frozenset(read - own), frozenset(written - own))


def missing_topics(
    built: BuiltTopology, config: StreamsConfig, existing: Mapping[str, int], partitions: int
) -> list[TopicSpec]:
    """The missing topics, with ``partitions``, or with the number of partitions of the topics that they are joined or
    merged with."""
    widths = dict(existing)
    widths |= {
        name: own.partitions for name, own in built.internal_topics.items() if own.partitions is not None
    }
    demanded: dict[str, int] = {}
    for sub in built.subtopologies:
        for group in sub.copartition_groups:
            demanded |= dict.fromkeys(
                group, max((widths[t] for t in group if t in widths), default=partitions)
            )
    missing = sorted(users_topics(built, config).used - existing.keys())
    return [TopicSpec(name, demanded.get(name, partitions)) for name in missing]


def unknown_topics(built: BuiltTopology) -> list[str]:
    """Descriptions of the topics whose names are known only at run time."""
    unknown = []
    for sub in built.subtopologies:
        unknown += [f"those that match {pattern.pattern}" for pattern, _ in sub.pattern_sources]
        unknown += [
            f"those that {node.name} chooses"
            for node in sub.nodes
            if isinstance(node, SinkNode) and node.topic is None
        ]
    return unknown
