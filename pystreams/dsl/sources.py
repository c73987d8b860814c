"""Makes the source nodes of topics."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from pystreams.dsl.serdes import read_from_topic
from pystreams.errors import TopologyError
from pystreams.serde.base import AnySerde
from pystreams.timestamps import resolve_extractor
from pystreams.topology.arguments import checked_offset_reset, topic_names
from pystreams.topology.names import checked
from pystreams.topology.nodes import SourceNode

#: One topic, several, or all that match a pattern.
Topics = str | Iterable[str] | re.Pattern[str]


def source_serdes(name: str, key: Any, value: Any) -> tuple[AnySerde, AnySerde]:
    """The serdes of the keys and values of a source."""
    return read_from_topic(key, f"the keys of {name}"), read_from_topic(value, f"the values of {name}")


def source_node(
    name: str,
    topics: Topics,
    keys: AnySerde,
    values: AnySerde,
    timestamp_extractor: Any,
    auto_offset_reset: str | timedelta | None,
) -> SourceNode:
    """The node that reads ``topics``. Raises ``TopologyError`` if they do not name a topic."""
    pattern = topics if isinstance(topics, re.Pattern) else None
    found = () if isinstance(topics, re.Pattern) else topic_names(topics)
    if pattern is None and not found:
        raise TopologyError(f"{name} reads no topics", hint="name at least one")
    return SourceNode(
        name,
        tuple(checked(topic) for topic in dict.fromkeys(found)),
        pattern,
        keys,
        values,
        None if timestamp_extractor is None else resolve_extractor(timestamp_extractor),
        None if auto_offset_reset is None else checked_offset_reset(auto_offset_reset, name),
    )
