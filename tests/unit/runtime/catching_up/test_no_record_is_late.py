"""The law: whatever the speed of each task, however they commit, are killed and change hands, no record reaches a task
that has gone further than the record's time, by more than the record's partition is out of order; and all come to the
end of what was there.

Results that are held back until their window has closed wait for the next record of their partition. If it is much
later, they are late for the next step even if all comes in the order of time: such a result may find the next task at
the time of that record, less what is held back.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.catching_up.group_lag import GroupLag, GroupView
from pystreams.runtime.catching_up.pending_bounds import PendingBounds
from pystreams.stream_time import TIME_MAX
from tests.examples import examples
from tests.unit.runtime.catching_up.group_kit import Group

OUT_OF_ORDER_MS = 20
WINDOW_MS = 100
HOLD_BACK_MS = WINDOW_MS + OUT_OF_ORDER_MS


class Sent(NamedTuple):
    """A record, and the time to which the task that gets it may have gone."""

    timestamp: int
    due: int


@dataclass
class Done:
    """What a task has committed."""

    position: int = 0
    time: int = -1
    seen: int = -1
    held: list[int] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)


class Task:
    """Reads its partition in order and hands each record on; a task that holds results back hands on each record when
    its window has closed."""

    def __init__(self, task_id: TaskId, holds_back: bool) -> None:
        self.task_id = task_id
        self.holds_back = holds_back
        self.done = Done()
        self.start()

    @property
    def input(self) -> TopicPartition:
        return TopicPartition(f"t{self.task_id.subtopology}", self.task_id.partition)

    def start(self) -> None:
        """Go on from the last commit."""
        done = self.done
        self.position, self.time, self.seen, self.held = done.position, done.time, done.seen, [*done.held]
        self.arrived = [*done.arrived]
        self.bound = self.time if self.task_id.subtopology else TIME_MAX
        self.pending = PendingBounds()

    def limit(self, bound: int) -> list[Sent]:
        """A bound comes into force; what becomes final."""
        self.bound = bound
        self.time = max(self.time, min(self.seen, bound))
        return self._final()

    def process(self, timestamp: int, due: int) -> list[Sent]:
        late = self.time - due
        assert late <= OUT_OF_ORDER_MS, f"{self.task_id}: a record of {timestamp}, due {due}, at {self.time}"
        self.position += 1
        self.seen = max(self.seen, timestamp)
        self.time = max(self.time, min(self.seen, self.bound))
        if not self.holds_back:
            return [Sent(timestamp, timestamp)]
        self.held.append(timestamp)
        self.arrived.append(timestamp)
        return self._final()

    def _final(self) -> list[Sent]:
        final = [t for t in self.held if _closed_at(t) <= self.time]
        self.held = [t for t in self.held if t not in final]
        return [Sent(t, max(t, self._closing(t) - HOLD_BACK_MS)) for t in final]

    def _closing(self, timestamp: int) -> int:
        """The time of the first record, in the order of time, that closes the window of another one."""
        return min(t for t in self.arrived if t >= _closed_at(timestamp))


def _closed_at(timestamp: int) -> int:
    """The time at which the window of a record has closed."""
    return timestamp // WINDOW_MS * WINDOW_MS + HOLD_BACK_MS


class World:
    """Tasks of several hops, each with its own process, which reads the group by itself."""

    def __init__(self, seed: int, hops: int, partitions: int, *, atomic: bool, holds_back: bool) -> None:
        self.random = random.Random(seed)
        self.hops, self.partitions, self.atomic = hops, partitions, atomic
        hold_back = dict.fromkeys(range(1, hops), HOLD_BACK_MS) if holds_back else {}
        writers = {hop: {hop - 1} if hop else set[int]() for hop in range(hops + 1)}
        self.group = Group(writers, partitions, hold_back=hold_back, wait_max_ms=math.inf)
        self.tasks = {
            task_id: Task(task_id, holds_back and 0 < task_id.subtopology < hops)
            for task_id in self.group.inputs
        }
        self.records: dict[TopicPartition, list[Sent]] = {p: [] for p in self.group.ends}
        #: What was sent since the last commit, where commits are atomic.
        self.sent: dict[TaskId, list[tuple[TopicPartition, Sent]]] = {task_id: [] for task_id in self.tasks}
        self.watches: dict[TaskId, GroupLag] = {
            task_id: Group(writers, partitions, hold_back=hold_back, wait_max_ms=math.inf).lag
            for task_id in self.tasks
            if task_id[0]
        }
        self.views: dict[TaskId, GroupView] = {}
        for partition in range(partitions):
            now = self.random.randrange(1_000)
            for _ in range(self.random.choice((0, 20, 60))):
                now += self.random.choice((1, 20, 50, 1_000))
                timestamp = now - self.random.randrange(OUT_OF_ORDER_MS)
                self._append(TopicPartition("t0", partition), Sent(timestamp, timestamp))

    def _append(self, partition: TopicPartition, record: Sent) -> None:
        self.records[partition].append(record)
        self.group.ends[partition] += 1

    def _send(self, task: Task, records: list[Sent]) -> None:
        hop = task.task_id.subtopology
        if hop == self.hops:
            return
        for record in records:
            to = TopicPartition(f"t{hop + 1}", self.random.randrange(self.partitions))
            if self.atomic:
                self.sent[task.task_id].append((to, record))
            else:
                self._append(to, record)

    def process(self, task: Task, most: int) -> None:
        for record in self.records[task.input][task.position :][:most]:
            self._send(task, task.process(*record))

    def bound(self, task: Task) -> None:
        bound = task.pending.passed(lambda _: task.position)
        if bound is not None:
            self._send(task, task.limit(bound))

    def commit(self, task: Task) -> None:
        if task.done.position == task.position and task.done.time == task.time:
            return
        for to, record in self.sent[task.task_id]:
            self._append(to, record)
        self.sent[task.task_id].clear()
        task.done = Done(task.position, task.time, task.seen, [*task.held], [*task.arrived])
        seen = task.seen if task.seen > task.time else None
        self.group.commit(*task.task_id, task.position, time=task.time, seen=seen)

    def read(self, task: Task) -> None:
        watch = self.watches.get(task.task_id)
        if watch is not None:
            self.group.lag = watch
            view = self.views[task.task_id] = self.group.read(self.random.choice((1, 200, 5_000)))
            task.pending.offer(view.bounds[task.task_id.subtopology], {task.input: view.ends[task.input]})

    def kill(self, task: Task) -> None:
        """The task has a new owner, and all know that."""
        self.sent[task.task_id].clear()
        task.start()
        for task_id, watch in self.watches.items():
            watch.begin_generation()
            one = self.tasks[task_id]
            one.pending.forget()
            one.bound = one.time

    def step(self, kills: bool) -> None:
        task = self.random.choice([*self.tasks.values()])
        what = self.random.random()
        if what < 0.4:
            self.process(task, self.random.choice((1, 3, 10)))
        elif what < 0.6:
            self.bound(task)
        elif what < 0.8:
            self.commit(task)
        elif what < 0.98 or not kills:
            self.read(task)
        else:
            self.kill(task)

    @property
    def is_done(self) -> bool:
        return all(
            task.position == len(self.records[task.input])
            and task.time == task.seen
            and task.done.time == task.time
            for task in self.tasks.values()
        )

    def finish(self) -> None:
        for _ in range(20 * (self.hops + 1)):
            for task in self.tasks.values():
                self.process(task, 1_000)
                self.bound(task)
                self.commit(task)
                self.read(task)
        assert self.is_done, "stream time is held back although nobody lags"
        assert all(bound == TIME_MAX for view in self.views.values() for bound in view.bounds.values())


@examples(25)
@given(
    seed=st.integers(0, 2**32),
    hops=st.integers(1, 3),
    partitions=st.integers(1, 4),
    atomic=st.booleans(),
    holds_back=st.booleans(),
    kills=st.booleans(),
)
def test_no_record_is_late(seed, hops, partitions, atomic, holds_back, kills):
    note(f"seed {seed}")
    world = World(seed, hops, partitions, atomic=atomic, holds_back=holds_back)
    for _ in range(1_000):
        world.step(kills)
    world.finish()


@pytest.mark.parametrize("forgotten", ["bounds", "ends"])
def test_the_law_does_not_hold_without_bounds_or_without_waiting_for_the_ends(forgotten, monkeypatch):
    """So the test above can fail."""

    def offer(pending: PendingBounds, bound_ms: int, ends: dict[TopicPartition, int]) -> None:
        wrong = (TIME_MAX, ends) if forgotten == "bounds" else (bound_ms, {})
        pending._pending.append(wrong)

    monkeypatch.setattr(PendingBounds, "offer", offer)
    late = 0
    for seed in range(20):
        world = World(seed, hops=1, partitions=3, atomic=False, holds_back=False)
        try:
            for _ in range(300):
                world.step(kills=False)
        except AssertionError:
            late += 1
    assert late
