"""The serdes and timestamp extractors of sources and sinks: their own, or the defaults of the application."""

from __future__ import annotations

from pystreams.config import StreamsConfig
from pystreams.serde.base import AnySerde
from pystreams.serde.lookup import serde_for
from pystreams.timestamps import TimestampExtractor, WallClockTimestamp, resolve_extractor
from pystreams.topology.nodes import SinkNode, SourceNode


def serdes_of(node: SourceNode | SinkNode, config: StreamsConfig) -> tuple[AnySerde, AnySerde]:
    """The serdes of keys and values: those of the node, or the default serdes."""
    return (
        node.key_serde or serde_for(config.default_key_serde),
        node.value_serde or serde_for(config.default_value_serde),
    )


def extractor_of(source: SourceNode, config: StreamsConfig) -> TimestampExtractor | WallClockTimestamp:
    """The timestamp extractor of the source, or the default one."""
    return resolve_extractor(source.timestamp_extractor or config.default_timestamp_extractor)
