"""Processes join, leave, are killed and frozen under load. ``make churn`` does the same for two minutes."""

from __future__ import annotations

import pytest

from tests.kafka.churn.job import run
from tests.kafka.support import Cluster

pytestmark = pytest.mark.slow

SECONDS, SEED = 22.0, 5


def test_no_two_live_members_own_a_task_and_nothing_is_lost(cluster: Cluster):
    report = run(cluster, cluster.path / "workers", SECONDS, SEED)
    print(report)
    assert report.intervals > 30
    assert report.commits > 100
    assert report.zombies, "no process was frozen for so long that it was replaced"
    assert report.zombies_noticed, "no zombie was told that it had been replaced"
