"""Reads of what stream threads have processed so far, by these threads themselves, between two rounds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Final, TypeVar

from pystreams.clock import Clock, Deadline
from pystreams.errors import StateError
from pystreams.ids import TopicPartition
from pystreams.runtime.queries.answers import Answer, Answers, Demands
from pystreams.runtime.queries.committed_reads import too_far
from pystreams.runtime.queries.placing import Found, owners_in
from pystreams.runtime.queries.position import Position
from pystreams.runtime.tasks.task_manager import TaskManager
from pystreams.runtime.threads.stream_thread import StreamThread
from pystreams.state.iterators import read_to_end

R = TypeVar("R")

#: The pause before a thread is asked again that has not reached a position.
_PAUSE_S: Final = 0.005


def latest_answers(
    store: str,
    subtopology: int,
    threads: Sequence[StreamThread],
    demands: Demands,
    clock: Clock,
    read: Callable[[Any], R],
) -> Answers[R]:
    """The results of ``read`` for the store of each task of a sub-topology that runs here. Raises ``StateError`` if one
    of them does not reach the demanded position in time, or a thread is busy for so long."""
    deadline = Deadline(clock, demands.timeout_ms)
    pause = threading.Event()
    behind: dict[int, dict[TopicPartition, int]] = {}
    while True:
        answers = _asked(store, subtopology, threads, deadline, read)
        if answers is not None:
            behind = {
                partition: missing
                for partition, answer in answers.by_partition.items()
                if (missing := demands.at_least.of_partition(partition).missing(answer.position))
            }
            if not behind:
                return answers
        if behind and deadline.expired():
            raise too_far(store, *min(behind.items()))
        if answers is None:
            raise StateError(
                f"store {store} could not be read in time",
                why="a stream thread was busy all the while",
                hint="a function of the application is slow, or blocks; freshness='committed' does not wait for it",
            )
        pause.wait(_PAUSE_S)


def _asked(
    store: str,
    subtopology: int,
    threads: Sequence[StreamThread],
    deadline: Deadline,
    read: Callable[[Any], R],
) -> Answers[R] | None:
    """None: a thread has not answered before the deadline."""

    def of_thread(tasks: TaskManager) -> tuple[dict[int, Answer[R]], set[int]]:
        answers = {
            task.task_id.partition: Answer(
                read_to_end(read(task.stores[store])),
                task.task_id.partition,
                Position(task.processed_offsets()),
            )
            for task in tasks.running
            if task.task_id.subtopology == subtopology
        }
        given = {task.partition for task in tasks.task_ids() if task.subtopology == subtopology}
        return answers, given

    asked = [thread.call(of_thread) for thread in threads]
    by_partition: dict[int, Answer[R]] = {}
    given: set[int] = set()
    try:
        for of_one in asked:
            of_running, of_all = of_one.result(deadline.remaining_ms() / 1000)
            by_partition |= of_running
            given |= of_all
    except FutureTimeoutError:
        return None
    here = by_partition.keys()
    return Answers(by_partition, Found(here, given - here, owners_in(subtopology, threads)))
