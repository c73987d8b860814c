"""After ``kill -9`` the next start elsewhere waits for the session of the member that is gone, and says so."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest

from pystreams.ids import MemberName
from tests.cli.workers.workers_kit import ROOT, WorkersRun
from tests.kafka.support import Cluster

pytestmark = pytest.mark.slow

#: Longer than a start and the patience of who waits, on a busy machine, too.
SESSION_TIMEOUT_MS = 45_000

Start = Callable[[], WorkersRun]


@pytest.fixture
def start(cluster: Cluster) -> Iterator[Start]:
    """Starts ``pystreams run apps.wordcount``, each time with another state directory, as on another machine."""
    cluster.create("lines", "word-counts")
    runs: list[WorkersRun] = []

    def start() -> WorkersRun:
        settings = ("-s", f"session_timeout_ms={SESSION_TIMEOUT_MS}", "-s", "heartbeat_interval_ms=1000")
        command = ("apps.wordcount", "--state-dir", str(cluster.path / f"state{len(runs)}"), *settings)
        runs.append(WorkersRun(ROOT, *command, PYSTREAMS_BOOTSTRAP_SERVERS=cluster.bootstrap_servers))
        return runs[-1]

    yield start
    for run in runs:
        run.close()


def test_the_next_start_says_whom_it_waits_for_and_how_long(cluster: Cluster, start: Start):
    first = start()
    first.says("^running ")
    (member,) = cluster.admin.group_members("wordcount")
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    second = start()
    second.says(
        r"group wordcount: no tasks for 1\d s, because the group waits for a member that was in the group before: \S+;"
        rf" if it was killed, its session times out in \d+ s at the latest \(session_timeout_ms={SESSION_TIMEOUT_MS}\)"
    )
    # As at the end of the session, which nobody needs to wait for here (test_kafka_killed_worker.py does).
    cluster.admin.remove_members("wordcount", [MemberName(member, None)])
    second.says("^running ")
    second.send(signal.SIGINT)
    second.ends_with(0)
