"""On Kafka, too, an application is refused only where its results would be deleted."""

from __future__ import annotations

import time

import pytest

from pystreams.app import App
from pystreams.errors import RetentionError
from tests.kafka.support import Cluster
from tests.live.support import run_to_the_end

WEEK = {"retention.ms": str(7 * 86_400_000)}
LONG_AGO_MS = 1_357_000_000_000


@pytest.fixture
def cluster_with_old_customers(cluster: Cluster) -> Cluster:
    """Orders of today, customers of 2013 in a compacted topic, and results that are kept for a week."""
    cluster.create("orders")
    cluster.create("customers", config={"cleanup.policy": "compact"})
    cluster.create("out", config=WEEK)
    cluster.write("customers", [("k", 1, LONG_AGO_MS)])
    cluster.write("orders", [("k", 2, int(time.time() * 1000))])
    return cluster


def joined(cluster: Cluster) -> App:
    app = cluster.app("joined")
    customers = app.table("customers", key=str, value=int)
    orders = app.stream("orders", key=str, value=int)
    orders.join(customers, lambda order, customer: order + customer, value=int).to("out")
    return app


def test_an_old_table_does_not_keep_a_stream_from_being_joined(cluster_with_old_customers: Cluster):
    run_to_the_end(cluster_with_old_customers, joined(cluster_with_old_customers))
    assert cluster_with_old_customers.table("out") == {"k": 3}


def test_a_table_that_is_written_itself_is_refused(cluster_with_old_customers: Cluster):
    app = cluster_with_old_customers.app("copied")
    app.table("customers", key=str, value=int).to_stream().to("out")
    with pytest.raises(RetentionError, match=r"the oldest record of customers-0 is from 2013-01-01"):
        run_to_the_end(cluster_with_old_customers, app)
