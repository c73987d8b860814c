"""A machine without state begins with the last snapshot, and reads no more of the changelog than its tail, also after
``kill -9``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pystreams.metrics import names
from tests.live.snapshot_kit import PARTITIONS, Input, client, offsets_of, servers_of
from tests.live.support import Log, caught_up, eventually

pytestmark = [pytest.mark.slow, pytest.mark.both_logs]

ROOT = Path(__file__).parents[2]


def test_a_new_machine_reads_the_tail_alone(log: Log) -> None:
    written, snapshots = Input(log), log.path / "snapshots"
    written.write(6_000)
    places = [str(log.path), str(log.path / "one"), str(snapshots)]
    one = subprocess.Popen(
        [sys.executable, "-m", "tests.live.snapshot_worker", *places, *servers_of(log)], cwd=ROOT
    )
    try:
        written.wait_until_counted()
        eventually(
            lambda: all(
                offsets_of(snapshots).get(p, 0) >= end - 5 for p, end in written.changelog_ends().items()
            ),
            "snapshots of both tasks",
        )
        written.write(100)
        written.wait_until_counted()
    finally:
        one.kill()
        one.wait()
    shutil.rmtree(log.path / "one")

    ends, taken = written.changelog_ends(), offsets_of(snapshots)
    with client(log, "two", snapshots) as (two, restores):
        caught_up(two)
        written.write(100)
        written.wait_until_counted()
        assert two.metrics.total(names.SNAPSHOTS_USED) == PARTITIONS
        for partition, end in ends.items():
            assert restores.starts[partition] == taken[partition] > 1_000
            assert restores.records[partition] <= end - taken[partition] < 150
