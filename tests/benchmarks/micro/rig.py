"""What the benchmarks run on: a task without a broker, and a task's state without a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pystreams import StreamsBuilder, StreamsConfig
from pystreams.clock import ManualClock
from pystreams.engine.no_producer import NoProducer
from pystreams.engine.stream_task import Position, StreamTask, TaskServices
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import Metrics
from pystreams.record import NO_HEADERS, ContextCell, Headers, RecordBatch
from pystreams.state.cache.thread_cache import ThreadCache
from pystreams.state.spec import StoreSpec
from pystreams.state.task_stores import TaskStores

TASK = TaskId(0, 0)
INPUT = TopicPartition("in", 0)
NOON_MS = 1_357_041_600_000


class Rig:
    """A task that reads ``inputs``. ``feed`` decodes a batch, ``run`` processes it; all of it is in memory."""

    def __init__(
        self,
        state: TaskStores,
        task: StreamTask,
        keys: Sequence[bytes],
        values: Sequence[bytes],
        inputs: Sequence[TopicPartition],
    ) -> None:
        self.state = state
        self._task = task
        self._keys = list(keys)
        self._values = list(values)
        self._inputs = inputs
        self._next_offset = 0

    def feed(self, *, batch: int | None = None, stretch: int = 1) -> None:
        """Buffer all records once more, later ones each time: in batches of ``batch``, dealt out to the inputs in
        stretches of ``stretch`` consecutive times."""
        first, n, several = self._next_offset, len(self._keys), len(self._inputs)
        self._next_offset = first + n
        size = batch or n
        for start in range(0, n, size * several):
            for place, (topic, partition) in enumerate(self._inputs):
                mine = [
                    i for i in range(start, min(start + size * several, n)) if i // stretch % several == place
                ]
                times = [NOON_MS + first + i for i in mine]
                keys, values = [self._keys[i] for i in mine], [self._values[i] for i in mine]
                offsets = [first + i for i in mine]
                end = offsets[-1] + 1
                self._task.add_batch(RecordBatch(topic, partition, keys, values, times, offsets, None, end))

    def run(self) -> int:
        """Process what is buffered; what is written stays in cache and overlay."""
        return self._task.process(len(self._keys), NOON_MS)

    def close(self) -> None:
        self._task.close()
        self.state.close()


@contextmanager
def rig(
    build: Callable[[StreamsBuilder], Any],
    keys: Sequence[bytes],
    values: Sequence[bytes],
    *,
    cache_bytes: int = 1 << 30,
    inputs: Sequence[TopicPartition] = (INPUT,),
) -> Iterator[Rig]:
    """A task of the only sub-topology that ``build`` makes."""
    builder = StreamsBuilder()
    build(builder)
    (sub,) = builder.build().build("bench").subtopologies
    cell = ContextCell()
    state = TaskStores.open(
        None,
        sub.stores,
        task_id=TASK,
        cell=cell,
        log_of=lambda store: _unlogged,
        topic_of=lambda store: f"bench-{store}-changelog",
    )
    services = TaskServices(
        config=StreamsConfig.of(application_id="bench"),
        metrics=Metrics(),
        clock=ManualClock(NOON_MS),
        producer=NoProducer(),
        partition_count=lambda topic: 1,
        lag=lambda partition: 0,
        thread_id="bench",
    )
    task = StreamTask(TASK, sub.nodes, inputs, cell=cell, stores=state.stores, services=services)
    state.attach(ThreadCache(cache_bytes))
    task.start({partition: Position(0, -1) for partition in inputs}, {})
    made = Rig(state, task, keys, values, inputs)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def opened(
    spec: StoreSpec, directory: Path | None = None, cache_bytes: int = 1 << 30
) -> Iterator[TaskStores]:
    """The state of a task with one store, a record of topic ``in`` being processed."""
    cell = ContextCell()
    state = TaskStores.open(
        directory,
        [spec],
        task_id=TASK,
        cell=cell,
        log_of=lambda store: _unlogged,
        topic_of=lambda store: f"bench-{store}-changelog",
    )
    state.attach(ThreadCache(cache_bytes))
    cell.record = (INPUT.topic, INPUT.partition, 0, NOON_MS, NO_HEADERS)
    try:
        yield state
    finally:
        state.close()


def _unlogged(key: bytes, value: bytes | None, timestamp: int | None, headers: Headers) -> None:
    """A changelog that costs nothing."""
