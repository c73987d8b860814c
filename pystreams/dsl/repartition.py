"""Repartition topics: records are written under their new key and read again, partitioned by it."""

from __future__ import annotations

from typing import Any

from pystreams.dsl.context import Context
from pystreams.dsl.operators.stateless import AnyKey, NotNullKey
from pystreams.serde.base import AnySerde
from pystreams.timestamps import FailOnInvalidTimestamp
from pystreams.topology.graph import NullKeyFilter, RepartitionGraphNode
from pystreams.topology.names import GENERATED, REPARTITION_SUFFIX, checked
from pystreams.topology.nodes import SinkNode, SourceNode


def repartition_node(
    context: Context,
    prefix: str,
    key: AnySerde,
    value: AnySerde,
    *,
    named_by_user: bool,
    partitioner: Any = None,
    partitions: int | None = None,
    optimizable: bool = True,
) -> RepartitionGraphNode:
    """A filter, and the sink and source of the topic ``<prefix>-repartition``. The node has the source's name.

    Source: KStreamImpl.createRepartitionedSource.
    """
    topic = checked(prefix if prefix.endswith(REPARTITION_SUFFIX) else prefix + REPARTITION_SUFFIX)
    if not named_by_user:
        context.unnamed("repartition topic", topic)
    sink = context.names.step("KSTREAM-SINK-")
    filter_ = context.names.step("KSTREAM-FILTER-")
    source = context.names.step("KSTREAM-SOURCE-")
    if not GENERATED.fullmatch(prefix):
        sink, filter_, source = f"{topic}-sink", f"{topic}-filter", f"{topic}-source"
    return RepartitionGraphNode(
        source,
        _sink(sink, topic, key, value, partitioner),
        _source(source, topic, key, value),
        partitions,
        NullKeyFilter(filter_, NotNullKey(), AnyKey()),
        optimizable,
    )


def table_repartition_node(
    sink: str, source: str, topic: str, key: AnySerde, change: AnySerde
) -> RepartitionGraphNode:
    """The sink and source of a topic of table changes. Source: GroupedTableOperationRepartitionNode."""
    return RepartitionGraphNode(
        source, _sink(sink, topic, key, change, None), _source(source, topic, key, change)
    )


def _sink(name: str, topic: str, key: AnySerde, value: AnySerde, partitioner: Any) -> SinkNode:
    return SinkNode(name, (), topic, None, key, value, partitioner)


def _source(name: str, topic: str, key: AnySerde, value: AnySerde) -> SourceNode:
    return SourceNode(name, (topic,), None, key, value, FailOnInvalidTimestamp())
