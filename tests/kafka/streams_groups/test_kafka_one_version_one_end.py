"""All members of a group run the same topology, and one can stop them all, also if the broker assigns the tasks."""

from __future__ import annotations

import pytest

from pystreams.app import App
from pystreams.errors import TopologyError
from pystreams.runtime.client_state import ClientState
from pystreams.runtime.uncaught import UncaughtExceptionResponse
from tests.kafka.support import Cluster
from tests.live.support import caught_up, eventually

pytestmark = pytest.mark.kafka


def halving(cluster: Cluster, by: int = 2) -> App:
    app = cluster.app("halving", group_protocol="streams")
    halves = app.stream("in", key=str, value=int).map_values(lambda value: by // value, value=int)
    if by != 2:
        halves = halves.filter(lambda key, value: value > 0)
    halves.to("out")
    halves.group_by_key().count(name="counts")
    return app


def test_the_whole_application_stops_when_a_member_asks_for_it(cluster: Cluster):
    cluster.create("in", "out", partitions=2)
    failures: list[BaseException] = []

    def stop_all(error: BaseException) -> UncaughtExceptionResponse:
        failures.append(error)
        return UncaughtExceptionResponse.SHUTDOWN_APPLICATION

    clients = [
        cluster.start(
            halving(cluster), prepare=lambda streams: streams.set_uncaught_exception_handler(stop_all)
        )
        for _ in range(2)
    ]
    eventually(lambda: all(client.task_count for client in clients))
    cluster.write("in", [("k", 0, 1)])
    eventually(lambda: all(client.finished for client in clients))
    assert {client.state for client in clients} == {ClientState.ERROR}
    assert any("asked the whole application to stop" in str(client.failure) for client in clients)
    assert len(failures) == 1


def test_a_member_with_another_topology_is_refused_and_the_running_one_goes_on(cluster: Cluster):
    cluster.create("in", "out", partitions=2)
    running = cluster.start(halving(cluster))
    cluster.write("in", [("k", 1, 1)])
    eventually(lambda: cluster.read("out", key=str, value=int))
    caught_up(running)
    newcomer = cluster.start(halving(cluster, by=4))
    eventually(lambda: newcomer.finished)
    assert isinstance(newcomer.failure, TopologyError)
    assert "differs from the one that the group runs" in str(newcomer.failure)
    assert "the first difference to the topology that ran last: sub-topology 0" in str(newcomer.failure)
    assert "fingerprint" not in str(newcomer.failure)
    cluster.write("in", [("k", 2, 2)])
    eventually(running.caught_up)
    assert [record.value for record in cluster.read("out", key=str, value=int)] == [2, 1]
