"""T7: a process with standbys takes over without restoring, also after ``kill -9``; a task with much state moves when
the process to which it goes has warmed up."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.streams import Streams
from pystreams.runtime.threads.thread_state import ThreadState
from tests.broker.following import LONG_SESSION_MS
from tests.live.counted_input import CountedInput
from tests.live.standby_worker import counting
from tests.live.support import Log, eventually, running

pytestmark = [pytest.mark.slow, pytest.mark.both_logs]

ROOT = Path(__file__).parents[2]
PARTITIONS = 3
TASKS = {TaskId(0, partition) for partition in range(PARTITIONS)}
#: How many of the keys k0 to k299 murmur2 puts into each partition. Kafka Streams restored 205 records when partitions
#: 0 and 2 moved.
KEYS = {0: 98, 1: 95, 2: 107}
CHANGELOG = "standbys-counts-changelog"
#: Nothing is committed before the end: until then the cache holds one entry for each key.
AT_THE_END = 600_000


class Restores:
    """Counts the records that active tasks have restored."""

    def __init__(self) -> None:
        self.records: Counter[int] = Counter()

    def on_restore_start(self, partition: TopicPartition, store: str, start: int, end: int) -> None:
        """Counted at the end."""

    def on_batch_restored(self, partition: TopicPartition, store: str, offset: int, records: int) -> None:
        self.records[partition.partition] += records

    def on_restore_end(self, partition: TopicPartition, store: str, records: int) -> None:
        """Counted batch by batch."""


class Process:
    """A client with a state directory of its own."""

    def __init__(self, log: Log, name: str, **settings: Any) -> None:
        self.restores = Restores()
        self.streams: Streams = log.start(
            counting(log.path / name, **settings),
            prepare=lambda streams: streams.set_restore_listener(self.restores),
        )

    @property
    def active(self) -> set[TaskId]:
        """The tasks that run."""
        threads = self.streams.metadata_for_local_threads()
        return {t.task_id for thread in threads if thread.state is ThreadState.RUNNING for t in thread.tasks}

    @property
    def standbys(self) -> dict[TaskId, int | None]:
        return {standby.task_id: standby.lag for standby in self.streams.progress().standbys}

    @property
    def followed(self) -> set[TaskId]:
        """The standbys that lack nothing."""
        return {task for task, lag in self.standbys.items() if lag == 0}


class Input(CountedInput):
    """The input of the application that these tests run."""

    def __init__(self, log: Log) -> None:
        super().__init__(log, "standbys", PARTITIONS)


def share(one: Process, two: Process) -> None:
    """Wait until each follows exactly what the other runs."""
    eventually(
        lambda: (
            one.active | two.active == TASKS
            and not one.active & two.active
            and one.followed == two.active
            and two.followed == one.active
            and one.active
            and two.active
        ),
        f"standbys on both sides: {one.active} {one.standbys}, {two.active} {two.standbys}",
    )


def test_who_is_left_alone_restores_nothing_and_tasks_go_back_and_forth(log: Log) -> None:
    written = Input(log)
    written.write(3_000)
    one = Process(log, "one", num_standby_replicas=1)
    running(one.streams)
    written.wait_until_counted()
    two = Process(log, "two", num_standby_replicas=1)
    share(one, two)
    before = one.restores.records.total()
    two.streams.close()
    eventually(lambda: one.active == TASKS, "all tasks in one process")
    assert one.restores.records.total() == before == 0
    written.write(500)
    written.wait_until_counted()

    again = Process(log, "two", num_standby_replicas=1)
    share(one, again)
    assert one.restores.records.total() == 0
    written.write(500)
    written.wait_until_counted()


def divided(log: Log, written: Input, **settings: Any) -> tuple[Process, Process]:
    """Two processes that divide the tasks before there is anything to process, so that neither has state of what the
    other one runs. The one with two tasks comes first. No session ends: a member that a busy machine delays would be
    replaced, and its tasks would move once more."""
    log.broker = log.broker_with(session_timeout_ms=LONG_SESSION_MS)
    processes = [Process(log, "one", **settings), Process(log, "two", **settings)]
    eventually(
        lambda: (
            sorted(len(process.active) for process in processes) == [1, 2]
            and processes[0].active | processes[1].active == TASKS
        ),
        f"the tasks are divided: {[process.active for process in processes]}",
    )
    written.write(3_000)
    processes.sort(key=lambda process: -len(process.active))
    return processes[0], processes[1]


def test_with_a_standby_the_one_that_is_left_alone_restores_none_of_3_000_records(log: Log) -> None:
    written = Input(log)
    leaves, stays = divided(log, written, num_standby_replicas=1)
    written.wait_until_counted()
    share(leaves, stays)
    assert (leaves.standbys.keys(), stays.standbys.keys()) == (stays.active, leaves.active)
    leaves.streams.close()
    eventually(lambda: stays.active == TASKS, "all tasks in one process")
    assert stays.restores.records.total() == 0
    written.write(500)
    written.wait_until_counted()


def test_without_a_standby_the_one_that_is_left_alone_restores_each_key_that_has_moved(log: Log) -> None:
    written = Input(log)
    leaves, stays = divided(log, written, commit_interval_ms=AT_THE_END)
    processed = (leaves.streams.progress, stays.streams.progress)
    eventually(lambda: sum(progress().records for progress in processed) == 3_000, "all is processed")
    assert not leaves.standbys | stays.standbys
    moved = {task.partition for task in leaves.active}
    leaves.streams.close()
    eventually(lambda: stays.active == TASKS, "all tasks in one process")
    assert stays.restores.records == {partition: KEYS[partition] for partition in moved}
    for partition in moved:
        keys = [line.key for line in log.lines(TopicPartition(CHANGELOG, partition)).values()]
        inputs = log.lines(TopicPartition("in", partition)).values()
        assert sorted(keys) == sorted({line.key for line in inputs})
    stays.streams.close()
    written.wait_until_counted()


def goes_on_when_the_other_is_killed(one: Process, written: Input, *arguments: str) -> None:
    """The survivor of two processes restores nothing. ``arguments`` are the last ones of the worker that is killed."""
    path = written.log.path
    two = subprocess.Popen(
        [sys.executable, "-m", "tests.live.standby_worker", str(path), str(path / "two"), *arguments],
        cwd=ROOT,
    )
    try:
        eventually(
            lambda: one.active and one.active < TASKS and one.followed == TASKS - one.active,
            "standbys of what the other process runs",
        )
        written.write(500)
        written.wait_until_counted()
        eventually(lambda: one.followed == TASKS - one.active, "standbys that lack nothing")
        before = one.restores.records.total()
    finally:
        two.kill()
        two.wait()
    written.write(500)
    eventually(lambda: one.active == TASKS, "all tasks in the survivor")
    written.wait_until_counted()
    assert one.restores.records.total() == before == 0


def test_the_other_process_goes_on_without_restoring_when_one_is_killed(log: Log) -> None:
    written = Input(log)
    written.write(3_000)
    one = Process(log, "one", num_standby_replicas=1)
    running(one.streams)
    written.wait_until_counted()
    servers = [log.bootstrap_servers] if hasattr(log, "bootstrap_servers") else []
    goes_on_when_the_other_is_killed(one, written, *servers)


def test_tasks_with_much_state_run_on_until_the_process_that_joins_has_warmed_up(log: Log) -> None:
    written = Input(log)
    written.write(3_000)
    one = Process(log, "one", acceptable_recovery_lag=10, max_warmup_replicas=1)
    running(one.streams)
    written.wait_until_counted()
    two = Process(log, "two", acceptable_recovery_lag=10, max_warmup_replicas=1)
    eventually(lambda: two.active and one.active | two.active == TASKS, "a task has moved")
    # What it has not read as a standby is at most what it was allowed to lack.
    assert two.restores.records.total() <= 10
    assert one.restores.records.total() == 0
    eventually(lambda: not two.standbys, "nothing more to warm up")
    written.write(500)
    written.wait_until_counted()
