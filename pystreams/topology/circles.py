"""Finds topics through which an application reads its own records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pystreams.topology.built import SubTopology
from pystreams.topology.nodes import SinkNode

#: The topics of one way from a topic back to itself: it is the first and the last of them.
Circle = tuple[str, ...]


def circles(subtopologies: Sequence[SubTopology]) -> list[Circle]:
    """The shortest way of records from each topic back to it, once for the same topics; it begins with a topic of the
    user's. Not found are ways through topics that are chosen for each record, through rows of tables that records are
    joined with, and through dead-letter topics."""
    found: dict[frozenset[str], Circle] = {}
    internal = {topic for sub in subtopologies for topic in sub.repartition_source_topics}
    written = {topic for sub in subtopologies for topic in sub.sink_topics}
    for topic in sorted(written, key=lambda topic: (topic in internal, topic)):
        way = _way_back(topic, subtopologies)
        if way is not None:
            found.setdefault(frozenset(way), way)
    return list(found.values())


def in_words(circle: Circle) -> str:
    """A circle, for people."""
    return (
        f"this application reads {circle[0]} and writes to it ({' -> '.join(circle)}): its records come back for ever,"
        " and the topics grow without end, unless a step on this way drops them. If that is not meant, write to"
        " another topic"
    )


def _way_back(topic: str, subtopologies: Sequence[SubTopology]) -> Circle | None:
    ways: list[Circle] = [(topic,)]
    seen: set[str] = set()
    for way in ways:  # it grows meanwhile: the shorter ways come first
        for written in _written_from(way[-1], subtopologies):
            if written == topic:
                return (*way, topic)
            if written not in seen:
                seen.add(written)
                ways.append((*way, written))
    return None


def _written_from(topic: str, subtopologies: Sequence[SubTopology]) -> Iterator[str]:
    """The topics to which records go that were read from ``topic``."""
    for sub in subtopologies:
        source = sub.source_for(topic)
        for step in () if source is None else sub.steps_after(source):
            if isinstance(step, SinkNode) and step.topic is not None:
                yield step.topic
