"""Finds the sub-topologies that write the inputs of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pystreams.topology.built import BuiltTopology


def topics_between(built: BuiltTopology) -> frozenset[str]:
    """The topics that the application both writes and reads: its repartition topics, and the user's topics through
    which one part of the program continues another. Topics that are chosen for each record are not known."""
    written = {topic for sub in built.subtopologies for topic in sub.sink_topics}
    return frozenset(
        topic for topic in written if any(sub.source_for(topic) is not None for sub in built.subtopologies)
    )


def writers(built: BuiltTopology) -> dict[int, frozenset[int]]:
    """By sub-topology: the other ones that write to topics that it reads."""
    return {
        reader.id: frozenset(
            writer.id
            for writer in built.subtopologies
            if writer.id != reader.id and any(reader.source_for(topic) for topic in writer.sink_topics)
        )
        for reader in built.subtopologies
    }


def writers_by_topic(built: BuiltTopology) -> dict[int, dict[str, frozenset[int]]]:
    """By sub-topology and topic that it reads: the sub-topologies that write to the topic."""
    topics = topics_between(built)
    return {
        reader.id: {
            topic: frozenset(writer.id for writer in built.subtopologies if topic in writer.sink_topics)
            for topic in topics
            if reader.source_for(topic) is not None
        }
        for reader in built.subtopologies
    }


def upstream(writers_of: Mapping[int, frozenset[int]], subtopologies: Iterable[int]) -> frozenset[int]:
    """All sub-topologies upstream of one of ``subtopologies``. These are themselves among them only if they are
    upstream of another one, or in a cycle. ``writers_of`` comes from ``writers``."""
    found: set[int] = set()
    unvisited = list(subtopologies)
    while unvisited:
        new = writers_of[unvisited.pop()] - found
        found |= new
        unvisited += new
    return frozenset(found)
