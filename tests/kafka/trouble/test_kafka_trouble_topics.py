"""Topics vanish or grow under an application: a clear error that names them."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions

from pystreams.errors import TopicError
from tests.kafka.support import Cluster
from tests.kafka.trouble_support import failure_of
from tests.live.support import caught_up

pytestmark = pytest.mark.slow


def in_two_stages(cluster: Cluster, name: str):
    """An application whose topics of all kinds have its name in theirs."""
    inputs, outputs = f"{name}-in", f"{name}-out"
    cluster.create(inputs, outputs, partitions=2)
    app = cluster.app(name)
    words = app.stream(inputs, key=str, value=int).group_by(lambda key, _value: key, key=str)
    words.count(name="counts").to_stream().to(outputs)
    return app


def write(cluster: Cluster, name: str) -> None:
    cluster.write(f"{name}-in", [(f"k{i}", i, i + 1) for i in range(100)])


def test_a_topic_that_is_deleted_under_an_application_is_named(cluster: Cluster):
    # All at once, each from another application: the clients give a topic some time to come back.
    deleted = {
        "one": "one-in",
        "two": "two-out",
        "three": "three-counts-repartition",
        "four": "four-counts-changelog",
    }
    running = {}
    for name in deleted:
        app = in_two_stages(cluster, name)
        write(cluster, name)
        running[name] = cluster.start(app)
    for streams in running.values():
        caught_up(streams)
    cluster.admin.delete_topics(deleted.values())
    for name, topic in deleted.items():
        if topic != f"{name}-in":
            write(cluster, name)
    for name, topic in deleted.items():
        failure = failure_of(running[name], timeout_s=90)
        assert isinstance(failure, TopicError), (topic, failure)
        assert topic in str(failure), failure


def in_one_stage(cluster: Cluster, name: str):
    """An application without state."""
    cluster.create(f"{name}-in", f"{name}-out", partitions=2)
    app = cluster.app(name)
    app.stream(f"{name}-in", key=str, value=int).to(f"{name}-out")
    return app


@pytest.mark.parametrize("of", [in_one_stage, in_two_stages])
def test_partitions_that_are_added_under_an_application_are_reported(cluster: Cluster, of: Any):
    app = of(cluster, "grows")
    write(cluster, "grows")
    # By default clients look for changes every five minutes.
    cluster.broker = cluster.broker_with(client_settings={"metadata.max.age.ms": "500"})
    streams = cluster.start(app)
    caught_up(streams)
    cluster.broker._client.create_partitions([NewPartitions("grows-in", 3)])["grows-in"].result()
    failure = failure_of(streams)
    assert isinstance(failure, TopicError)
    assert "grows-in" in str(failure)
    assert "3 partitions" in str(failure)
