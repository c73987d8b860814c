"""A task that takes too long is cut short between two records, and goes on there in the next round."""

from __future__ import annotations

import threading

import pytest

from pystreams.clock import SystemClock
from pystreams.dsl.operators.stateless import Peek
from pystreams.runtime.tasks.stopwatch import Stopwatch
from tests.live.support import eventually
from tests.unit.engine.task_kit import Harness, fn, source, step


def harness(look, *topics: str) -> Harness:
    return Harness([source(*topics), step("look", "source", Peek(fn(look)))])


@pytest.mark.parametrize("topics", [("in",), ("in", "other")], ids=["one topic", "two in turns"])
def test_it_ends_after_the_record_at_work_and_goes_on_there(topics):
    seen: list[str] = []

    def look(value: str) -> None:
        seen.append(value)
        if value == "3":
            task.hurry()

    of_task = harness(look, *topics)
    task = of_task.task
    for place, topic in enumerate(topics):
        of_task.feed(*((None, str(i), i) for i in range(place, 10, len(topics))), topic=topic)
    assert of_task.process() == 4
    assert of_task.process() == 6
    assert seen == [str(i) for i in range(10)]


@pytest.mark.parametrize("topics", [("in",), ("in", "other")], ids=["one topic", "two in turns"])
def test_hurried_too_late_it_still_processes_everything(topics):
    """From another thread, it may come between two calls, or before the first record of one."""
    seen: list[str] = []
    of_task = harness(seen.append, *topics)
    settle = of_task.task._group.settle

    def hurried_settle() -> int:
        refused = settle()
        of_task.task.hurry()
        return refused

    of_task.task._group.settle = hurried_settle
    for place, topic in enumerate(topics):
        of_task.feed(*((None, str(i), i) for i in range(place, 10, len(topics))), topic=topic)
    of_task.task.hurry()
    calls = 0
    while len(seen) < 10:
        assert of_task.process() > 0
        calls += 1
    assert calls <= 10
    assert seen == [str(i) for i in range(10)]


class Working:
    def __init__(self) -> None:
        self.hurries = 0
        self.hurried = threading.Event()

    def hurry(self) -> None:
        self.hurries += 1
        self.hurried.set()


def test_the_stopwatch_hurries_whoever_takes_too_long_until_it_has_ended():
    slow, quick = Working(), Working()
    stopwatch = Stopwatch("test", SystemClock(), 0)
    try:
        stopwatch.watch(quick)
        stopwatch.watch(slow)
        eventually(lambda: slow.hurries > 2, "hurried again and again")
        stopwatch.rest()
        stopwatch.watch(quick)
        stopwatch.rest()
        assert not quick.hurries
    finally:
        stopwatch.close()
    assert not any(thread.name == "test-stopwatch" for thread in threading.enumerate())
