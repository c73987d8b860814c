"""The chaos notices when the product does not keep its promise: faults that are put into it on purpose are found."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.chaos.places import on_a_shared_kafka, on_kafka
from tests.chaos.run import Run
from tests.kafka.server import KafkaServer
from tests.kafka.support import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.kafka]

SEED = 12


def test_offsets_that_are_committed_outside_of_the_transaction(cluster: Cluster):
    """The kill comes when the offsets are committed, and the transaction is not: what it holds is lost."""
    run = Run(on_a_shared_kafka(cluster), cluster.path, SEED, broken="offsets-outside")
    with pytest.raises(AssertionError, match=r"counts of|missing"):
        run(iter([[partial(run.faults.kill_at, "transaction-not-ended", 5)]]))


def test_open_transactions_of_the_dead_that_nobody_ends(server: KafkaServer, tmp_path: Path):
    """The tasks of a process that was killed with an open transaction, and never comes back, wait for the end of its
    transaction, whose time is ten minutes. (``server`` knows whether Kafka can be had. It is not used, because the
    transaction stays open.)"""
    with on_kafka(tmp_path) as place:
        run = Run(place, tmp_path, SEED, broken="nobody-fenced", progress_timeout_s=15)
        with pytest.raises(AssertionError, match="not within 15 s processed"):
            run(iter([[partial(run.faults.lose_machine_at, "transaction-not-ended", 5)]]))
        assert run.report.faults["killed at a point, and its state directory deleted"] == 1
