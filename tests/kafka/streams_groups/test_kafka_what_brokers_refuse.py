"""What brokers do not do for groups of stream applications is an error that says what to do."""

from __future__ import annotations

import re
import time

import pytest
from confluent_kafka.admin import NewPartitions

from pystreams.app import App
from pystreams.errors import BrokerError, StreamsError, TopicError, TopologyError
from pystreams.runtime.streams import Streams
from tests.broker.following import SESSION_TIMEOUT_MS
from tests.kafka.support import Cluster
from tests.live.support import caught_up, eventually

pytestmark = pytest.mark.kafka

STREAMS = {"group_protocol": "streams"}


def counting(cluster: Cluster, topic: str, **settings: object) -> App:
    app = cluster.app("shop", **settings)
    app.stream(topic, key=str, value=str).group_by_key().count(name="counts").to_stream().to(
        "out", key=str, value=int
    )
    return app


def ended(client: Streams) -> StreamsError:
    eventually(lambda: client.failure is not None)
    assert isinstance(client.failure, StreamsError)
    client.close()
    return client.failure


def test_a_changed_topology_is_refused_until_the_group_was_classic_once(cluster: Cluster):
    cluster.create("orders", "returns", "out", partitions=2)
    cluster.write("orders", [("a", "1", 1)], value=str)
    cluster.write("returns", [("b", "1", 1)], value=str)
    client = cluster.start(counting(cluster, "orders", **STREAMS))
    caught_up(client)
    client.close()

    def changed(**settings: object) -> App:
        return counting(cluster, "returns", **settings)

    error = ended(cluster.start(changed(**STREAMS)))
    assert isinstance(error, TopologyError)
    assert 'group_protocol="classic"' in error.hint
    for protocol in ("classic", "streams"):
        client = cluster.start(changed(group_protocol=protocol))
        caught_up(client)
        client.close()
    assert [(r.key, r.value) for r in cluster.read("out", key=str, value=int)] == [("a", 1), ("b", 1)]


@pytest.mark.parametrize("stateful", [True, False])
def test_partitions_that_are_added_under_an_application_are_reported(cluster: Cluster, stateful: bool):
    cluster.create("orders", "out", partitions=2)
    # A name of its own, because the group keeps its topology.
    app = cluster.app(f"grows-{stateful}", **STREAMS)
    orders = app.stream("orders", key=str, value=str)
    if stateful:
        orders.group_by_key().count(name="counts")
    else:
        orders.to("out")
    client = cluster.start(app)
    caught_up(client)
    cluster.broker._client.create_partitions([NewPartitions("orders", 3)])["orders"].result()
    error = ended(client)
    # With state, brokers up to 4.3 answer with an unknown error.
    assert isinstance(error, BrokerError if stateful else TopicError)
    assert "more partitions" in f"{error} {error.hint}"
    assert "stop all members, then start again" in error.hint


def test_sources_by_pattern_are_refused(cluster: Cluster):
    cluster.create("orders", "out")
    app = cluster.app("shop", **STREAMS)
    app.stream(re.compile("orders"), key=str, value=str).to("out")
    error = ended(cluster.start(app))
    assert "pattern" in str(error)
    assert "name the topics" in error.hint


def test_members_of_another_kind_are_named_if_they_stay(cluster: Cluster):
    cluster.create("orders", "out")
    caught_up(cluster.start(counting(cluster, "orders")))
    began_s = time.monotonic()
    error = ended(cluster.start(counting(cluster, "orders", **STREAMS)))
    assert isinstance(error, BrokerError)
    assert "Group shop is not a streams group." in str(error)
    assert "stop them first" in error.hint
    # Killed ones would have been members for so long.
    assert time.monotonic() - began_s > SESSION_TIMEOUT_MS / 1000


def test_if_they_leave_the_group_goes_over_to_the_broker(cluster: Cluster, caplog: pytest.LogCaptureFixture):
    cluster.create("orders", "out")
    cluster.write("orders", [("a", "1", 1)], value=str)
    classic = cluster.start(counting(cluster, "orders"))
    caught_up(classic)
    client = cluster.start(counting(cluster, "orders", **STREAMS))
    eventually(lambda: "stop them first" in caplog.text)
    classic.close()
    cluster.write("orders", [("a", "1", 1)], value=str)
    caught_up(client)
    assert [record.value for record in cluster.read("out", key=str, value=int)] == [1, 2]
