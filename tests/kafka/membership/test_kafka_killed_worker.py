"""The tasks of a process that is killed go on within three seconds if another process shares its state directory,
although its members' sessions last for 45 s more; those of a static worker within five, and nothing moves if it is back
by then. Otherwise they go on soon after the sessions. The same at least once and exactly once."""

from __future__ import annotations

import math
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from pystreams.runtime.recovery.neighbours import STATIC_RETURN_MS
from tests.cli.workers.workers_kit import ROOT, WorkersRun
from tests.examples import chosen
from tests.kafka.membership import slow_start
from tests.kafka.resuming import promptly
from tests.kafka.support import Cluster
from tests.live.support import eventually

#: The manual's "about three seconds". The sessions last for 45.
PROMISED_S = 3
#: The others wait for a static worker, which has to start first.
PROMISED_STATIC_S = 5
GROUP = "wordcount"
READ = ("lines", "wordcount-counts-repartition")
#: Of the processes that share nothing, and how long after it all goes on.
SESSION_TIMEOUT_S = 6
AFTER_SESSION_S = 2

EXACTLY_ONCE = ("-s", "processing_guarantee=exactly_once_v2")
STATIC = ("-s", "group_instance_id=host")
AT_LEAST_ONCE: tuple[str, ...] = ()
GUARANTEES = chosen(
    [pytest.param(AT_LEAST_ONCE, id="at-least-once"), pytest.param(EXACTLY_ONCE, id="exactly-once")],
    lambda case: case.id == "exactly-once",
)
#: The program, the promise, and the guarantee.
STATIC_CASES = chosen(
    [
        pytest.param(program, promised_s, guarantee, id=f"{start}-{name}")
        for start, program, promised_s in (
            ("as usual", "apps.wordcount", PROMISED_STATIC_S),
            ("slow start", slow_start.__name__, PROMISED_STATIC_S + slow_start.SLOW_S),
        )
        for name, guarantee in (("at-least-once", AT_LEAST_ONCE), ("exactly-once", EXACTLY_ONCE))
    ],
    lambda case: case.id in ("as usual-exactly-once", "slow start-at-least-once"),
)

Start = Callable[..., WorkersRun]


@pytest.fixture
def start(cluster: Cluster) -> Iterator[Start]:
    """Starts ``pystreams run PROGRAM``, whose sessions last as long as they do by default."""
    cluster.create("lines", "word-counts", "settings", partitions=4)
    runs: list[WorkersRun] = []

    def start(*options: str, program: str = "apps.wordcount") -> WorkersRun:
        state = () if "--state-dir" in options else ("--state-dir", str(cluster.path / "state"))
        command = [program, *state, "-s", "commit_interval_ms=100"]
        environment = {"PYSTREAMS_BOOTSTRAP_SERVERS": cluster.bootstrap_servers}
        runs.append(WorkersRun(ROOT, *command, *options, **environment))
        return runs[-1]

    yield start
    for run in runs:
        run.close()


def write(cluster: Cluster) -> None:
    """A line into each partition."""
    for partition in range(4):
        cluster.write("lines", [(str(partition), "one two three four", 0)], value=str, partition=partition)


def works(cluster: Cluster) -> float:
    """How many seconds it takes until a line in each partition is processed, counted and committed."""
    began = time.monotonic()
    write(cluster)
    eventually(lambda: cluster.all_committed(GROUP, *READ), "all is committed")
    return time.monotonic() - began


def settle(cluster: Cluster, members: int) -> None:
    """Wait until all members have partitions, and work."""

    def settled() -> bool:
        if len(cluster.admin.group_members(GROUP)) != members:
            return False
        described = cluster.broker._client.describe_consumer_groups([GROUP])[GROUP].result().members
        return len([member for member in described if member.assignment.topic_partitions]) == members

    eventually(settled, f"{members} members with partitions")
    works(cluster)


def kill_a_worker(cluster: Cluster, run: WorkersRun, number: int) -> float:
    """Kill the process of a worker when all work; how many seconds it takes until all goes on."""
    workers = len(run.workers())
    os.kill(run.workers()[number], signal.SIGKILL)
    took_s = works(cluster)
    run.all_there(workers)
    return took_s


