"""What hundreds of steps of one task remember is part of the transaction that commits their offsets."""

from __future__ import annotations

from tests.kafka.support import Cluster
from tests.live.many_steps_kit import closed_windows_stay_closed


def test_closed_windows_stay_closed(cluster: Cluster) -> None:
    cluster.broker = cluster.broker_with(exactly_once=True)
    closed_windows_stay_closed(cluster)
