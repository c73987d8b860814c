"""The topics of a loaded application, whether it is an ``App``, a ``StreamsBuilder`` or a ``Topology``."""

from __future__ import annotations

from pystreams.topology.built import BuiltTopology


def input_topics(built: BuiltTopology) -> list[str]:
    """The external topics that an application reads, sorted. Topics that match patterns are not included."""
    internal = built.internal_topics
    return sorted(
        {topic for sub in built.subtopologies for topic in sub.source_topics if topic not in internal}
    )


def output_topics(built: BuiltTopology) -> list[str]:
    """The output topics of an application, sorted. Topics that are chosen for each record are not included."""
    internal = built.internal_topics
    return sorted(
        {topic for sub in built.subtopologies for topic in sub.sink_topics if topic not in internal}
    )
