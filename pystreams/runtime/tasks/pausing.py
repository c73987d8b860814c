"""Pauses the tasks of a thread that are too far ahead of other tasks in the group, and reports to the group how far the
thread's own tasks are.

A paused task processes no record that is later than the limit. Its partitions are still read, until enough records are
buffered. So nothing has to be resumed: the next record is processed as soon as the limit allows it.

No thread waits forever: a thread with a paused task commits the current heads (the times of the next records) of all
its tasks. So if all threads pause, all of them know the lowest head in the group, and the thread that has it continues.
If a thread stops committing, the others wait for it only as long as stream time does.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pystreams.broker.port import Consumer
from pystreams.clock import Clock
from pystreams.ids import TaskId
from pystreams.metrics import Metrics, names
from pystreams.runtime.catching_up.group_watch import GroupWatch, Seen
from pystreams.runtime.catching_up.spread import Spread
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.backlog import has_more
from pystreams.stream_time import NO_TIME, TIME_MAX
from pystreams.times import spell_ms

log = logging.getLogger(__name__)

#: How often pauses are logged at level INFO; others are logged at level DEBUG.
_SAY_INTERVAL_MS = 30_000.0


class Pausing:
    """The pauses of the tasks of one thread. Without a ``watch`` nothing pauses."""

    def __init__(
        self, watch: GroupWatch | None, consumer: Consumer, clock: Clock, metrics: Metrics, thread: str
    ) -> None:
        self._watch = watch
        self._consumer = consumer
        self._clock = clock
        self._thread = thread
        self._gauge = metrics.gauge(names.PAUSED_TASKS, thread_id=thread)
        self._taken: Seen | None = None
        self._spread = Spread()
        self._limit_ms = TIME_MAX
        self._paused: frozenset[TaskId] = frozenset()
        self._say_ms = 0.0
        #: Whether a task pauses, and the heads of the last commit are outdated: the next commit must report them.
        self.unreported = False

    def look(self, running: Sequence[ActiveTask]) -> None:
        """Find out which of the thread's tasks pause. Call it before they process."""
        if self._watch is None:
            return
        seen = self._watch.seen
        if seen is not self._taken and seen is not None:
            self._taken, self._spread = seen, seen.view.spread
            self._limit_ms = self._spread.limit_ms({task.task_id for task in running})
        if self._limit_ms == TIME_MAX and not self._paused:
            return
        heads = {task.task_id: task.stream.head_time for task in running if self._may_pause(task)}
        ahead = {task: head for task, head in heads.items() if head is not None and head > self._limit_ms}
        if ahead.keys() != self._paused:
            self._paused = frozenset(ahead)
            self._gauge.set(len(ahead))
            self._say(ahead, {task.task_id for task in running})
        if ahead:
            self.unreported |= any(self._head_to_report(task) != task.head_reported_ms for task in running)

    def until(self, task: ActiveTask, until_ms: int | None) -> int | None:
        """The time (ms) up to which a task may process; None: no limit. ``until_ms`` is a limit from elsewhere, which
        holds, too."""
        if self._limit_ms == TIME_MAX or not self._may_pause(task):
            return until_ms
        return self._limit_ms if until_ms is None else min(until_ms, self._limit_ms)

    def report(self, running: Sequence[ActiveTask]) -> None:
        """Have the next commit of the running tasks report how far they are."""
        for task in running:
            task.head_reported_ms = self._head_to_report(task)

    def reported(self) -> None:
        """The commit has succeeded."""
        self.unreported = False

    def close(self) -> None:
        self._gauge.set(0)

    def _may_pause(self, task: ActiveTask) -> bool:
        return task.task_id in self._spread.may_pause

    def _head_to_report(self, task: ActiveTask) -> int | None:
        """The time of a task's next record, None while the group does not need it. A record that is late in its own
        partition counts with the partition's time, so that it does not seem far behind. An empty partition with records
        in the log counts with its partition time, too."""
        if self._taken is None or self._watch is None:
            return None
        if not self._taken.view.lags or not self._watch.awaits(task.task_id):
            return None
        stream = task.stream
        filled = [partition for partition in task.inputs if stream.buffered(partition)]
        times = [
            stream.partition_time(p) for p in task.inputs if p not in filled and has_more(self._consumer, p)
        ]
        head = stream.head_time
        if head is not None:
            times.append(max(head, min(map(stream.partition_time, filled), default=NO_TIME)))
        least = min(times, default=NO_TIME)
        return None if least == NO_TIME else least

    def _say(self, ahead: dict[TaskId, int], running: set[TaskId]) -> None:
        least = self._spread.least(running)
        if not ahead or least is None:
            log.debug("[%s] no task pauses any more", self._thread)
            return
        now_ms = self._clock.monotonic_ms()
        level = logging.INFO if now_ms >= self._say_ms else logging.DEBUG
        if level == logging.INFO:
            self._say_ms = now_ms + _SAY_INTERVAL_MS
        head, behind = least
        log.log(
            level,
            "[%s] paused tasks: %s. The next record is up to %s later than that of task %s, which lags."
            " They go on when it is %s or less",
            self._thread,
            ", ".join(map(str, sorted(ahead))),
            spell_ms(max(ahead.values()) - head),
            behind,
            spell_ms(self._limit_ms - head),
        )
