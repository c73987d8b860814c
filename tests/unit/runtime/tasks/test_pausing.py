"""Tasks that are too far ahead of others in the group pause: never the earliest, so all come to the end, whatever each
thread knows of the others, whoever dies, and however large the gaps in time are."""

from __future__ import annotations

import logging
import math
import random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from pystreams.clock import ManualClock
from pystreams.ids import TaskId
from pystreams.metrics import Metrics, names
from pystreams.runtime.catching_up.group_lag import GroupLag, GroupView
from pystreams.runtime.catching_up.group_watch import Seen
from pystreams.runtime.catching_up.spread import PACE_KNOWN_AFTER_MS, Spread
from pystreams.runtime.tasks.pausing import Pausing
from pystreams.stream_time import TIME_MAX
from tests.examples import examples
from tests.unit.runtime.catching_up.group_kit import Group
from tests.unit.runtime.tasks.order_kit import FakeTask

HOUR = 3_600_000
GAP_MS = 30 * 24 * HOUR


class Task(FakeTask):
    """A task of sub-topology 0, as its thread holds it. Its records are timestamps."""

    def __init__(self, number: int, times: list[int]) -> None:
        super().__init__(number, times, topic="t0")
        self.head_reported_ms: int | None = None
        self.committed = 0

    def go_on(self) -> None:
        """Another thread has it: from the last commit."""
        self.done = self.arrived = self.committed
        self.head_reported_ms = None


class World:
    """Threads, each in a process of its own, that read the group each for itself."""

    def __init__(self, chance: random.Random, histories: list[list[int]], threads: int) -> None:
        self.chance = chance
        self.group = Group({0: set(), 1: {0}}, len(histories), wait_max_ms=math.inf)
        self.tasks = [Task(number, times) for number, times in enumerate(histories)]
        for task in self.tasks:
            self.group.write(0, task.number, len(task.times))
        self.threads = [Thread(self) for _ in range(threads)]
        for task in self.tasks:
            chance.choice(self.threads).tasks.append(task)

    @property
    def is_done(self) -> bool:
        return all(task.committed == len(task.times) for task in self.tasks)

    def step(self) -> None:
        thread = self.chance.choice(self.threads)
        what = self.chance.random()
        if what < 0.3:
            thread.poll(self.chance.choice((1, 5, 50)))
        elif what < 0.6:
            thread.process(self.chance.choice((1, 5, 50)))
        elif what < 0.75:
            thread.commit()
        elif what < 0.95:
            thread.read()
        elif len(self.threads) > 1:
            thread.die(self.chance.choice([one for one in self.threads if one is not thread]))

    def known_end_offset(self, partition: Any) -> int:
        return len(self.tasks[partition.partition].times)

    def position(self, partition: Any) -> int:
        return self.tasks[partition.partition].arrived


class Thread:
    def __init__(self, world: World) -> None:
        self.world = world
        self.tasks: list[Task] = []
        self.start()

    def start(self) -> None:
        group = Group({0: set(), 1: {0}}, len(self.world.tasks), wait_max_ms=math.inf)
        self.lag: GroupLag = group.lag
        self.watch = SimpleNamespace(seen=None, awaits=lambda task_id: True)
        watch, consumer, clock = self.watch, self.world, ManualClock()
        self.pausing = Pausing(watch, consumer, clock, Metrics(), "thread")  # type: ignore[arg-type]

    @property
    def running(self) -> Any:
        return self.tasks

    def poll(self, records: int) -> None:
        for task in self.tasks:
            task.arrived = min(len(task.times), task.arrived + records)

    def process(self, most: int) -> None:
        """As a thread does: the earliest first."""
        self.pausing.look(self.running)
        for task in sorted(self.tasks, key=lambda one: one.here[:1]):
            any_task: Any = task
            until_ms = self.pausing.until(any_task, None)
            for time in task.here[:most]:
                if until_ms is not None and time > until_ms:
                    break
                task.done += 1

    def commit(self) -> None:
        """If there is a reason."""
        if self.pausing.unreported or any(task.done > task.committed for task in self.tasks):
            self.pausing.report(self.running)
            for task in self.tasks:
                if task.done:
                    time = max(task.times[: task.done])
                    self.world.group.commit(0, task.number, task.done, time=time, head=task.head_reported_ms)
                task.committed = task.done
            self.pausing.reported()

    def read(self) -> None:
        group = self.world.group
        group.lag = self.lag
        self.watch.seen = Seen(0, group.read(self.world.chance.choice((50, 200, PACE_KNOWN_AFTER_MS))))

    def die(self, heir: Thread) -> None:
        for task in self.tasks:
            task.go_on()
        heir.tasks += self.tasks
        self.tasks = []
        self.start()


def histories(chance: random.Random, partitions: int) -> list[list[int]]:
    """Some dense, some sparse, some out of order, some that begin late, with gaps, or empty."""
    made = []
    for _ in range(partitions):
        time, step = chance.choice((0, 0, 20 * HOUR, GAP_MS)), chance.choice((100, 60_000, 5 * HOUR))
        times = []
        for _ in range(chance.choice((0, 10, 100))):
            time += GAP_MS if chance.random() < 0.03 else chance.randrange(2 * step)
            times.append(max(0, time - chance.choice((0, 0, 20_000, HOUR))))
        made.append(times)
    return made


