"""Exactly once, a process with standbys takes over from one that was killed without restoring, and counts every record
once."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict

import pytest

from tests.kafka.server import ROOT
from tests.kafka.support import Cluster
from tests.live.support import eventually, running
from tests.live.test_standbys import TASKS, Input, Process

pytestmark = pytest.mark.slow


def test_who_takes_over_restores_nothing_and_repeats_nothing(cluster: Cluster):
    cluster.broker = cluster.broker_with(exactly_once=True)
    written = Input(cluster)
    written.write(3_000)
    one = Process(cluster, "one", num_standby_replicas=1)
    running(one.streams)
    written.wait_until_counted()
    place = [cluster.bootstrap_servers, "exactly_once_v2"]
    two = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.live.standby_worker",
            str(cluster.path),
            str(cluster.path / "two"),
            *place,
        ],
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
    counts: defaultdict[str, list[int]] = defaultdict(list)
    for record in cluster.read("out"):
        counts[record.key].append(record.value)
    assert all(values == sorted(set(values)) for values in counts.values()), "a count was written twice"
