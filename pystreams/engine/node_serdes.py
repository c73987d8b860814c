"""The serdes that a source or a sink reads and writes with."""

from __future__ import annotations

from pystreams.config import StreamsConfig
from pystreams.serde.base import AnySerde
from pystreams.serde.lookup import serde_for
from pystreams.topology.nodes import SinkNode, SourceNode


def serdes_of(node: SourceNode | SinkNode, config: StreamsConfig) -> tuple[AnySerde, AnySerde]:
    """The serdes of keys and values: those of the node, or else the default serdes."""
    return (
        node.key_serde or serde_for(config.default_key_serde),
        node.value_serde or serde_for(config.default_value_serde),
    )
