"""The global stores of one process: the task that fills them, and the read-only views that other threads get.

Source: org.apache.kafka.streams.processor.internals.{GlobalStateUpdateTask, GlobalStateManagerImpl}.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any, Final

from pystreams.clock import Clock
from pystreams.config import StreamsConfig
from pystreams.engine.commit import commit
from pystreams.engine.failures.left_out import LeftOut
from pystreams.engine.hosted_task import HostedTask
from pystreams.engine.new_task import new_task
from pystreams.engine.no_producer import NoProducer
from pystreams.engine.processors.punctuation import PunctuationQueue, Schedule
from pystreams.engine.stream_task import Position, TaskServices
from pystreams.errors import ProcessingError, StateError
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import Metrics
from pystreams.record import Headers, RecordBatch
from pystreams.state.cache.thread_cache import ThreadCache
from pystreams.state.departed import position_name
from pystreams.state.disk.rocksdb_memory import RocksResources
from pystreams.state.iterators import StoreIterator
from pystreams.state.store import READS
from pystreams.topology.built import BuiltTopology

log = logging.getLogger(__name__)

#: The id of the task that fills global stores. It belongs to no sub-topology; Java uses the same number.
GLOBAL_TASK: Final = TaskId(-1, -1)

_RECORDS_AT_ONCE: Final = 10_000
#: Prefixes of the names of further methods that only read, beside ``READS``: those of operators.
_OPERATORS_READ: Final = ("fetch", "find", "get", "range", "read")


class GlobalStoreView:
    """A read-only view of a global store for processors, joins and queries of any thread. Only the global thread writes
    to the store."""

    def __init__(self, store: Any, lock: RLock) -> None:
        self.name: str = store.name
        self.spec = store.spec
        self.encode_key: Callable[[Any], bytes] = store.encode_key
        self._store = store
        self._lock = lock
        if hasattr(store, "read") and store.spec.max_entries is None:
            #: Returns the item of a serialized key. It needs no lock, because every entry changes atomically.
            self.read: Callable[[bytes], Any] = store.read

    def __repr__(self) -> str:
        return f"GlobalStoreView({self._store!r})"

    def without_headers(self) -> GlobalStoreView:
        """A view of the same store that shows values without their headers."""
        return GlobalStoreView(self._store.without_headers(), self._lock)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in READS and not name.startswith(_OPERATORS_READ):
            raise StateError(
                f"global store {self.name} can only be read here: there is no {name}",
                why="it is filled from its topic, in the same way in every process",
                hint="write to its topic instead",
            )

        def read(*arguments: Any, **named: Any) -> Any:
            with self._lock:
                found = method(*arguments, **named)
                # A store in memory may change while it is iterated, so the iterator is read to its end under the lock.
                return _Snapshot(found) if isinstance(found, StoreIterator) else found

        return read


class _Snapshot(StoreIterator[Any, Any]):
    """An iterator over entries that have all been read already."""

    __slots__ = ()

    def __init__(self, entries: StoreIterator[Any, Any]) -> None:
        with entries:
            found = list(entries)
        super().__init__("", iter(found), lambda key, value: (key, value))


class GlobalState:
    """The task that fills the global stores of one process, and their files. One thread uses it."""

    def __init__(
        self,
        built: BuiltTopology,
        config: StreamsConfig,
        partition_count: Callable[[str], int],
        *,
        metrics: Metrics,
        clock: Clock,
        thread_id: str,
        directory: Path,
        resources: RocksResources | None = None,
        origin: str | None = None,
        left_out: LeftOut | None = None,
    ) -> None:
        """``directory`` holds the stores, ``origin`` identifies the log that they are filled from.

        Raises ``StateLockedError``, ``StateCorruptedError``, ``StateError``, ``ProcessingError``.
        """
        self._clock = clock
        self._lock = RLock()
        self._persistent = {one.topic for one in built.global_stores if one.spec.persistent}
        self.partitions = frozenset(
            TopicPartition(topic, n) for topic in built.global_topics for n in range(partition_count(topic))
        )
        #: The store that each topic fills.
        self.store_of: Mapping[str, str] = {one.topic: one.spec.name for one in built.global_stores}
        self._producer = _DeadLetters()
        services = TaskServices(
            config=_settings(config),
            metrics=metrics,
            clock=clock,
            producer=self._producer,
            partition_count=partition_count,
            lag=lambda _: 0,
            thread_id=thread_id,
            left_out=left_out or LeftOut(),
        )
        self._hosted = self._open(built, services, directory, resources, origin)
        self._hosted.metadata = self._positions
        self._task, self._state = self._hosted.stream, self._hosted.state
        self.stores = {name: GlobalStoreView(store, self._lock) for name, store in self._state.stores.items()}

    def _open(
        self,
        built: BuiltTopology,
        services: TaskServices,
        directory: Path,
        resources: RocksResources | None,
        origin: str | None,
    ) -> HostedTask:
        return new_task(
            GLOBAL_TASK,
            [node for one in built.global_stores for node in (one.source, one.processor)],
            # The topic of a global store is its changelog: a damaged store can be filled from it again.
            [replace(one.spec, source_topic=one.topic) for one in built.global_stores],
            self.partitions,
            services=services,
            directory=directory,
            log_of=lambda _: None,
            resources=resources,
            origin=origin,
        )

    def written_store(self, name: str) -> Any:
        """The writable store. Only the thread that uses this object may use it."""
        return self._state.stores[name]

    def positions(self) -> dict[TopicPartition, int]:
        """The offsets up to which the persistent stores contain their partitions; unknown ones are left out."""
        found = {
            p: self._state.metadata(self._name(p)) for p in self.partitions if p.topic in self._persistent
        }
        return {partition: offset for partition, offset in found.items() if isinstance(offset, int)}

    def without_position(self) -> list[str]:
        """Persistent stores whose content has no known offset: they were filled from another topic, or a crash has
        interrupted their first commit."""
        known = {partition.topic for partition in self.positions()}
        unknown = [self.store_of[topic] for topic in sorted(self._persistent - known)]
        return [store for store in unknown if not self._state.is_empty(store)]

    def start(self, positions: Mapping[TopicPartition, int]) -> None:
        """Begin to process at ``positions``. Raises ``ProcessingError`` if a processor's ``init`` does."""
        self._task.stream_punctuations = self._task.wall_punctuations = _NoPunctuation()
        self._hosted.start(ThreadCache(0), {p: Position(offset, -1) for p, offset in positions.items()}, {})

    def add(self, batch: RecordBatch) -> None:
        """Buffer a batch; ``apply`` processes it."""
        with self._lock:
            self._task.add_batch(batch)

    def apply(self, batches: Iterable[RecordBatch] = ()) -> None:
        """Process all buffered batches and ``batches``, and commit the stores. Raises ``ProcessingError`` or
        ``SerializationError`` if a handler chooses to fail."""
        task, now_ms = self._task, self._clock.now_ms()
        with self._lock:
            for batch in batches:
                task.add_batch(batch)
            while task.process(_RECORDS_AT_ONCE, now_ms):
                pass
            commit([self._hosted], self._producer)

    def _positions(self) -> Mapping[str, int]:
        """The next offset of each partition, which is written together with the stores."""
        return {self._name(p): position.offset for p, position in self._task.positions().items()}

    def _name(self, partition: TopicPartition) -> str:
        return position_name(self.store_of[partition.topic], partition)

    def interrupt(self) -> None:
        """Make ``apply`` stop after the current record, and process nothing more. May be called from any thread."""
        self._task.interrupt()

    def close(self, *, wipe: bool = False) -> None:
        """Close the processors and the stores; with ``wipe`` also delete the stores from the disk."""
        try:
            self._task.close()
        finally:
            if wipe:
                self._state.wipe()
            else:
                self._state.close()


def _settings(config: StreamsConfig) -> StreamsConfig:
    """The settings of the global task. It does not wait for partitions without records. An error of a processor stops
    the client, unless ``processing_exception_handler_global_enabled`` is set."""
    settings: dict[str, Any] = {"max_task_idle_ms": -1}
    if not config.processing_exception_handler_global_enabled:
        settings["processing_exception_handler"] = "fail"
    return config.override(settings)


class _NoPunctuation(PunctuationQueue):
    """Refuses schedules: punctuators would make global stores differ between processes, which must be equal.

    Source: GlobalProcessorContextImpl.schedule.
    """

    def add(self, schedule: Schedule) -> None:
        raise ProcessingError(
            "the processor of a global store scheduled a punctuator",
            why="what it stores must follow from the records of its topic alone",
            hint="schedule in a processor of a stream",
        )


class _DeadLetters(NoProducer):
    """The producer of the global task. It writes no dead letters, because the topic still has the records."""

    def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
    ) -> None:
        """Log the dead letter instead of writing it. Java does not write dead letters of global stores, either."""
        log.warning(
            "a dead letter of a global store is not written to %s: its topic still has the record", topic
        )
