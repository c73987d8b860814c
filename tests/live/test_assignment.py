"""T5, T6, T10: tasks are spread over threads and processes; joining moves one task only; a thread too many says so."""

from __future__ import annotations

import logging

import pytest

from pystreams.app import App
from pystreams.ids import TaskId
from pystreams.runtime.streams import Streams
from pystreams.runtime.threads.thread_state import ThreadState
from tests.live.support import Log, eventually, running

pytestmark = pytest.mark.both_logs


def tasks_of(streams: Streams) -> dict[str, list[str]]:
    """Tasks by thread number."""
    return {
        thread.name.rpartition("-")[2]: [str(task.task_id) for task in thread.tasks]
        for thread in streams.metadata_for_local_threads()
    }


def owners(*clients: Streams) -> dict[str, tuple[int, str]]:
    """The client and thread of each task."""
    return {
        task: (number, thread)
        for number, streams in enumerate(clients)
        for thread, tasks in tasks_of(streams).items()
        for task in tasks
    }


def joined(log: Log, threads: int, process: str) -> App:
    app = log.app("joined", num_stream_threads=threads, state_dir=log.path / process)
    left = app.stream("A", key=str, value=int)
    left.merge(app.stream("B", key=str, value=int)).group_by_key().count(name="counts")
    return app


def test_exactly_one_task_moves_to_a_process_that_joins_and_back_when_it_leaves(log: Log) -> None:
    log.create("A", "B", partitions=3)
    one = log.start(joined(log, 2, "p1"))
    running(one)
    eventually(lambda: sorted(map(len, tasks_of(one).values())) == [1, 2], "two threads share three tasks")
    inputs = {
        task.task_id: [str(p) for p in task.inputs]
        for thread in one.metadata_for_local_threads()
        for task in thread.tasks
    }
    assert inputs[TaskId(0, 2)] == ["A-2", "B-2"]
    before = owners(one)

    two = log.start(joined(log, 1, "p2"))
    running(two)
    eventually(
        lambda: sorted(map(len, [*tasks_of(one).values(), *tasks_of(two).values()])) == [1, 1, 1], "one each"
    )
    after = owners(one, two)
    assert sum(before[task] != after[task] for task in before) == 1

    two.close()
    eventually(lambda: sorted(map(len, tasks_of(one).values())) == [1, 2], "two and one again")
    stayed = {task: owner for task, owner in after.items() if owner[0] == 0}
    assert stayed.items() <= owners(one).items()


def idle_messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [message for message in caplog.messages if "has nothing to do: " in message]


def test_a_thread_too_many_runs_idle_and_says_why(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    log.create("in", partitions=5)
    app = log.app("idle", num_stream_threads=6)
    app.stream("in").foreach(lambda value: None)
    with caplog.at_level(logging.INFO, "pystreams"):
        streams = log.start(app)
        running(streams)
        eventually(
            lambda: sorted(map(len, tasks_of(streams).values())) == [0, 1, 1, 1, 1, 1], "one thread is idle"
        )
        eventually(
            lambda: {t.state for t in streams.metadata_for_local_threads()} == {ThreadState.RUNNING},
            "the idle thread runs, too",
        )
        # It may have been given nothing before all threads had joined, and hear later that all have what they get.
        eventually(
            lambda: [m for m in idle_messages(caplog) if "5 tasks, there are 6 threads" in m], "it says why"
        )
    # Who only waits until others give up what it is to get is not told that there is nothing.
    assert all("there are 6 threads" in message for message in idle_messages(caplog))
    streams.remove_stream_thread()
    eventually(lambda: sorted(map(len, tasks_of(streams).values())) == [1, 1, 1, 1, 1], "no thread is idle")


def test_a_thread_that_is_added_takes_its_share(log: Log) -> None:
    log.create("in", partitions=4)
    app = log.app("grow")
    app.stream("in").foreach(lambda value: None)
    streams = log.start(app)
    running(streams)
    assert streams.add_stream_thread() is not None
    eventually(lambda: sorted(map(len, tasks_of(streams).values())) == [2, 2], "two each")


def test_members_keep_processing_while_another_joins(log: Log) -> None:
    log.create("A", "B", partitions=3)
    clients = [log.start(joined(log, 1, "p1")), log.start(joined(log, 1, "p2"))]
    for client in clients:
        running(client)
    eventually(
        lambda: sorted(len(owners(client)) for client in clients) == [1, 2], "three tasks on two members"
    )
    closed = sum(client.metrics.total("task-closed-total") for client in clients)
    third = log.start(joined(log, 1, "p3"))
    running(third)
    eventually(lambda: len(owners(third)) == 1, "the third has one")
    assert sum(client.metrics.total("task-closed-total") for client in clients) - closed == 1