@examples(40)
@given(seed=st.integers(0, 2**32), partitions=st.integers(1, 5), threads=st.integers(1, 4))
def test_all_is_processed_whatever_each_knows_of_the_others(seed, partitions, threads):
    note(f"seed {seed}")
    chance = random.Random(seed)
    world = World(chance, histories(chance, partitions), threads)
    for _ in range(300):
        world.step()
    for _ in range(2_000):
        if world.is_done:
            break
        for thread in world.threads:
            thread.poll(50)
            thread.process(50)
            thread.commit()
            thread.read()
    assert world.is_done, "the earliest does not go"


@pytest.mark.parametrize("broken", ["reported late", "reported never"])
def test_all_would_not_be_processed_if_who_pauses_did_not_say_where_it_is(broken, monkeypatch):
    """So the test above can fail: behind a gap in time the others know only when the gap began."""
    if broken == "reported late":
        monkeypatch.setattr(
            Pausing, "unreported", property(lambda _: False, lambda _, value: None), raising=False
        )
    else:
        monkeypatch.setattr(Pausing, "reported", lambda _: None)
        monkeypatch.setattr(
            Pausing, "report", lambda _, running: [setattr(one, "head_reported_ms", 0) for one in running]
        )
    chance = random.Random(1)
    world = World(chance, [[0, GAP_MS], [1, GAP_MS + 1]], 2)
    for task, thread in zip(world.tasks, world.threads, strict=True):
        thread.tasks = [task]
        thread.read()
        thread.poll(1)
        thread.process(1)
        thread.commit()
    for _ in range(100):
        for thread in world.threads:
            thread.read()
    for _ in range(100):
        for thread in world.threads:
            thread.poll(1)
            thread.process(1)
            thread.commit()
            thread.read()
    assert not world.is_done


# One thread


class One:
    """A thread with the tasks 0_0 and 0_1; task 0_2 is elsewhere."""

    def __init__(self) -> None:
        self.clock, self.metrics = ManualClock(), Metrics()
        self.watch = SimpleNamespace(seen=None, awaits=lambda task_id: True)
        watch: Any = self.watch
        self.tasks: list[Any] = [Task(0, [HOUR, 2 * HOUR, 9 * HOUR]), Task(1, [5 * HOUR])]
        for task in self.tasks:
            task.arrived = 3
        consumer: Any = self
        self.pausing = Pausing(watch, consumer, self.clock, self.metrics, "thread")

    def known_end_offset(self, partition: Any) -> int:
        return 10

    def position(self, partition: Any) -> int:
        return 3

    def see(self, head: int | None, *, lagging: bool = True) -> None:
        heads = {} if head is None else {TaskId(0, 2): head}
        spread = Spread(heads, frozenset(TaskId(0, n) for n in range(3)), HOUR)
        who: Any = (object(),) if lagging else ()
        self.watch.seen = Seen(0, GroupView(0.0, {}, {}, who, (), commit_often=True, spread=spread))
        self.pausing.look(self.tasks)

    @property
    def limits(self) -> list[int | None]:
        return [self.pausing.until(task, None) for task in self.tasks]


def test_a_task_goes_up_to_the_limit():
    one = One()
    assert one.limits == [None, None]
    one.see(HOUR)
    assert one.limits == [2 * HOUR, 2 * HOUR]
    assert one.pausing.until(one.tasks[0], HOUR) == HOUR
    one.see(None)
    assert one.limits == [None, None]


def test_who_pauses_is_counted_and_said(caplog):
    one = One()
    one.clock.advance_ms(1)
    with caplog.at_level(logging.DEBUG):
        one.see(HOUR)
        one.see(6 * HOUR)
        one.see(HOUR)
    assert one.metrics.total(names.PAUSED_TASKS) == 1
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in said] == ["INFO", "DEBUG", "DEBUG"]
    assert "paused tasks: 0_1. The next record is up to 4 h later than that of task 0_2" in said[0][1]
    assert "when it is 1 h or less" in said[0][1]
    one.pausing.close()
    assert one.metrics.total(names.PAUSED_TASKS) == 0


def test_who_pauses_says_where_the_tasks_of_its_thread_are_and_only_once():
    one = One()
    one.see(HOUR)
    assert one.pausing.unreported
    one.pausing.report(one.tasks)
    one.pausing.reported()
    assert [task.head_reported_ms for task in one.tasks] == [HOUR, 5 * HOUR]
    one.see(HOUR)
    assert not one.pausing.unreported
    one.tasks[0].done = 1
    one.see(HOUR)
    assert one.pausing.unreported


def test_while_nothing_lags_nothing_is_reported():
    one = One()
    one.see(HOUR, lagging=False)
    one.pausing.report(one.tasks)
    assert [task.head_reported_ms for task in one.tasks] == [None, None]


def test_a_late_record_is_not_far_behind_and_what_is_on_its_way_counts_with_the_time_before_it():
    one = One()
    late, on_its_way = Task(0, [5 * HOUR, HOUR]), Task(1, [3 * HOUR])
    for task in (late, on_its_way):
        task.done, task.arrived = 1, len(task.times)
    one.tasks = [late, on_its_way, Task(2, [])]
    one.see(None)
    one.pausing.report(one.tasks)
    assert [task.head_reported_ms for task in one.tasks] == [5 * HOUR, 3 * HOUR, None]


def test_without_a_watch_nothing_pauses():
    consumer: Any = None
    pausing = Pausing(None, consumer, ManualClock(), Metrics(), "thread")
    task: Any = Task(0, [5 * HOUR])
    pausing.look([task])
    pausing.report([task])
    assert pausing.until(task, TIME_MAX) == TIME_MAX
    assert pausing.until(task, None) is None
    assert task.head_reported_ms is None
    assert not pausing.unreported