def settle_and_kill(cluster: Cluster, run: WorkersRun, number: int) -> float:
    settle(cluster, members=len(run.workers()))
    return kill_a_worker(cluster, run, number)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_all_goes_on_at_once_when_a_worker_of_two_is_killed(
    cluster: Cluster, start: Start, guarantee: tuple[str, ...]
):
    """The case of at least once is ``test_processes_without_a_supervisor_notice_it_too``."""
    run = start("--workers", "2", *guarantee)
    run.all_there(2)
    for number in (2, 1):
        promptly(partial(settle_and_kill, cluster, run, number), PROMISED_S, f"the kill of worker {number}")
    run.send(signal.SIGTERM)
    run.ends_with(0)


def generations(run: WorkersRun) -> list[int]:
    """The generations in which its threads were assigned tasks."""
    return [
        int(one) for one in re.findall(r"^worker \d+ \| .*generation (\d+): tasks", run.text, re.MULTILINE)
    ]


@pytest.mark.parametrize(("program", "promised_s", "guarantee"), STATIC_CASES)
def test_a_static_worker_that_is_killed_comes_back_at_once_without_a_rebalance(
    cluster: Cluster, start: Start, guarantee: tuple[str, ...], program: str, promised_s: float
):
    """Its next process is one that has imported everything, and has waited for its death."""

    def kill(run: WorkersRun, number: int) -> float:
        settle(cluster, members=2)
        before = generations(run)
        spare = eventually(run.spare, "a spare process")
        took_s = kill_a_worker(cluster, run, number)
        assert run.workers()[number] == spare
        eventually(lambda: len(generations(run)) > len(before), "its next process has tasks")
        return took_s if max(generations(run)) == max(before) else math.inf

    def kill_each() -> float:
        # Anew for each attempt: a second death in a row has the worker wait for longer.
        run = start("--workers", "2", "--verbose", *STATIC, *guarantee, program=program)
        run.all_there(2)
        took_s = max(kill(run, number) for number in (2, 1))
        run.send(signal.SIGTERM)
        run.ends_with(0)
        return took_s

    promptly(kill_each, promised_s, "the kill")


def test_all_goes_on_at_once_if_a_static_worker_does_not_come_back_in_time(cluster: Cluster, start: Start):
    """After its third death in a row a worker starts again after four seconds, and then needs another one to show up:
    by then the other one has its tasks."""
    run = start("--workers", "2", *STATIC)
    run.all_there(2)

    def kill_again_and_again() -> float:
        settle(cluster, members=2)
        began = time.monotonic()
        killed = run.workers()[2]
        os.kill(killed, signal.SIGKILL)
        for _ in range(2):
            killed = eventually(lambda last=killed: run.workers().get(2, last) != last and run.workers()[2])
            os.kill(killed, signal.SIGKILL)
        works(cluster)
        took_s = time.monotonic() - began
        run.says(r"group wordcount goes on without \S+: the process has died")
        run.all_there(2)
        return took_s

    promptly(kill_again_and_again, PROMISED_S + STATIC_RETURN_MS / 1000, "the first of three kills")
    run.send(signal.SIGTERM)
    run.ends_with(0)


def test_the_next_process_of_an_only_worker_that_is_killed_goes_on(cluster: Cluster, start: Start):
    run = start("--workers", "1")
    run.all_there(1)
    # It has to start first; nobody else can go on.
    promptly(partial(settle_and_kill, cluster, run, 1), 2 * PROMISED_S, "the kill")
    run.send(signal.SIGTERM)
    run.ends_with(0)


def test_processes_without_a_supervisor_notice_it_too(cluster: Cluster, start: Start):
    living = [start()]

    def kill() -> float:
        living.append(start())
        settle(cluster, members=2)
        first = living.pop(0)
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        return works(cluster)

    promptly(kill, PROMISED_S, "the kill")
    (left,) = living
    left.says(r"group wordcount goes on without \S+: the process has died")
    left.send(signal.SIGINT)
    left.ends_with(0)


def test_where_nobody_sees_the_death_the_tasks_go_on_soon_after_the_session(cluster: Cluster, start: Start):
    quick = ("-s", f"session_timeout_ms={1000 * SESSION_TIMEOUT_S}", "-s", "heartbeat_interval_ms=1000")
    left = start("--state-dir", str(cluster.path / "a"), *quick)

    def kill() -> float:
        first = start("--state-dir", str(cluster.path / "b"), *quick)
        settle(cluster, members=2)
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        after_s = works(cluster) - SESSION_TIMEOUT_S
        assert after_s > -2, "somebody has seen it die"
        return after_s

    promptly(kill, AFTER_SESSION_S, "the session")
    left.send(signal.SIGINT)
    left.ends_with(0)
