"""Exactly once, a process with standbys takes over from one that was killed without restoring, and counts every record
once."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.kafka.support import Cluster
from tests.live.support import running
from tests.live.test_standbys import Input, Process, goes_on_when_the_other_is_killed

pytestmark = pytest.mark.slow


def test_who_takes_over_restores_nothing_and_repeats_nothing(cluster: Cluster):
    cluster.broker = cluster.broker_with(exactly_once=True)
    written = Input(cluster)
    written.write(3_000)
    one = Process(cluster, "one", num_standby_replicas=1)
    running(one.streams)
    written.wait_until_counted()
    goes_on_when_the_other_is_killed(one, written, cluster.bootstrap_servers, "exactly_once_v2")
    counts: defaultdict[str, list[int]] = defaultdict(list)
    for record in cluster.read("out"):
        counts[record.key].append(record.value)
    assert all(values == sorted(set(values)) for values in counts.values()), "a count was written twice"
