"""The metrics of stores and their caches. They are computed when they are read; nothing is counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pystreams.metrics import Sample, names
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.task_manager import TaskManager
from pystreams.state.figures import ROCKSDB_PROPERTIES, StoreFigures, state_tag

#: The names of all metrics here.
STORE_NAMES: Final = frozenset(
    {
        names.CACHE_SIZE,
        names.CACHE_MISSES,
        names.CACHE_READS,
        names.CACHE_WRITES,
        names.BUFFER_COUNT,
        names.BUFFER_SIZE,
        *ROCKSDB_PROPERTIES,
    }
)


def store_samples(tasks: TaskManager, thread: str) -> list[Sample]:
    """The current metrics of the stores of running tasks. Any thread may call this, because it only reads numbers."""
    return [sample for task in tasks.running for sample in _of_task(task, thread)]


def _of_task(task: ActiveTask, thread: str) -> Iterator[Sample]:
    tags = (("task_id", str(task.task_id)), ("thread_id", thread))
    figures = list(task.state.figures())
    yield Sample(names.CACHE_SIZE, tags, sum(one.cache.size_bytes for one in figures if one.cache))
    for one in figures:
        yield from _of_store(one, tags)


def _of_store(figures: StoreFigures, tags: tuple[tuple[str, str], ...]) -> Iterator[Sample]:
    store, cache, buffer = figures.spec.name, figures.cache, figures.buffer
    if cache is not None:
        of_cache = (("record_cache_id", store), *tags)
        yield Sample(names.CACHE_SIZE, of_cache, cache.size_bytes)
        yield Sample(names.CACHE_MISSES, of_cache, cache.misses, counts=True)
        yield Sample(names.CACHE_WRITES, of_cache, cache.writes, counts=True)
        if cache.reads is not None:
            yield Sample(names.CACHE_READS, of_cache, cache.reads, counts=True)
    if buffer is not None:
        of_buffer = ((state_tag(figures.spec), store), *tags)
        yield Sample(names.BUFFER_COUNT, of_buffer, buffer.records)
        yield Sample(names.BUFFER_SIZE, of_buffer, buffer.size_bytes)
    of_state = ((state_tag(figures.spec), store), *tags)
    for name, value in figures.rocksdb.items():
        yield Sample(name, of_state, value)
