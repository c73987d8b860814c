"""Bounds the stream time of a thread's tasks by the known progress of the tasks upstream of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pystreams.broker.port import Consumer
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.catching_up.group_watch import GroupWatch, Seen
from pystreams.runtime.catching_up.pending_bounds import PendingBounds
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.stream_time import NO_TIME


class TimeBounds:
    """The bounds of the tasks of one thread. Without a ``watch`` nothing has a bound."""

    def __init__(self, watch: GroupWatch | None, consumer: Consumer) -> None:
        self._watch = watch
        self._consumer = consumer
        self._generation = -1
        self._taken: Seen | None = None
        self._pending: dict[TaskId, PendingBounds] = {}
        #: Whether there may be bounds that are not in force yet.
        self._waits = False

    @property
    def commit_often(self) -> bool:
        """Whether others, or tasks of this thread, wait for commits."""
        seen = None if self._watch is None else self._watch.seen
        return self._waits or (seen is not None and seen.view.commit_often)

    def begin_generation(self, generation: int, running: Sequence[ActiveTask]) -> None:
        """Tasks may have other owners now, so the known bounds are no longer valid: stream time stays as it is until
        new ones are known."""
        if self._watch is None or generation == self._generation:
            return
        self._generation = generation
        self._watch.begin_generation(generation)
        for task in running:
            if task.task_id in self._pending:
                self._pending[task.task_id].forget()
                task.stream.limit_time(NO_TIME)

    def starts(self, task: ActiveTask) -> None:
        """A task is about to start at the stream time of its last commit, and keeps it until a bound is known."""
        if self._watch is None or not self._watch.waits(task.task_id):
            return
        task.stream.limit_time(NO_TIME)
        self._pending[task.task_id] = PendingBounds()
        # So that the next round offers the last view to this task, too.
        self._taken = None

    def ends(self, task_id: TaskId) -> None:
        """A task is closed."""
        self._pending.pop(task_id, None)

    def apply(self, running: Sequence[ActiveTask], working: Callable[[ActiveTask | None], None]) -> None:
        """Put each bound into force when its task has processed up to the end offsets of the bound. ``working`` is
        called with the task at work."""
        if self._watch is None:
            return
        seen = self._watch.seen
        if seen is not self._taken and seen is not None and seen.generation >= self._generation:
            self._taken = seen
            self._offer(seen, running)
        if self._waits:
            self._waits = False
            for task in running:
                self._apply(task, working)

    def _offer(self, seen: Seen, running: Sequence[ActiveTask]) -> None:
        assert self._watch is not None
        for task in running:
            pending = self._pending.get(task.task_id)
            if pending is not None:
                bound_ms = seen.view.bounds[task.task_id.subtopology]
                pending.offer(bound_ms, self._watch.ends_to_pass(task.inputs, seen.view))
                self._waits |= len(pending) > 0

    def _apply(self, task: ActiveTask, working: Callable[[ActiveTask | None], None]) -> None:
        pending = self._pending.get(task.task_id)
        if not pending:
            return
        positions = task.stream.positions()

        def position_of(partition: TopicPartition) -> int:
            """The offset up to which the partition is processed."""
            if partition in positions and task.stream.buffered(partition):
                return positions[partition].offset
            return self._consumer.position(partition)

        bound_ms = pending.passed(position_of)
        if bound_ms is not None:
            working(task)
            task.stream.limit_time(bound_ms)
            working(None)
        self._waits |= len(pending) > 0
