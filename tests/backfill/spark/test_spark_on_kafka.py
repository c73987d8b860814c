"""Spark's workers read from Kafka and publish to it: whatever is killed, live goes on from it as after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from pystreams.backfill.spark.executor import SparkExecutor
from tests.backfill.random_topologies import CERTAIN, RESTARTED
from tests.backfill.spark.kinds import ON_EMBEDDED, TOPOLOGIES, Place, check
from tests.backfill.trials import Written, read
from tests.kafka.support import Cluster

#: That a driver dies before the commit is seen by ``make prove-backfill``.
SHORT = ["worker-in-publish", "driver-in-commit"]


def _recorded() -> list[Written]:
    return [written for written in read(TOPOLOGIES)[len(ON_EMBEDDED) :] if written.kind in SHORT]


@pytest.mark.slow
@pytest.mark.parametrize("written", _recorded(), ids=lambda written: written.name)
def test_whatever_is_killed_it_goes_on_as_live(
    written: Written, cluster: Cluster, executor: SparkExecutor, tmp_path: Path
) -> None:
    place = Place(cluster, tmp_path, cluster.bootstrap_servers)
    assert check(written, place, executor) in {RESTARTED, CERTAIN}
