"""Spark's workers read from Kafka and publish to it: whatever is killed, live goes on from it as after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from pystreams.backfill.spark.executor import SparkExecutor
from tests.backfill.random_topologies import CERTAIN, RESTARTED
from tests.backfill.spark.kinds import ON_EMBEDDED, TOPOLOGIES, Place, check, of_operators
from tests.backfill.trials import Written, read
from tests.kafka.support import Cluster

#: What has to do with Kafka's transactions: topologies with few slices show it as well as the ones that were recorded
#: for Kafka, which ``make prove-backfill`` runs. There a driver also dies before the commit.
SHORT = ["driver-in-commit", "worker-in-publish"]


def _recorded() -> list[Written]:
    of_kind = {written.kind: written for written in reversed(read(TOPOLOGIES)[: len(ON_EMBEDDED)])}
    of_kind |= {written.kind: written for written in of_operators()}
    return [of_kind[kind] for kind in SHORT]


@pytest.mark.slow
@pytest.mark.parametrize("written", _recorded(), ids=lambda written: written.name)
def test_whatever_is_killed_it_goes_on_as_live(
    written: Written, cluster: Cluster, executor: SparkExecutor, tmp_path: Path
) -> None:
    place = Place(cluster, tmp_path, cluster.bootstrap_servers)
    assert check(written, place, executor) in {RESTARTED, CERTAIN}
