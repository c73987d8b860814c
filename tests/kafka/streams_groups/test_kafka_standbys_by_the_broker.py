"""The broker gives standbys if the group's setting asks for them, and they are kept filled."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from pystreams.app import App
from pystreams.dsl.builder import build_topology
from pystreams.ids import TaskId
from pystreams.runtime.group.application_status import application_status
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


def both_orders(one: set[TaskId], two: set[TaskId]) -> list[list[list[TaskId]]]:
    return [[sorted(one), sorted(two)], [sorted(two), sorted(one)]]


def shown(cluster: Cluster, app: App) -> list[list[TaskId]]:
    """The tasks of both members, as the status has them; the standbys of each are the tasks of the other."""
    config = app.config
    status = application_status(
        cluster.admin, build_topology(app, config), config.auto_offset_reset, reads_committed=False
    )
    tasks = [sorted(member.tasks) for member in status.members]
    assert status.rebalancing or [sorted(member.standbys) for member in status.members] == tasks[::-1]
    return tasks


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
    eventually(lambda: shown(cluster, app) in both_orders(active(one), active(two)))
    one.close()
    eventually(lambda: active(two) == TASKS)
    cluster.write("in", [(f"k{i % 30}", i, i) for i in range(900, 1200)])
    eventually(two.caught_up)
    two.close()
    last = {record.key: record.value for record in cluster.read("out")}
    assert last == {f"k{key}": 40 for key in range(30)}
