"""Spark's workers read from Kafka and publish to it; one is killed within its transaction, and nothing shows."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill import handover
from pystreams.backfill.executor import PartitionFunction
from pystreams.backfill.handover import hand_over
from pystreams.backfill.publishing import PublishStore
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.broker.kafka.transactions import KafkaTransactionalProducer
from tests.backfill.live import Left, append, create, left_on, with_sinks_before
from tests.backfill.spark.conftest import executor, spark
from tests.kafka.backfill_driver import computed, program
from tests.kafka.support import Cluster
from tests.kafka.test_backfill_hand_over import UNTIL_MS, live, past
from tests.live.support import run_to_the_end

__all__ = ["executor", "live", "spark"]


@dataclass(frozen=True)
class KilledOnce:
    """Its worker is killed when all is written and nothing committed, once: it leaves a file first."""

    function: PartitionFunction
    marker: Path

    def __call__(self, partition: int, batches: Iterator[Any]) -> bytes:
        if partition == 1 and not self.marker.exists():
            self.marker.touch()
            KafkaTransactionalProducer.commit = _kill  # type: ignore[method-assign]
        return self.function(partition, batches)


def _kill(producer: KafkaTransactionalProducer) -> None:
    producer._client.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def test_published_by_workers_it_equals_live_with_a_stop(
    cluster: Cluster,
    live: Left,
    executor: SparkExecutor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create(cluster, past(), ["sums"])
    append(cluster, past())
    result = computed(cluster.bootstrap_servers, cluster.path, UNTIL_MS, executor)
    marker = tmp_path / "killed"
    monkeypatch.setattr(handover, "PublishStore", lambda *given: KilledOnce(PublishStore(*given), marker))
    hand_over(result, cluster.broker)
    assert marker.exists()
    app = program(cluster.path)
    run_to_the_end(cluster, app)
    assert with_sinks_before(result, left_on(cluster, app, ["sums"])) == live
