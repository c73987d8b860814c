"""Makes the tasks of a thread: state out of the task's directory, compiled code around it."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pystreams.broker.port import Consumer, Producer
from pystreams.engine.codegen import CompiledCode, compile_nodes
from pystreams.engine.new_task import NewTask, new_task
from pystreams.engine.stream_task import TaskServices
from pystreams.errors import StateCorruptedError
from pystreams.ids import TaskId, TopicPartition
from pystreams.record import Headers
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.client_context import ClientContext
from pystreams.state.cache.thread_cache import ThreadCache
from pystreams.state.store import LogChange
from pystreams.take_over.hand_over_record import state_origin

log = logging.getLogger(__name__)


class TaskOpener:
    """Opens tasks for one thread, whose producer, consumer and cache they share."""

    def __init__(
        self, context: ClientContext, consumer: Consumer, producer: Producer, cache: ThreadCache, thread: str
    ) -> None:
        self._context = context
        self._producer = producer
        self._cache = cache
        self._code: dict[int, CompiledCode] = {}
        self._services = TaskServices(
            config=context.config,
            metrics=context.metrics,
            clock=context.clock,
            producer=producer,
            partition_count=context.partition_count,
            lag=lambda partition: _lag(consumer, partition),
            thread_id=thread,
            global_stores=context.global_stores,
            left_out=context.left_out,
        )

    def open(self, task_id: TaskId) -> ActiveTask:
        """A task that waits for its stores to be restored. State that cannot be read is deleted and will be restored.

        Raises ``StateLockedError`` while another thread or process has the task's directory.
        """
        logged = dict.fromkeys(self._context.subtopology(task_id).changelogs, 0)
        log_changes = {store: self._log_change(task_id, store, logged) for store in logged}
        try:
            stream, state = self._new_task(task_id, log_changes)
        except StateCorruptedError as error:
            log.warning("task %s: %s; deleting the local state, it will be restored", task_id, error)
            self._context.directory.wipe(task_id)
            stream, state = self._new_task(task_id, log_changes)
        sub = self._context.subtopology(task_id)
        changelogs, source_changelogs = (
            {store: TopicPartition(topic, task_id.partition) for store, topic in topics.items()}
            for topics in (sub.changelogs, sub.source_changelogs)
        )
        return ActiveTask(
            stream, state, changelogs, source_changelogs, log_changes=log_changes, logged=logged
        )

    def _new_task(self, task_id: TaskId, log_changes: Mapping[str, LogChange]) -> NewTask:
        context = self._context
        sub = context.subtopology(task_id)
        return new_task(
            task_id,
            sub.nodes,
            sub.stores,
            context.inputs[task_id],
            services=self._services,
            directory=context.directory.task_directory(task_id),
            cache=self._cache,
            log_change=log_changes.get,
            resources=context.resources,
            origin=state_origin(context.broker, context.hand_over.attempt),
            beginning=context.in_use.beginning,
            begun=context.in_use.now.begun,
            code=self._compiled(task_id),
        )

    def _compiled(self, task_id: TaskId) -> CompiledCode:
        """The code of the task's sub-topology, compiled for the first of its tasks."""
        code = self._code.get(task_id.subtopology)
        if code is None:
            name = f"<pystreams {self._context.built.application_id} {task_id.subtopology}>"
            code = compile_nodes(self._context.subtopology(task_id).nodes, name)
            self._code[task_id.subtopology] = code
        return code

    def _log_change(self, task_id: TaskId, store: str, logged: dict[str, int]) -> LogChange:
        topic = self._context.subtopology(task_id).changelogs[store]
        send, partition = self._producer.log_change, task_id.partition

        def log_change(key: bytes, value: bytes | None, timestamp: int | None, headers: Headers) -> None:
            logged[store] += 1
            send(topic, partition, key, value, timestamp, headers)

        return log_change


def _lag(consumer: Consumer, partition: TopicPartition) -> int | None:
    end_offset = consumer.known_end_offset(partition)
    return None if end_offset is None else end_offset - consumer.position(partition)
