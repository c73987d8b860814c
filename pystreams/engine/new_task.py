"""Creates a task with its stores, for a thread, the test driver or a backfill."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

from pystreams.engine.codegen import CompiledCode
from pystreams.engine.hosted_task import HostedTask
from pystreams.engine.input.partition_group import HeadOrder
from pystreams.engine.linking import setting_up
from pystreams.engine.stream_task import StreamTask, TaskServices
from pystreams.engine.traced_task import TracedTask
from pystreams.ids import TaskId, TopicPartition
from pystreams.record import ContextCell
from pystreams.state.age import Age
from pystreams.state.begun import Begun
from pystreams.state.disk.rocksdb_memory import RocksResources
from pystreams.state.measured_store import StoreMeasures
from pystreams.state.memory_left import NOTHING_LEFT, MemoryLeft
from pystreams.state.spec import StoreSpec
from pystreams.state.store import LogChange
from pystreams.state.task_stores import TaskStores
from pystreams.topology.names import changelog_topic
from pystreams.topology.nodes import Node


def new_task(
    task_id: TaskId,
    nodes: Sequence[Node],
    specs: Sequence[StoreSpec],
    partitions: Collection[TopicPartition],
    *,
    services: TaskServices,
    directory: Path,
    log_of: Callable[[str], LogChange | None],
    resources: RocksResources | None = None,
    origin: str | None = None,
    beginning: str | None = None,
    begun: Mapping[str, Begun] | None = None,
    age: Age | None = None,
    left: MemoryLeft = NOTHING_LEFT,
    code: CompiledCode | None = None,
    order: HeadOrder | None = None,
) -> HostedTask:
    """Open the stores that ``specs`` describe under ``directory``, and create a task with them. The caller fills the
    stores, then starts the task, and closes it.

    ``log_of``, ``resources``, ``origin``, ``beginning``, ``begun``, ``age`` and ``left``: see ``TaskStores.open``;
    ``code`` and ``order``: see ``StreamTask``. Raises the errors of ``TaskStores.open``, and ``ProcessingError`` if a
    user's serde cannot be set up; then nothing stays open.
    """
    cell = ContextCell()

    def expired(spec: StoreSpec) -> None:
        stream.failures.expired(spec, state.stores[spec.name])

    with setting_up("the task's stores", task_id):
        state = TaskStores.open(
            directory,
            specs,
            task_id=task_id,
            cell=cell,
            log_of=log_of,
            topic_of=partial(changelog_topic, services.config.application_id),
            resources=resources,
            expired=expired,
            origin=origin,
            beginning=beginning,
            begun=begun,
            age=age,
            measures=_measures(task_id, services),
            left=left,
        )
    try:
        kind = StreamTask if services.tracing is None else TracedTask
        stream = kind(
            task_id,
            nodes,
            partitions,
            cell=cell,
            stores=state.stores,
            services=services,
            code=code,
            order=order,
            directory=directory,
        )
    except BaseException:
        state.close()
        raise
    return HostedTask(stream, state)


def _measures(task_id: TaskId, services: TaskServices) -> StoreMeasures | None:
    if services.config.metrics_recording_level != "DEBUG":
        return None
    return StoreMeasures(services.metrics, services.clock, thread_id=services.thread_id, task_id=task_id)
