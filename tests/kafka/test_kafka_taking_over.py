"""A new version on Kafka takes over what the old one has stored."""

from __future__ import annotations

from collections import Counter

import pytest

from pystreams.cli.reset import carry_out, plan_reset
from pystreams.errors import BrokerError, TopologyError
from tests.kafka.support import Cluster
from tests.live.support import caught_up, run_to_the_end
from tests.live.taking_over_kit import One, Two, kept, lines, summing, write


@pytest.fixture(autouse=True)
def topics(cluster: Cluster) -> None:
    cluster.create("in", "out", partitions=2)
    write(cluster, 100)


def test_another_machine_knows_what_ran_last(cluster: Cluster) -> None:
    run_to_the_end(cluster, summing(cluster, Two))
    elsewhere = {"state_dir": cluster.path / "elsewhere"}
    with pytest.raises(TopologyError, match="stored content would be lost: sums"):
        cluster.start(summing(cluster, One, settings=elsewhere))
    with pytest.raises(TopologyError, match="stored content would be lost: sums"):
        cluster.start(summing(cluster, Two, "totals", elsewhere))
    before = kept(cluster)
    write(cluster, 5)
    run_to_the_end(cluster, summing(cluster, One, settings={**elsewhere, "accept_loss": "sums"}))
    assert cluster.table("out") == dict.fromkeys("abcdef", 105)
    assert kept(cluster) != before


def test_content_is_carried_over_to_another_name(cluster: Cluster) -> None:
    run_to_the_end(cluster, summing(cluster, One))
    before = lines(cluster, "shop-sums-changelog")
    write(cluster, 5)
    for _ in range(2):
        run_to_the_end(cluster, summing(cluster, One, "totals", was="sums"))
        assert cluster.table("out") == dict.fromkeys("abcdef", 105)
    after = lines(cluster, "shop-totals-changelog")
    assert all(copied >= was for copied, was in zip(after, before, strict=True))
    assert sum(map(Counter.total, after)) == 12
    assert "shop-sums-changelog" not in cluster.admin.partition_counts()


def test_a_store_whose_loss_is_accepted_begins_anew(cluster: Cluster) -> None:
    run_to_the_end(cluster, summing(cluster, One))
    write(cluster, 5)
    run_to_the_end(cluster, summing(cluster, One, "totals", {"accept_loss": "sums"}))
    assert cluster.table("out") == dict.fromkeys("abcdef", 5)
    assert "shop-sums-changelog" not in cluster.admin.partition_counts()


def test_nothing_is_deleted_while_the_old_version_runs(cluster: Cluster) -> None:
    old = cluster.start(summing(cluster, One))
    caught_up(old)
    with pytest.raises(BrokerError, match="living members"):
        cluster.start(summing(cluster, One, "totals", {"state_dir": cluster.path / "elsewhere"}, was="sums"))
    write(cluster, 5)
    caught_up(old)
    assert cluster.table("out") == dict.fromkeys("abcdef", 105)


def test_what_another_machine_has_of_before_a_reset_is_restored(cluster: Cluster) -> None:
    run_to_the_end(cluster, summing(cluster, One))
    elsewhere = cluster.path / "elsewhere"
    # Nothing that was written is processed again.
    carry_out(cluster.admin, plan_reset(cluster.admin, cluster.broker, "shop", ["in"], elsewhere, "latest"))
    for settings in ({"state_dir": elsewhere}, None):
        write(cluster, 5)
        run_to_the_end(cluster, summing(cluster, One, settings=settings))
    assert cluster.table("out") == dict.fromkeys("abcdef", 10)
