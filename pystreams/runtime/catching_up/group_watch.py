"""Reads the group's offsets for all threads of a client, in its own thread, so that a slow answer delays no record."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from pystreams.broker.port import Admin
from pystreams.clock import Clock
from pystreams.config import StreamsConfig
from pystreams.engine.input.partition_group import NEVER_IDLE
from pystreams.errors import StreamsError
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import Metrics, names
from pystreams.runtime.catching_up.group_lag import GroupLag, GroupView, LaggingTask, Reading
from pystreams.runtime.catching_up.spread import least_distance_ms
from pystreams.runtime.catching_up.stages import stages_of
from pystreams.runtime.catching_up.subtopology_graph import writers_by_topic
from pystreams.topology.built import BuiltTopology

log = logging.getLogger(__name__)

#: The interval of reading the offsets: while tasks wait for commits, and when they have caught up.
_OFTEN_S, _SELDOM_S = 0.2, 1.0
#: How often a reading that keeps failing is logged.
_WARN_INTERVAL_MS = 30_000.0
#: How long to wait for the end of the thread, which may be waiting for an answer.
_CLOSE_TIMEOUT_S: Final = 1.0


def watch_of(
    built: BuiltTopology,
    config: StreamsConfig,
    inputs: Mapping[TaskId, frozenset[TopicPartition]],
    admin: Admin,
    clock: Clock,
    metrics: Metrics,
    *,
    transactional: bool,
) -> GroupWatch | None:
    """The watch of a client; None if stream time does not wait for other tasks. This is so if no step that depends on
    stream time comes after a topic that the application writes, if all records come there from one partition, or if the
    setting ``stream_time`` switches it off. ``inputs`` are those of all tasks."""
    stages = stages_of(built, inputs)
    if config.stream_time == "java" or not stages.waiting:
        return None
    lag = GroupLag(
        stages,
        inputs,
        writers_by_topic(built),
        commit_interval_ms=config.effective_commit_interval_ms(transactional=transactional),
        wait_max_ms=config.catch_up_wait_max_ms,
        distance_ms_min=least_distance_ms(built, stages),
        by_time=config.max_task_idle_ms != NEVER_IDLE,
    )
    return GroupWatch(lag, admin, built.application_id, clock, metrics, config.catch_up_wait_max_ms)


@dataclass(frozen=True, slots=True)
class Seen:
    """The last view of the group. Its reading began in ``generation`` or later."""

    generation: int
    view: GroupView


class GroupWatch:
    """Watches the group from the first assignment on."""

    def __init__(
        self, lag: GroupLag, admin: Admin, group: str, clock: Clock, metrics: Metrics, wait_max_ms: float
    ) -> None:
        """If nothing can be read for ``wait_max_ms``, tasks do not wait for others any more."""
        self._lag = lag
        self._admin = admin
        self._group = group
        self._clock = clock
        self._wait_max_ms = wait_max_ms
        self._lagging = metrics.gauge(names.LAGGING_TASKS)
        self._given_up = metrics.gauge(names.LAGGING_TASKS_GIVEN_UP)
        #: Replaced as a whole, so threads read it without a lock. None before the first reading.
        self.seen: Seen | None = None
        self._generation = -1
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._mutex = threading.Lock()
        self._thread: threading.Thread | None = None
        #: The tasks that were given up at the last reading.
        self._known: frozenset[TaskId] = frozenset()
        self._failing_ms: float | None = None
        self._warn_ms = 0.0

    def waits(self, task: TaskId) -> bool:
        """Whether the stream time of a task waits for others."""
        return task.subtopology in self._lag.waiting

    def awaits(self, task: TaskId) -> bool:
        """Whether others may wait for a task."""
        return task in self._lag.awaited

    def ends_to_pass(self, inputs: Collection[TopicPartition], view: GroupView) -> dict[TopicPartition, int]:
        """The ends that a task with these inputs has to pass before the view's bound is in force."""
        return {p: view.ends[p] for p in inputs if p in view.ends and p in self._lag.between}

    def begin_generation(self, generation: int) -> None:
        """Read the offsets soon, because a thread has got an assignment, so tasks may have new owners."""
        with self._mutex:
            if generation <= self._generation or self._closing.is_set():
                return
            self._generation = generation
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"{self._group}-watch", daemon=True)
                self._thread.start()
        self._wake.set()

    def close(self) -> None:
        """End the thread, before the admin is closed."""
        with self._mutex:
            self._closing.set()
            thread = self._thread
        self._wake.set()
        if thread is not None:
            thread.join(_CLOSE_TIMEOUT_S)

    def _run(self) -> None:
        read = -1
        while not self._closing.is_set():
            self._wake.clear()
            generation = self._generation
            if generation > read:
                self._lag.begin_generation()
                read = generation
            try:
                view = self._lag.update(self._read())
            except Exception as error:  # noqa: BLE001 - an admin that is being closed raises what it likes
                self._failed(error)
            else:
                self._failing_ms = None
                self._warn_of_given_up(view)
                self._lagging.set(len(view.lagging))
                self.seen = Seen(generation, view)
            often = self.seen is None or self.seen.view.commit_often
            self._wake.wait(_OFTEN_S if often else _SELDOM_S)

    def _read(self) -> Reading:
        partitions = self._lag.partitions
        committed = self._admin.group_offsets(self._group, stable=False)
        missing = [partition for partition in partitions if partition not in committed]
        beginnings = self._admin.beginning_offsets(missing) if missing else {}
        # Offsets first, then ends: so all records that a task had written when it committed lie below these ends. A
        # committed transaction becomes visible at different moments in the offsets and in each partition. So the ends
        # of topics between tasks include records that still seem to be uncommitted.
        between = self._lag.between
        ends = {**self._admin.stable_end_offsets(partitions - between), **self._admin.end_offsets(between)}
        return Reading(self._clock.monotonic_ms(), committed, beginnings, ends)

    def _failed(self, error: Exception) -> None:
        """Handle an error: the broker does not answer, or the login may not see the offsets. The next look tries again,
        but tasks do not wait for others for ever."""
        if self._closing.is_set():
            return
        now_ms = self._clock.monotonic_ms()
        if self._failing_ms is None:
            self._failing_ms = self._warn_ms = now_ms
        if now_ms >= self._warn_ms:
            self._warn_ms = now_ms + _WARN_INTERVAL_MS
            unexpected = None if isinstance(error, StreamsError) else error
            log.warning(
                "stream time waits, because it is not known which tasks lag: %s", error, exc_info=unexpected
            )
        if now_ms - self._failing_ms >= self._wait_max_ms:
            self.seen = Seen(self._generation, self._lag.nobody_waits())

    def _warn_of_given_up(self, view: GroupView) -> None:
        given_up = {task.task_id: task for task in view.given_up}
        for task_id in sorted(given_up.keys() - self._known):
            log.warning("%s", _given_up(given_up[task_id], view.at_ms))
        self._known = frozenset(given_up)
        self._given_up.set(len(given_up))


def _given_up(task: LaggingTask, now_ms: float) -> str:
    """The message about a task that others no longer wait for."""
    behind = ", ".join(f"{partition} at offset {at}" for partition, at in sorted(task.behind.items()))
    return (
        f"stream time no longer waits for task {task.task_id}, which has committed nothing for"
        f" {(now_ms - task.since_ms) / 1000:.0f} s (catch_up_wait_max_ms), although it is behind"
        f" ({behind or 'its own stream time waits'}): its records may be late for the steps after it."
        " Does it fail again and again, or does its store take long to restore?"
    )
