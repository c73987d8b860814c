"""Reads of the latest state: the stream threads themselves read their stores, between two steps of their work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from typing import Any, Final, Generic, NamedTuple, TypeVar

from pystreams.clock import Clock, Deadline
from pystreams.errors import StateError
from pystreams.ids import TopicPartition
from pystreams.runtime.group.membership_data import Whereabouts
from pystreams.runtime.queries.answers import Answer, Answers, Demands
from pystreams.runtime.queries.committed_reads import too_far
from pystreams.runtime.queries.position import Position
from pystreams.runtime.queries.whereabouts import found_in
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.task_manager import TaskManager
from pystreams.runtime.threads.stream_thread import StreamThread
from pystreams.state.iterators import read_to_end

R = TypeVar("R")

#: The pause before asking again a thread that has not reached a position.
_PAUSE_S: Final = 0.005


class _Reply(NamedTuple, Generic[R]):
    """A thread's reply: the answers of its tasks by partition or, if some have not reached the demanded position, the
    offsets that they lack."""

    answers: dict[int, Answer[R]]
    missing: dict[int, dict[TopicPartition, int]]


def latest_answers(
    store: str,
    subtopology: int,
    threads: Sequence[StreamThread],
    whereabouts: Callable[[], Whereabouts],
    demands: Demands,
    clock: Clock,
    read: Callable[[Any], R],
    only: Collection[int] | None = None,
) -> Answers[R]:
    """The results of ``read`` for the store of each task of a sub-topology that runs here; ``only``: only of these
    partitions, so that only the threads that have them are asked. ``whereabouts`` returns the places of the others.
    Raises ``StateError`` if a task does not reach the demanded position in time, or if a thread is busy for the whole
    time."""
    deadline = Deadline(clock, demands.timeout_ms)
    question = _question(store, subtopology, demands, read, only)
    asked = [thread for thread in threads if only is None or _running(subtopology, [thread]) & {*only}]
    answers = _when_reached(store, asked, question, deadline)
    if asked and only is not None and not answers.keys() >= {*only}:
        # A task may have moved to another thread meanwhile.
        answers |= _when_reached(store, [one for one in threads if one not in asked], question, deadline)
    others = set() if only is None else _running(subtopology, threads).difference(only)
    return Answers(answers, found_in(subtopology, threads, answers.keys() | others, whereabouts()))


def latest_call(
    store: str,
    subtopology: int,
    threads: Sequence[StreamThread],
    read: Callable[[Any], R],
    partition: int,
) -> tuple[StreamThread, Callable[[TaskManager], Answer[R] | None]] | None:
    """The thread that runs the task of a partition, and the function that this thread must call. The function returns
    the result of ``read``, or None if the task has moved meanwhile. None if the task does not run here."""
    thread = next((one for one in threads if partition in _running(subtopology, [one])), None)
    if thread is None:
        return None
    question = _question(store, subtopology, Demands(), read, [partition])
    return thread, lambda tasks: question(tasks).answers.get(partition)


def _question(
    store: str,
    subtopology: int,
    demands: Demands,
    read: Callable[[Any], R],
    only: Collection[int] | None,
) -> Callable[[TaskManager], _Reply[R]]:
    """The function that a thread calls. ``read`` may take long, so it is called only when the position is reached."""

    def answered(task: ActiveTask) -> Answer[R]:
        result = read_to_end(read(task.stores[store]))
        return Answer(result, task.task_id.partition, Position(task.processed_offsets()))

    def of_thread(tasks: TaskManager) -> _Reply[R]:
        wanted = {
            task.task_id.partition: task
            for task in tasks.running
            if task.task_id.subtopology == subtopology and (only is None or task.task_id.partition in only)
        }
        missing = {
            partition: lacks
            for partition, task in wanted.items()
            if (at_least := demands.at_least.of_partition(partition))
            and (lacks := at_least.missing(task.processed_offsets()))
        }
        if missing:
            return _Reply({}, missing)
        return _Reply({partition: answered(task) for partition, task in wanted.items()}, {})

    return of_thread


def _when_reached(
    store: str,
    threads: Sequence[StreamThread],
    question: Callable[[TaskManager], _Reply[R]],
    deadline: Deadline,
) -> dict[int, Answer[R]]:
    """The answers of all these threads. Those that have not reached the demanded position are asked again."""
    pause = threading.Event()
    answers: dict[int, Answer[R]] = {}
    missing: dict[int, dict[TopicPartition, int]] = {}
    while True:
        replies = _asked(threads, question, deadline)
        if replies is not None:
            missing = {}
            for reply in replies:
                answers |= reply.answers
                missing |= reply.missing
            if not missing:
                return answers
            threads = [thread for thread, reply in zip(threads, replies, strict=True) if reply.missing]
        if missing and deadline.expired():
            raise too_far(store, *min(missing.items()))
        if replies is None:
            raise StateError(
                f"store {store} could not be read in time",
                why="a stream thread was busy all the while",
                hint="a function of the application is slow, or blocks; freshness='committed' does not wait for it",
            )
        pause.wait(_PAUSE_S)


def _asked(
    threads: Sequence[StreamThread], question: Callable[[TaskManager], _Reply[R]], deadline: Deadline
) -> list[_Reply[R]] | None:
    """The replies of the threads. None: one of them has not replied before the deadline. Raises the errors of reads."""
    asked = [thread.call(question) for thread in threads]
    try:
        done, late = wait(asked, deadline.remaining_ms() / 1000, FIRST_EXCEPTION)
        for one in done:
            one.result()
        return None if late else [one.result() for one in asked]
    finally:
        # Otherwise a busy thread would later read for a caller that has gone.
        for one in asked:
            one.cancel()


def _running(subtopology: int, threads: Sequence[StreamThread]) -> set[int]:
    """The partitions of a sub-topology whose tasks these threads run."""
    return {
        task.task_id.partition
        for thread in threads
        if (tasks := thread.tasks) is not None
        for task in tasks.running
        if task.task_id.subtopology == subtopology
    }
