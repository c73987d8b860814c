"""Makes the tasks of a thread from the state in their directories and the compiled code of their sub-topologies."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pystreams.broker.port import Consumer, Producer
from pystreams.engine.codegen import CompiledCode, compile_nodes
from pystreams.engine.new_task import new_task
from pystreams.engine.overflow_writer import OverflowTopics, OverflowWriter
from pystreams.engine.stream_task import TaskServices
from pystreams.errors import StateCorruptedError, StateError, StateLockedError, StreamsError
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import Counter, names
from pystreams.record import Headers
from pystreams.runtime.tasks.abstract_task import AbstractTask
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.client_context import ClientContext
from pystreams.runtime.tasks.standby_task import StandbyTask
from pystreams.state.age import Age
from pystreams.state.memory_left import NOTHING_LEFT, MemoryLeft
from pystreams.state.store import LogChange
from pystreams.take_over.hand_over_record import state_origin


def level_of_wiping(error: StreamsError) -> int:
    """The level at which it is logged that the state of a task is deleted, for this error."""
    expected = isinstance(error, StateCorruptedError) and error.expected
    return logging.INFO if expected else logging.WARNING


class TaskOpener:
    """Makes and opens tasks for one thread, whose producer and consumer they share."""

    def __init__(self, context: ClientContext, consumer: Consumer, producer: Producer, thread: str) -> None:
        self._context = context
        self._consumer = consumer
        self._producer = producer
        self._overflow_topics = OverflowTopics(context.admin)
        self._code: dict[int, CompiledCode] = {}
        #: The content of memory of closed tasks whose standbys are opened next.
        self._left: dict[TaskId, MemoryLeft] = {}
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
            tracing=context.tracing,
        )

    def make(self, task_id: TaskId) -> ActiveTask:
        """Create a task without opening its stores."""
        changelogs = self._partitions(task_id, self._context.subtopology(task_id).changelogs)
        logged = dict.fromkeys(changelogs, 0)
        inputs, internal = self._context.inputs[task_id], self._context.built.internal_topics
        return ActiveTask(
            task_id,
            inputs,
            changelogs,
            self._consumer.position,
            source_changelogs=self._partitions(task_id, self._context.subtopology(task_id).source_changelogs),
            log_changes={store: self._log_of(p, store, logged) for store, p in changelogs.items()},
            logged=logged,
            records_restored=self._counter(names.RESTORED, task_id),
            overflow=self._overflow_of(task_id),
            internal_inputs=[partition for partition in inputs if partition.topic in internal],
        )

    def _overflow_of(self, task_id: TaskId) -> OverflowWriter:
        context = self._context
        siblings = sum(one.subtopology == task_id.subtopology for one in context.inputs)
        return OverflowWriter(
            context.built.application_id,
            task_id,
            siblings,
            self._overflow_topics,
            self._producer.send_to_changelog,
            context.clock,
        )

    def make_standby(self, task_id: TaskId) -> StandbyTask:
        """Create a standby task without opening its stores."""
        changelogs = self._partitions(task_id, self._context.subtopology(task_id).changelogs)
        logged = dict.fromkeys(changelogs, 0)
        return StandbyTask(
            task_id,
            self._context.inputs[task_id],
            changelogs,
            source_changelogs=self._partitions(task_id, self._context.subtopology(task_id).source_changelogs),
            log_changes={store: self._log_of(p, store, logged) for store, p in changelogs.items()},
            logged=logged,
            records_restored=self._counter(names.UPDATED, task_id),
            changelogs_ahead=self._context.changelogs_ahead,
        )

    def _counter(self, name: str, task_id: TaskId) -> Counter:
        return self._context.metrics.counter(name, thread_id=self._services.thread_id, task_id=task_id)

    def _partitions(self, task_id: TaskId, topics: Mapping[str, str]) -> dict[str, TopicPartition]:
        return {store: TopicPartition(topic, task_id.partition) for store, topic in topics.items()}

    def state_is_here(self, task_id: TaskId) -> bool:
        """Whether to open a task now; False while a snapshot of its stores is being looked for."""
        snapshots = self._context.snapshots
        return snapshots is None or snapshots.fetcher.is_here(task_id)

    def comes_from_snapshot(self, task_id: TaskId) -> bool:
        """Whether the local state of a task comes from a snapshot, and not from its changelogs alone."""
        snapshots = self._context.snapshots
        return snapshots is not None and snapshots.fetcher.comes_from_snapshot(task_id)

    def check_wiping_helps(self, task: AbstractTask, error: StateCorruptedError) -> None:
        """Raises ``error``, for which a task's state cannot be read, if to delete the state does not help: it was
        deleted just before, and does not come from a snapshot."""
        if task.wiped and not self.comes_from_snapshot(task.task_id):
            raise error

    def leave(self, task: AbstractTask) -> None:
        """Keep the content of memory of a task that is about to be closed after a commit and opened again here."""
        self._left[task.task_id] = task.state.memory_left()

    def wipe(self, task_id: TaskId) -> None:
        """Delete the local state of a task, which is closed. Raises ``StateLockedError``, ``StateError``."""
        self._left.pop(task_id, None)
        if self._context.snapshots is not None:
            self._context.snapshots.fetcher.spoilt(task_id)
        self._context.directory.wipe(task_id)

    def give_up(self, task_id: TaskId) -> None:
        """Stop preparing a task that is given up before it was opened."""
        self._left.pop(task_id, None)
        if self._context.snapshots is not None:
            self._context.snapshots.fetcher.give_up(task_id)

    def open(self, task: AbstractTask) -> None:
        """Lock the task's directory and open its stores, which must be restored next. If this fails, everything is
        closed again.

        Raises ``StateLockedError`` while another thread or process has the directory, ``StateCorruptedError`` if its
        content cannot be read, ``StateError`` for other errors of the disk.
        """
        context, task_id = self._context, task.task_id
        sub = context.subtopology(task_id)
        try:
            hosted = new_task(
                task_id,
                sub.nodes,
                sub.stores,
                task.inputs,
                services=self._services,
                directory=context.directory.task_directory(task_id),
                log_of=task.log_changes.get,
                resources=context.resources,
                origin=state_origin(context.broker, context.hand_over.attempt),
                beginning=context.in_use.beginning,
                begun=context.in_use.now.begun,
                age=self._age_of(task),
                left=self._left.get(task_id, NOTHING_LEFT),
                code=self._compiled(task_id),
            )
        except (StateLockedError, StateCorruptedError):
            raise
        except StateError as error:
            error.extend(where=f"task {task_id}")
            raise
        self._left.pop(task_id, None)
        task.opened(hosted)
        if context.snapshots is not None:
            context.snapshots.fetcher.opened(task_id)

    def _age_of(self, task: AbstractTask) -> Age:
        topics = {
            store: partition.topic
            for store, partition in (*task.changelogs.items(), *task.source_changelogs.items())
        }

        def kept_ms(store: str) -> int | None:
            return self._context.tombstones.kept_ms(topics[store]) if store in topics else None

        return Age(self._context.clock, kept_ms)

    def _compiled(self, task_id: TaskId) -> CompiledCode:
        """The code of the task's sub-topology, compiled for the first of its tasks."""
        code = self._code.get(task_id.subtopology)
        if code is None:
            name = f"<pystreams {self._context.built.application_id} {task_id.subtopology}>"
            code = compile_nodes(self._context.subtopology(task_id).nodes, name)
            self._code[task_id.subtopology] = code
        return code

    def _log_of(self, changelog: TopicPartition, store: str, logged: dict[str, int]) -> LogChange:
        topic, partition = changelog
        send = self._producer.send_to_changelog

        def log_change(key: bytes, value: bytes | None, timestamp: int | None, headers: Headers) -> None:
            logged[store] += 1
            send(topic, partition, key, value, timestamp, headers)

        return log_change


def _lag(consumer: Consumer, partition: TopicPartition) -> int | None:
    end_offset = consumer.known_end_offset(partition)
    return None if end_offset is None else end_offset - consumer.position(partition)
