"""Runs a topology in the test's own thread, without a broker.

It works like Kafka Streams' TopologyTestDriver: one task holds all sub-topologies, every topic has one
partition, and after each record the caches are flushed and everything is committed. So a cache never collects several
updates of a key here: its effect on the output can only be seen in a running application.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from pystreams.clock import ManualClock, SystemClock
from pystreams.config import StreamsConfig
from pystreams.dsl.builder import StreamsBuilder, built_under, own_config, topology_of
from pystreams.dsl.serdes import TypeOrSerde
from pystreams.engine.commit import commit
from pystreams.engine.failures.lateness import LateRecords
from pystreams.engine.failures.left_out import LeftOut
from pystreams.engine.global_state import GlobalState
from pystreams.engine.hosted_task import HostedTask
from pystreams.engine.new_task import new_task
from pystreams.engine.stream_task import Position, TaskServices
from pystreams.errors import StateError, TopicError, summarize
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import Metrics
from pystreams.metrics.names import DROPPED_RECORDS
from pystreams.nearest import not_among
from pystreams.record import NO_HEADERS, Headers, RecordBatch
from pystreams.serde import AnySerde, serde_for
from pystreams.state.cache.thread_cache import ThreadCache
from pystreams.testing.java_order import JavaOrder
from pystreams.testing.producer import MemoryProducer, ProducedRecord
from pystreams.testing.topics import InputTopic, OutputTopic
from pystreams.times import Duration, Time, to_ms
from pystreams.topology.built import BuiltTopology
from pystreams.topology.nodes import Node, ProcessorNode, SinkNode, SourceNode
from pystreams.topology.topology import Topology

#: The application id if the test does not give one.
DEFAULT_APPLICATION_ID = "topology-test-driver"

_TASK = TaskId(0, 0)
_THREAD = "topology-test-driver"

K = TypeVar("K")
V = TypeVar("V")

LogChange = Callable[[bytes, bytes | None, int | None, Headers], None]


class TopologyTestDriver:
    """Processes piped records at once and keeps the output.

    Use it in a ``with`` statement; it deletes its state at the end::

        with TopologyTestDriver(app) as driver:
            lines = driver.create_input_topic("lines", value=str)
            counts = driver.create_output_topic("word-counts", key=str, value=int)
            lines.pipe_input("hello hello")
            assert counts.read_map() == {"hello": 2}

    ``topology`` is a ``Topology``, a ``StreamsBuilder`` or an ``App``; ``config`` is a ``StreamsConfig`` or a mapping
    of settings, which override those of an ``App``. The wall clock stands still until ``advance_wall_clock_time``.
    """

    def __init__(
        self,
        topology: Topology | StreamsBuilder,
        config: StreamsConfig | Mapping[str, Any] | None = None,
        *,
        initial_wall_clock: Time | None = None,
    ) -> None:
        self.config = _configuration(topology, config)
        self._clock = ManualClock(
            SystemClock().now_ms() if initial_wall_clock is None else to_ms(initial_wall_clock)
        )
        plan = topology_of(topology, self.config)
        built = built_under(plan, self.config)
        self._nodes = _in_order(plan, built)
        sources = [node for node in self._nodes if isinstance(node, SourceNode)]
        #: The patterns of sources, by their text. All topics of a pattern are read as one topic with this name.
        self._patterns = {node.pattern.pattern: node.pattern for node in sources if node.pattern is not None}
        topics = {topic for source in sources for topic in source.topics}
        #: The next offset of each topic that is read.
        self._offsets = dict.fromkeys(sorted(topics | self._patterns.keys()), 0)
        self._global_offsets = dict.fromkeys(sorted(built.global_topics), 0)
        self._changelogs = {name: t for sub in built.subtopologies for name, t in sub.changelogs.items()}
        sinks = [node for node in self._nodes if isinstance(node, SinkNode)]
        #: A sink that chooses by record may write to any topic.
        self._chooses_topics = any(sink.topic is None for sink in sinks)
        self._written = {sink.topic for sink in sinks if sink.topic is not None}
        self._written.update(self._changelogs.values())
        if self.config.errors_dead_letter_queue_topic_name is not None:
            self._written.add(self.config.errors_dead_letter_queue_topic_name)
        self._outputs: dict[str, deque[ProducedRecord]] = {}
        self._producer = MemoryProducer()
        self._failure: BaseException | None = None
        self._closed = False
        self.metrics = Metrics(self._clock)
        self._left_out = LeftOut(self.config.errors_dead_letter_queue_topic_name)
        self._folder = tempfile.TemporaryDirectory(prefix="pystreams-test-driver-")
        self._globals: GlobalState | None = None
        try:
            if built.global_stores:
                self._globals = self._global_state(built)
            self._hosted = self._new_task(built)
            self._task, self._state = self._hosted.stream, self._hosted.state
            try:
                cache = ThreadCache(self.config.statestore_cache_max_bytes)
                self._hosted.start(cache, dict.fromkeys(self._task.partitions, Position(0, -1)), {})
            except BaseException:
                self._state.close()
                raise
        except BaseException:
            self._close_globals()
            self._folder.cleanup()
            raise

    @overload
    def create_input_topic(
        self,
        topic: str,
        *,
        key: TypeOrSerde[K],
        value: TypeOrSerde[V],
        start: Time | None = ...,
        auto_advance: Duration = ...,
    ) -> InputTopic[K, V]: ...
    @overload
    def create_input_topic(
        self,
        topic: str,
        *,
        key: Any = ...,
        value: TypeOrSerde[V],
        start: Time | None = ...,
        auto_advance: Duration = ...,
    ) -> InputTopic[Any, V]: ...
    @overload
    def create_input_topic(
        self, topic: str, *, key: Any = ..., start: Time | None = ..., auto_advance: Duration = ...
    ) -> InputTopic[Any, bytes]: ...
    def create_input_topic(
        self,
        topic: str,
        *,
        key: Any = bytes,
        value: Any = bytes,
        start: Time | None = None,
        auto_advance: Duration = 0,
    ) -> InputTopic[Any, Any]:
        """A topic to write to. ``key`` and ``value`` are types or serdes. ``start`` is its first record's timestamp, by
        default the wall clock's time; ``auto_advance`` is added for each later record."""
        first = self._clock.now_ms() if start is None else start
        return InputTopic(self, topic, self._serde(key), self._serde(value), first, auto_advance)

    @overload
    def create_output_topic(
        self, topic: str, *, key: TypeOrSerde[K], value: TypeOrSerde[V]
    ) -> OutputTopic[K, V]: ...
    @overload
    def create_output_topic(
        self, topic: str, *, key: Any = ..., value: TypeOrSerde[V]
    ) -> OutputTopic[Any, V]: ...
    @overload
    def create_output_topic(self, topic: str, *, key: Any = ...) -> OutputTopic[Any, bytes]: ...
    def create_output_topic(
        self, topic: str, *, key: Any = bytes, value: Any = bytes
    ) -> OutputTopic[Any, Any]:
        """A topic to read from: the topic of a sink, or an internal one by its full name. Reading from a topic that the
        topology does not write to raises ``TopicError``."""
        return OutputTopic(self, topic, self._serde(key), self._serde(value))

    def _serde(self, given: Any) -> AnySerde:
        """The serde. If it needs a schema registry, it gets that of the application."""
        return serde_for(given).configured(self.config.serde_settings)

    def pipe_bytes(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers = NO_HEADERS,
    ) -> None:
        """Write a record of arbitrary bytes, and process it and all records that result from it.

        The timestamp (ms) may be negative. Raises ``TopicError`` for a topic that no source reads, and ``StateError``.
        """
        self._check_open()
        if topic in self._global_offsets:
            self._apply_globally(topic, key, value, timestamp, headers)
            return
        self._enqueue(topic, key, value, timestamp, headers)
        self._complete()

    def advance_wall_clock_time(self, duration: Duration) -> None:
        """Advance the wall clock and call each punctuator that is due once."""
        self._check_open()
        self._clock.advance_ms(to_ms(duration))
        with self._working():
            self._task.punctuate_wall_clock(self._clock.now_ms())
            self._commit()
        self._complete()

    @property
    def produced_topics(self) -> frozenset[str]:
        """The topics that records were written to, internal ones with their full names."""
        return frozenset(self._outputs)

    def next_record(self, topic: str) -> ProducedRecord | None:
        """Remove and return the oldest record of a topic, as bytes; None if there is none."""
        queue = self._output_queue(topic)
        return queue.popleft() if queue else None

    def read_raw(self, topic: str) -> list[ProducedRecord]:
        """Remove and return all records of a topic, as bytes."""
        queue = self._output_queue(topic)
        records = list(queue)
        queue.clear()
        return records

    def queue_size(self, topic: str) -> int:
        """The number of a topic's records that have not been read."""
        return len(self._output_queue(topic))

    @property
    def store_names(self) -> frozenset[str]:
        return frozenset(self._state.stores) | (self._globals.stores.keys() if self._globals else set())

    def store(self, name: str) -> Any:
        """A store, to check its content or to fill it. Raises ``StateError`` if the topology has no store of that
        name."""
        if self._globals is not None and name in self._globals.stores:
            return self._globals.written_store(name)
        if name not in self._state.stores:
            raise StateError(
                f"there is no store {name!r}", **not_among(name, self.store_names, "the topology has")
            )
        self._task.cell.record = (None, -1, -1, 0, NO_HEADERS)
        return self._state.stores[name]

    @property
    def stream_time(self) -> int:
        """The greatest timestamp processed, -1 before the first record. Timestamps of global tables do not count."""
        return self._task.stream_time

    @property
    def dropped_records(self) -> int:
        """The number of dropped records: null keys, late records, bad records."""
        return int(self.metrics.total(DROPPED_RECORDS))

    @property
    def left_out(self) -> dict[str, int]:
        """The number of records that were moved to the dead-letter topic, skipped because they failed, or dropped, in
        these words. A record that several windows drop counts once."""
        return self._left_out.totals()

    @property
    def late_records(self) -> list[LateRecords]:
        """The records that were dropped because they were too late for a window, by step: how many, how late, and the
        grace that would have kept them."""
        return self._left_out.late()

    def close(self) -> None:
        """Flush, close all processors and delete the state. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._failure is None:
                self._commit()
                self._collect()
            self._task.close()
        finally:
            self._close_globals()
            self._state.close()
            self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Processing

    def _check_open(self) -> None:
        if self._closed:
            raise StateError(
                "the test driver is closed", hint="pipe records and advance time inside the with statement"
            )
        if self._failure is not None:
            raise StateError(
                "the test driver has failed before, and processes nothing any more",
                why=summarize(self._failure),
                hint="make a new driver; or let a handler skip bad records, as in "
                'TopologyTestDriver(app, {"processing_exception_handler": "continue"})',
            )

    def _complete(self) -> None:
        """Process all buffered records one by one, with a commit after each."""
        self._collect()
        with self._working():
            # The time to wait for empty partitions (``max_task_idle_ms``) begins when a record could be processed.
            while self._has_buffered() and self._task.process(1, self._clock.now_ms()):
                self._commit()
                self._collect()

    def _commit(self) -> None:
        commit([self._hosted], self._producer)

    def _collect(self) -> None:
        """Keep the produced records as output, and queue those that a source reads."""
        for record in self._producer.take():
            self._outputs.setdefault(record.topic, deque()).append(record)
            if record.timestamp is not None and record.topic in self._global_offsets:
                self._apply_globally(record.topic, record.key, record.value, record.timestamp, record.headers)
            elif record.timestamp is not None and self._input_for(record.topic) is not None:
                self._enqueue(record.topic, record.key, record.value, record.timestamp, record.headers)

    def _enqueue(
        self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers
    ) -> None:
        queue = self._input_for(topic)
        if queue is None:
            raise TopicError(
                f"no source reads topic {topic!r}", **not_among(topic, self._offsets, "topics that are read")
            )
        offset = self._offsets[queue]
        self._offsets[queue] = offset + 1
        columns = [key], [value], [timestamp], [offset], [headers] if headers else None
        with self._working():
            self._task.add_batch(RecordBatch(topic, 0, *columns, offset + 1), TopicPartition(queue, 0))

    def _apply_globally(
        self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers
    ) -> None:
        """Write a record to the global store of its topic at once."""
        assert self._globals is not None
        offset = self._global_offsets[topic]
        self._global_offsets[topic] = offset + 1
        columns = [key], [value], [timestamp], [offset], [headers] if headers else None
        with self._working():
            self._globals.apply([RecordBatch(topic, 0, *columns, offset + 1)])

    def _close_globals(self) -> None:
        if self._globals is not None:
            self._globals.close()

    def _input_for(self, topic: str) -> str | None:
        """The name of the queue for a topic's records: the topic itself, or the text of a pattern that it matches."""
        if topic in self._offsets:
            return topic
        return next((text for text, pattern in self._patterns.items() if pattern.fullmatch(topic)), None)

    def _has_buffered(self) -> bool:
        return any(self._task.buffered(partition) for partition in self._task.partitions)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Mark the task as failed if the block raises. ``close`` then does not commit it, and it processes no more
        records."""
        try:
            yield
        except BaseException as error:
            self._failure = error
            raise

    # Set-up

    def _log_of(self, store: str) -> LogChange | None:
        topic, send = self._changelogs.get(store), self._producer.send_to_changelog
        if topic is None:
            return None
        return lambda key, value, timestamp, headers: send(topic, 0, key, value, timestamp, headers)

    def _global_state(self, built: BuiltTopology) -> GlobalState:
        state = GlobalState(
            built,
            self.config,
            lambda _: 1,
            metrics=self.metrics,
            clock=self._clock,
            thread_id=_THREAD,
            directory=Path(self._folder.name) / "global",
        )
        try:
            state.start(dict.fromkeys(state.partitions, 0))
        except BaseException:
            state.close()
            raise
        return state

    def _new_task(self, built: BuiltTopology) -> HostedTask:
        specs = {spec.name: spec for spec in built.stores}
        users = (node.stores for node in self._nodes if isinstance(node, ProcessorNode))
        services = TaskServices(
            config=self.config,
            metrics=self.metrics,
            clock=self._clock,
            producer=self._producer,
            partition_count=lambda _: 1,
            lag=lambda _: 0,
            thread_id=_THREAD,
            global_stores={} if self._globals is None else self._globals.stores,
            left_out=self._left_out,
        )
        task = new_task(
            _TASK,
            self._nodes,
            [specs[name] for name in dict.fromkeys(name for names in users for name in names)],
            [TopicPartition(topic, 0) for topic in self._offsets],
            services=services,
            directory=Path(self._folder.name),
            log_of=self._log_of,
            order=JavaOrder(),
        )
        task.changelogs = {name: TopicPartition(topic, 0) for name, topic in self._changelogs.items()}
        return task

    def _output_queue(self, topic: str) -> deque[ProducedRecord]:
        queue = self._outputs.get(topic)
        if queue is not None:
            return queue
        if not self._chooses_topics and topic not in self._written:
            raise TopicError(
                f"nothing writes to topic {topic!r}",
                **not_among(topic, self._written, "topics that are written"),
            )
        return deque()


def _configuration(
    topology: Topology | StreamsBuilder, config: StreamsConfig | Mapping[str, Any] | None
) -> StreamsConfig:
    """The given settings, which override those of an ``App``."""
    if isinstance(config, StreamsConfig):
        return config
    own = own_config(topology)
    if own is not None:
        return own.override(config or {})
    return StreamsConfig.from_mapping({"application_id": DEFAULT_APPLICATION_ID} | dict(config or {}))


def _in_order(plan: Topology, built: BuiltTopology) -> Sequence[Node]:
    """The nodes of all sub-topologies in the order in which they were added, which is the order of flushing stores."""
    nodes = {node.name: node for sub in built.subtopologies for node in sub.nodes}
    return [nodes[name] for name in plan.nodes if name in nodes]
