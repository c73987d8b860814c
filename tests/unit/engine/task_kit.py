"""Tasks out of hand-made nodes, without a broker and without state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pystreams.clock import ManualClock
from pystreams.config import StreamsConfig
from pystreams.engine.input.partition_group import HeadOrder
from pystreams.engine.stream_task import Position, StreamTask, TaskServices
from pystreams.functions import Form, UserFunction
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics.registry import Metrics
from pystreams.record import ContextCell, Headers, RecordBatch
from pystreams.serde import STR
from pystreams.serde.base import AnySerde
from pystreams.testing.producer import MemoryProducer
from pystreams.topology.nodes import Node, Operation, ProcessorNode, SinkNode, SourceNode


class Harness:
    """A running task with what stands around it."""

    def __init__(
        self,
        nodes: Sequence[Node],
        *,
        partitions: Mapping[str, int] | None = None,
        stores: Mapping[str, Any] | None = None,
        committed: Mapping[TopicPartition, Position] | None = None,
        operator_state: Mapping[str, int] | None = None,
        partition_count: int = 4,
        order: HeadOrder | None = None,
        started: bool = True,
        **settings: Any,
    ) -> None:
        self.producer = MemoryProducer()
        self.clock = ManualClock(1_000_000)
        self.metrics = Metrics()
        self.lags: dict[TopicPartition, int | None] = {}
        services = TaskServices(
            config=StreamsConfig.from_mapping({"application_id": "app", **settings}),
            metrics=self.metrics,
            clock=self.clock,
            producer=self.producer,
            partition_count=lambda topic: partition_count,
            lag=lambda partition: self.lags.get(partition, 0),
            thread_id="thread",
        )
        topics = [topic for node in nodes if isinstance(node, SourceNode) for topic in node.topics]
        self.partitions = [
            TopicPartition(topic, i) for topic in topics for i in range((partitions or {}).get(topic, 1))
        ]
        self.task = StreamTask(
            TaskId(0, 1),
            nodes,
            self.partitions,
            cell=ContextCell(),
            stores=stores or {},
            services=services,
            order=order,
        )
        if started:
            self.task.start(committed or {}, operator_state or {})
        self._offsets: dict[TopicPartition, int] = {}

    def feed(
        self, *records: tuple[Any, Any, int], topic: str = "in", partition: int = 0, headers: Headers = ()
    ) -> None:
        """Buffer (key, value, timestamp) records; strings become their bytes, integers 8 bytes."""
        where = TopicPartition(topic, partition)
        start = self._offsets.get(where, 0)
        self._offsets[where] = start + len(records)
        self.task.add_batch(
            RecordBatch(
                topic,
                partition,
                [to_bytes(key) for key, _, _ in records],
                [to_bytes(value) for _, value, _ in records],
                [timestamp for _, _, timestamp in records],
                range(start, start + len(records)),
                [headers] * len(records) if headers else None,
                start + len(records),
            )
        )

    def process(self, max_records: int = 1_000_000) -> int:
        return self.task.process(max_records, self.clock.now_ms())

    def run(self, *records: tuple[Any, Any, int], topic: str = "in") -> None:
        self.feed(*records, topic=topic)
        self.process()

    def written(self, topic: str = "out") -> list[tuple[str | None, str | None, int | None]]:
        """(key, value, timestamp) of what was written to a topic, as text."""
        return [(text(r.key), text(r.value), r.timestamp) for r in self.producer.records if r.topic == topic]

    def values(self, topic: str = "out") -> list[str | None]:
        return [value for _, value, _ in self.written(topic)]

    def dropped(self) -> float:
        return self.metrics.total("dropped-records-total")


def to_bytes(item: Any) -> bytes | None:
    if isinstance(item, str):
        return item.encode()
    return item.to_bytes(8, "big", signed=True) if isinstance(item, int) else item


def text(item: bytes | None) -> str | None:
    return None if item is None else item.decode()


def fn(function: Callable[..., Any], form: Form = "value") -> UserFunction:
    return UserFunction.of(function, form, "test")


def source(*topics: str, name: str = "source", value: AnySerde = STR, extractor: Any = None) -> SourceNode:
    return SourceNode(
        name, topics or ("in",), key_serde=STR, value_serde=value, timestamp_extractor=extractor
    )


def step(name: str, parents: str | tuple[str, ...], operation: Operation, *stores: str) -> ProcessorNode:
    return ProcessorNode(name, (parents,) if isinstance(parents, str) else parents, operation, list(stores))


def sink(
    parents: str | tuple[str, ...],
    topic: str | None = "out",
    *,
    name: str = "sink",
    key: AnySerde = STR,
    value: AnySerde = STR,
    chooser: Callable[..., Any] | None = None,
    partitioner: Any = None,
) -> SinkNode:
    return SinkNode(
        name,
        (parents,) if isinstance(parents, str) else parents,
        topic,
        topic_chooser=None if chooser is None else fn(chooser),
        key_serde=key,
        value_serde=value,
        partitioner=partitioner,
    )
