"""The broker gives standbys if the group's setting asks for them, and they are kept filled."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from pystreams.ids import TaskId
from pystreams.runtime.streams import Streams
from tests.kafka.support import Cluster
from tests.live.standby_worker import counting
from tests.live.support import eventually

pytestmark = pytest.mark.kafka

STREAMS = {"group_protocol": "streams", "session_timeout_ms": 45_000, "heartbeat_interval_ms": 3_000}
TASKS = {TaskId(0, partition) for partition in range(3)}


def active(client: Streams) -> set[TaskId]:
    return {task.task_id for thread in client.metadata_for_local_threads() for task in thread.tasks}


def filled(client: Streams) -> set[TaskId]:
    """The standbys that lack nothing."""
    return {standby.task_id for standby in client.progress().standbys if standby.lag == 0}


def test_each_task_has_a_standby_in_the_other_process_and_goes_on_there(cluster: Cluster):
    cluster.create("in", "out", partitions=3)
    cluster.write("in", [(f"k{i % 30}", i, i) for i in range(900)])
    app = counting(cluster.path / "one", **STREAMS)
    entry = ConfigEntry("streams.num.standby.replicas", "1", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, app.name, incremental_configs=[entry])
    cluster.broker._client.incremental_alter_configs([resource])[resource].result()
    one = cluster.start(app)
    two = cluster.start(counting(cluster.path / "two", **STREAMS))
    eventually(lambda: active(one) | active(two) == TASKS and filled(one) == active(two) != set())
    eventually(lambda: filled(two) == active(one))
    one.close()
    eventually(lambda: active(two) == TASKS)
    cluster.write("in", [(f"k{i % 30}", i, i) for i in range(900, 1200)])
    eventually(two.caught_up)
    two.close()
    last = {record.key: record.value for record in cluster.read("out")}
    assert last == {f"k{key}": 40 for key in range(30)}
