"""What the tasks of a live run must have: each task by itself, record by record, in the order in which it read them.

No thread, no broker, no stop: a record goes through alone, and caches are flushed where live flushed them; without
caches, behind each record. The records of internal topics are those that the log has.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pystreams.clock import ManualClock
from pystreams.config import StreamsConfig
from pystreams.engine.commit import commit
from pystreams.engine.global_state import GlobalState
from pystreams.engine.hosted_task import HostedTask
from pystreams.engine.input.partition_group import NEVER_IDLE
from pystreams.engine.new_task import new_task
from pystreams.engine.no_producer import NoProducer
from pystreams.engine.stream_task import Position, TaskServices
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import Metrics
from pystreams.record import Headers, RecordBatch
from pystreams.state.cache.thread_cache import ThreadCache
from pystreams.testing.producer import MemoryProducer
from pystreams.topology.built import BuiltTopology
from tests.backfill.kit import sent
from tests.backfill.live import BUFFERS
from tests.live.random_topologies.recording import Contents, Event, Read, contents
from tests.live.random_topologies.trials import CACHE_MAX_BYTES, Trial
from tests.live.support import Line

_WALL_MS = 1_700_000_000_000

#: The partition of a record without a key: which one is chance.
ANYWHERE = -1

#: By topic and partition, by offset.
Records = Mapping[TopicPartition, Mapping[int, Line]]


class Expected(NamedTuple):
    """Of one task: what its stores hold, what a query gives of them, and what it wrote to topics and changelogs."""

    contents: Contents
    queried: dict[str, list[str]]
    sent: dict[TopicPartition, list[Line]]
    changes: dict[str, list[Line]]


#: What holds records back nobody may query; what keeps versions is asked key by key.
NOT_QUERIED = BUFFERS | {"versioned"}


def queried(stores: Mapping[str, Any]) -> dict[str, list[str]]:
    """What a query for all gives of stores."""
    return {
        name: sorted(map(repr, store.without_headers().all()))
        for name, store in stores.items()
        if store.spec.kind not in NOT_QUERIED
    }


def tasks_of(built: BuiltTopology, counts: Mapping[str, int]) -> list[TaskId]:
    """All tasks of an application, by the partitions of its topics."""
    return [
        TaskId(number, partition)
        for number, sub in enumerate(built.subtopologies)
        for partition in range(max(counts[topic] for topic in sub.source_topics))
    ]


class Reference:
    """Computes tasks of one application; ``counts`` has the partitions of each topic."""

    def __init__(
        self,
        trial: Trial,
        built: BuiltTopology,
        config: StreamsConfig,
        counts: Mapping[str, int],
        records: Records,
    ) -> None:
        self._trial = trial
        self._built = built
        self._config = config.override({"max_task_idle_ms": NEVER_IDLE})
        self._counts = counts
        self._records = records
        self._metrics = Metrics()

    def expected(self, events: Mapping[TaskId, Sequence[Event]]) -> Mapping[TaskId, Expected]:
        """What each task has behind its events."""
        with tempfile.TemporaryDirectory() as folder, self._globals(Path(folder) / "global") as stores:
            return {
                task: self._one(task, events.get(task, ()), Path(folder) / str(task), stores)
                for task in tasks_of(self._built, self._counts)
            }

    def _one(
        self, task: TaskId, events: Sequence[Event], folder: Path, stores: Mapping[str, Any]
    ) -> Expected:
        producer = MemoryProducer()
        changes: dict[str, list[Line]] = {}
        services = TaskServices(
            config=self._config,
            metrics=self._metrics,
            clock=ManualClock(_WALL_MS),
            producer=producer,
            partition_count=self._counts.__getitem__,
            lag=lambda _: 0,
            thread_id="reference",
            global_stores=stores,
        )
        made = self._new_task(task, services, folder, changes)
        try:
            cache = ThreadCache(CACHE_MAX_BYTES if self._trial.cached else 0)
            made.start(cache, dict.fromkeys(made.stream.partitions, Position(0, -1)), {})
            self._feed(made, events)
            written = sent(producer, self._counts.__getitem__, lambda _: ANYWHERE)
            found = Expected(contents(made.stream), queried(made.state.stores), written, changes)
            made.stream.close()
            return found
        finally:
            made.state.close()

    def _feed(self, made: HostedTask, events: Sequence[Event]) -> None:
        partition = made.stream.task_id.partition
        for event in events:
            if isinstance(event, Read):
                at = TopicPartition(event.topic, partition)
                made.stream.add_batch(_batch(at, event.offset, self._records[at][event.offset]))
                while made.stream.buffered(at):
                    made.stream.process(1, _WALL_MS)
            if not (isinstance(event, Read) and self._trial.cached):
                commit([made], NoProducer())

    def _new_task(
        self, task: TaskId, services: TaskServices, folder: Path, changes: dict[str, list[Line]]
    ) -> HostedTask:
        sub = self._built.subtopologies[task.subtopology]

        def log_of(store: str) -> Any:
            logged = changes.setdefault(store, [])

            def log(key: bytes, value: bytes | None, timestamp: int | None, headers: Headers) -> None:
                logged.append(Line(key, value, timestamp or 0, headers))

            return log if store in sub.changelogs else None

        return new_task(
            task,
            sub.nodes,
            sub.stores,
            [
                TopicPartition(topic, task.partition)
                for topic in sub.source_topics
                if task.partition < self._counts[topic]
            ],
            services=services,
            directory=folder,
            log_of=log_of,
        )

    @contextmanager
    def _globals(self, folder: Path) -> Iterator[Mapping[str, Any]]:
        """Global stores, with all that their topics have."""
        if not self._built.global_stores:
            yield {}
            return
        state = GlobalState(
            self._built,
            self._config,
            self._counts.__getitem__,
            metrics=self._metrics,
            clock=ManualClock(_WALL_MS),
            thread_id="reference",
            directory=folder,
        )
        try:
            state.start(dict.fromkeys(state.partitions, 0))
            for partition in sorted(state.partitions):
                of_partition = self._records[partition].items()
                state.apply([_batch(partition, offset, line) for offset, line in of_partition])
            yield state.stores
        finally:
            state.close()


def _batch(at: TopicPartition, offset: int, line: Line) -> RecordBatch:
    columns = [line.key], [line.value], [line.timestamp], [offset], [line.headers]
    return RecordBatch(at.topic, at.partition, *columns, offset + 1)
