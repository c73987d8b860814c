"""Reads of the last commit by the calling thread, from the tasks that run in this process and from its standbys."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pystreams.clock import Clock, Deadline
from pystreams.errors import StateError
from pystreams.ids import TopicPartition
from pystreams.runtime.group.membership_data import Whereabouts
from pystreams.runtime.queries.answers import Answer, Answers, Demands
from pystreams.runtime.queries.position import Position
from pystreams.runtime.queries.whereabouts import found_in
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.standby_task import StandbyTask
from pystreams.runtime.threads.stream_thread import StreamThread
from pystreams.state.commit_mark import CommitMark
from pystreams.state.committed import CommittedAnswer

R = TypeVar("R")

#: While a reader waits for a commit, it repeats its request for one at this interval.
_ASK_EVERY_MS: Final = 50.0


@dataclass(frozen=True, slots=True)
class _Readable:
    """A task whose stores can be read, and its thread."""

    task: ActiveTask | StandbyTask
    thread: StreamThread

    @property
    def standby(self) -> bool:
        return isinstance(self.task, StandbyTask)


def committed_answers(
    store: str,
    subtopology: int,
    threads: Sequence[StreamThread],
    whereabouts: Callable[[], Whereabouts],
    demands: Demands,
    clock: Clock,
    read: Callable[[Any], R],
    only: Collection[int] | None = None,
) -> Answers[R]:
    """The results of ``read`` for the store of each task of a sub-topology that can be read here; ``only``: only of
    these partitions. ``whereabouts`` returns the places of the others. Raises ``StateError`` if a task does not reach
    the demanded position in time."""
    readable = _readable(subtopology, threads, standbys=demands.standbys)
    deadline = Deadline(clock, demands.timeout_ms)
    answers: dict[int, Answer[R]] = {}
    for partition, one in sorted(readable.items()):
        if only is not None and partition not in only:
            continue
        found = _read(one, store, read, demands.at_least.of_partition(partition), deadline)
        if found is None:
            del readable[partition]
            continue
        lag: int | None = 0
        if one.standby:
            tasks = one.thread.tasks
            lag = None if tasks is None else tasks.standby_lags().get(one.task.task_id)
        answers[partition] = Answer(found.result, partition, Position(found.offsets), one.standby, lag)
    here = answers.keys() if only is None else readable.keys()
    return Answers(answers, found_in(subtopology, threads, here, whereabouts()))


def committed_at_once(
    store: str,
    subtopology: int,
    threads: Sequence[StreamThread],
    partitions: Collection[int],
    read: Callable[[Any], R],
) -> dict[int, Answer[R]]:
    """By partition, the result of ``read`` for the store of each of these tasks that runs here and is not just
    committing its stores."""
    answers: dict[int, Answer[R]] = {}
    for partition, task in _of_partitions(subtopology, threads, partitions):
        found = task.state.committed_stores.read_at_once(store, read)
        if found is not None:
            answers[partition] = Answer(found.result, partition, Position(found.offsets))
    return answers


def commit_marks(
    subtopology: int, threads: Sequence[StreamThread], partitions: Collection[int]
) -> dict[int, CommitMark]:
    """By partition the mark of each of these tasks that runs here. As long as it is the same object, readers read the
    same content."""
    tasks = _of_partitions(subtopology, threads, partitions)
    return {partition: task.state.committed_stores.mark for partition, task in tasks}


def reads_at_once(store: str, subtopology: int, threads: Sequence[StreamThread]) -> bool:
    """Whether no task of a sub-topology is just committing its stores, so that a read does not wait."""
    running = _running(subtopology, threads)
    return all(task.state.committed_stores.reads_at_once(store) for task in running)


def _running(subtopology: int, threads: Sequence[StreamThread]) -> Iterator[ActiveTask]:
    """The running tasks of a sub-topology."""
    for thread in threads:
        tasks = thread.tasks
        for task in () if tasks is None else tasks.running:
            if task.task_id.subtopology == subtopology:
                yield task


def _of_partitions(
    subtopology: int, threads: Sequence[StreamThread], partitions: Collection[int]
) -> Iterator[tuple[int, ActiveTask]]:
    """The running tasks of some partitions, each with its partition."""
    left = len(partitions)
    for task in _running(subtopology, threads):
        partition = task.task_id.partition
        if partition in partitions:
            yield partition, task
            left -= 1
            if not left:
                return


def _readable(subtopology: int, threads: Sequence[StreamThread], *, standbys: bool) -> dict[int, _Readable]:
    """By partition the task that can be read: preferably the running task, otherwise a standby."""
    found: dict[int, _Readable] = {}
    for thread in threads:
        tasks = thread.tasks
        if tasks is None:
            continue
        if standbys:
            for standby in tasks.followed():
                if standby.task_id.subtopology == subtopology:
                    found.setdefault(standby.task_id.partition, _Readable(standby, thread))
        for task in tasks.running:
            if task.task_id.subtopology == subtopology:
                found[task.task_id.partition] = _Readable(task, thread)
    return found


def _read(
    one: _Readable, store: str, read: Callable[[Any], R], at_least: Position, deadline: Deadline
) -> CommittedAnswer[R] | None:
    """The answer of one task; None: the task is not here any more. ``read`` may take long, so it is called only once,
    when the position is reached."""
    state = one.task.open_state
    if state is None:
        return None
    committed = state.committed_stores
    while (offsets := committed.offsets) is not None and (missing := at_least.missing(offsets)):
        if one.standby:
            raise StateError(
                f"store {store} cannot be read up to a position from the standby of task {one.task.task_id}",
                why="a standby follows the changelog, and does not know which input it contains",
                hint="ask the process that runs the task, or ask without at_least",
            )
        if deadline.expired():
            raise too_far(store, one.task.task_id.partition, missing)
        one.thread.request_commit_soon()
        committed.wait(
            lambda offsets: not at_least.missing(offsets), min(_ASK_EVERY_MS, deadline.remaining_ms())
        )
    return committed.read(store, read)


def too_far(store: str, partition: int, missing: dict[TopicPartition, int]) -> StateError:
    """The error for a position that was not reached in time. ``missing``: how many offsets, by partition."""
    lacks = ", ".join(f"{count} offsets of {place}" for place, count in missing.items())
    return StateError(
        f"partition {partition} of store {store} has not reached the position in time",
        why=f"it does not include the last {lacks} up to there",
        hint="ask again, or allow more time with timeout=",
    )
