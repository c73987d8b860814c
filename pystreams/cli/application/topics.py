"""What commands ask of a loaded application, be it an ``App``, a ``StreamsBuilder`` or a ``Topology``."""

from __future__ import annotations

from pystreams.topology.built import BuiltTopology


def input_topics(built: BuiltTopology) -> list[str]:
    """The topics that an application reads and does not make itself, sorted. Without those that patterns find."""
    internal = built.internal_topics
    return sorted(
        {topic for sub in built.subtopologies for topic in sub.source_topics if topic not in internal}
    )


def output_topics(built: BuiltTopology) -> list[str]:
    """The topics that an application writes for others, sorted. Without those that are chosen record by record."""
    internal = built.internal_topics
    return sorted(
        {topic for sub in built.subtopologies for topic in sub.sink_topics if topic not in internal}
    )
