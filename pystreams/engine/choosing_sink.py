"""Sinks that choose the topic or partition of each record.

Source: org.apache.kafka.streams.processor.internals.RecordCollectorImpl, WindowedStreamPartitioner.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from pystreams.engine.failures.handling import Failures, Send
from pystreams.engine.task_flow import TaskFlow
from pystreams.errors import ProductionError
from pystreams.functions import UserFunction
from pystreams.partitioning import partition_for_key
from pystreams.processor import Partitioner, RecordContext
from pystreams.record import ContextCell, Headers
from pystreams.serde.base import AnySerde
from pystreams.topology.nodes import SinkNode


class _Writers(NamedTuple):
    key: Callable[[Any], bytes]
    value: Callable[[Any], bytes]
    #: Returns the part of the key that determines the partition; None: the whole key does.
    partition_bytes: Callable[[Any], bytes] | None
    #: Gets the timestamp of each written record.
    written: list[int]


class ChoosingSink:
    """A sink that has a topic chooser, a partitioner, or keys of which only a part determines the partition."""

    def __init__(
        self,
        node: SinkNode,
        key_serde: AnySerde,
        value_serde: AnySerde,
        send: Send,
        partition_count: Callable[[str], int],
        failures: Failures,
        cell: ContextCell,
        flow: TaskFlow,
    ) -> None:
        self._step = node.name
        self._cell = cell
        self._topic = node.topic
        self._choose: UserFunction | None = node.topic_chooser
        self._partitioner: Partitioner[Any, Any] | None = node.partitioner
        self._key_serde = key_serde
        self._value_serde = value_serde
        self._send = send
        self._partition_count = partition_count
        self._failures = failures
        self._flow = flow
        self._writers: dict[str, _Writers] = {}

    def write(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        """Serialize and send one record."""
        try:
            topic = self._topic or self._chosen_topic(key, value, timestamp, headers)
            partitions = self._chosen_partitions(topic, key, value)
        except Exception as error:  # noqa: BLE001 - users' functions raise what they like
            self._failures.failed(self._step, error, key, value)
            return
        if partitions is not None and not partitions:
            self._failures.count_drop(self._step, "the partitioner gave no partition")
            return
        writers = self._writers.get(topic) or self._writers_for(topic)
        try:
            key_bytes = None if key is None else writers.key(key)
            value_bytes = None if value is None else writers.value(value)
            if partitions is None:
                partitions = (self._default_partition(topic, key, writers),)
            for partition in partitions:
                self._send(topic, partition, key_bytes, value_bytes, timestamp, headers)
                writers.written.append(timestamp)
        except Exception as error:  # noqa: BLE001 - serdes raise what they like
            self._failures.unwritable(self._step, topic, error, key, value, timestamp, headers)

    def _chosen_topic(self, key: Any, value: Any, timestamp: int, headers: Headers) -> str:
        choose = self._choose
        assert choose is not None
        topic: object
        if choose.takes_context:
            topic = choose.call(key, value, RecordContext(*self._cell.record[:3], timestamp, headers))
        else:
            topic = choose.call(key, value) if choose.takes_key else choose.call(value)
        if not isinstance(topic, str) or not topic:
            raise TypeError(
                f"the topic chooser {choose.location} returned {topic!r}, not the name of a topic"
            )
        return topic

    def _chosen_partitions(self, topic: str, key: Any, value: Any) -> Collection[int | None] | None:
        """The partitions that the partitioner chose; None: the default partitioning applies."""
        if self._partitioner is None:
            return None
        count = self._partition_count(topic)
        choice = self._partitioner(topic, key, value, count)
        if choice is None:
            return None
        partitions = (choice,) if isinstance(choice, int) else tuple(dict.fromkeys(choice))
        for partition in partitions:
            if not 0 <= partition < count:
                raise ProductionError(
                    f"the partitioner of {self._step} chose partition {partition} of topic {topic}",
                    why=f"the topic has partitions 0 to {count - 1}",
                    hint="the partitioner's last argument is the number of partitions",
                )
        return partitions

    def _default_partition(self, topic: str, key: Any, writers: _Writers) -> int | None:
        if key is None or writers.partition_bytes is None:
            return None
        return partition_for_key(writers.partition_bytes(key), self._partition_count(topic))

    def _writers_for(self, topic: str) -> _Writers:
        writers = self._writers[topic] = _Writers(
            self._key_serde.key_serializer(topic),
            self._value_serde.serializer(topic),
            self._key_serde.partition_bytes(topic),
            self._flow.written(self._step, topic),
        )
        return writers
