"""The tasks of a process that is killed go on at once if another process shares its state directory, although its
members' sessions last for 45 s more; otherwise they go on when the sessions are over."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from pystreams.ids import TopicPartition
from tests.cli.workers.workers_kit import ROOT, WorkersRun
from tests.kafka.support import Cluster
from tests.live.support import eventually

#: Far below the sessions' 45 s. Alone on the machine it takes about two seconds.
SOON_S = 15
GROUP = "wordcount"
#: Of the processes that share nothing.
SESSION_TIMEOUT_S = 6

Start = Callable[..., WorkersRun]


@pytest.fixture
def start(cluster: Cluster) -> Iterator[Start]:
    """Starts ``pystreams run apps.wordcount``, whose sessions last as long as they do by default."""
    cluster.create("lines", "word-counts", partitions=4)
    runs: list[WorkersRun] = []

    def start(*options: str) -> WorkersRun:
        state = () if "--state-dir" in options else ("--state-dir", str(cluster.path / "state"))
        command = ["apps.wordcount", *state, "-s", "commit_interval_ms=100"]
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
    """How many seconds it takes until a line in each partition is processed and committed."""
    began = time.monotonic()
    write(cluster)
    ends = cluster.admin.end_offsets([TopicPartition("lines", partition) for partition in range(4)])

    def done() -> bool:
        committed = cluster.committed(GROUP)
        return all(p in committed and committed[p].offset >= end for p, end in ends.items())

    eventually(done, "a line of each partition is committed")
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


@pytest.mark.parametrize("settings", [[], ["-s", "group_instance_id=host"]], ids=["dynamic", "static"])
def test_the_other_workers_go_on_with_the_tasks_of_one_that_is_killed(
    cluster: Cluster, start: Start, settings: list[str]
):
    run = start("--workers", "2", *settings)
    before = run.all_there(2)
    settle(cluster, members=2)
    os.kill(before[2], signal.SIGKILL)
    took_s = works(cluster)
    print(f"all partitions go on {took_s:.1f} s after a kill")
    assert took_s < SOON_S
    run.send(signal.SIGTERM)
    run.ends_with(0)


def test_the_next_process_of_an_only_worker_that_is_killed_goes_on(cluster: Cluster, start: Start):
    run = start("--workers", "1")
    before = run.all_there(1)
    settle(cluster, members=1)
    os.kill(before[1], signal.SIGKILL)
    took_s = works(cluster)
    print(f"all partitions go on {took_s:.1f} s after a kill")
    assert took_s < SOON_S
    run.send(signal.SIGTERM)
    run.ends_with(0)


def test_processes_without_a_supervisor_notice_it_too(cluster: Cluster, start: Start):
    first, second = start(), start()
    settle(cluster, members=2)
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    took_s = works(cluster)
    print(f"all partitions go on {took_s:.1f} s after a kill")
    assert took_s < SOON_S
    second.says(r"group wordcount goes on without \S+: the process has died")
    second.send(signal.SIGINT)
    second.ends_with(0)


def test_where_nobody_sees_the_death_the_tasks_go_on_soon_after_the_session(cluster: Cluster, start: Start):
    quick = ("-s", f"session_timeout_ms={1000 * SESSION_TIMEOUT_S}", "-s", "heartbeat_interval_ms=1000")
    first, second = (start("--state-dir", str(cluster.path / name), *quick) for name in ("a", "b"))
    settle(cluster, members=2)
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    took_s = works(cluster)
    print(f"all partitions go on {took_s - SESSION_TIMEOUT_S:.1f} s after the session")
    assert SESSION_TIMEOUT_S - 2 < took_s < SESSION_TIMEOUT_S + SOON_S
    second.send(signal.SIGINT)
    second.ends_with(0)
