"""What becomes of a client's members when it is closed: they leave the group, or stay for their session."""

from __future__ import annotations

import pytest

from pystreams import App
from tests.live.support import Log, caught_up, eventually


def copying(log: Log, **settings) -> App:
    app = log.app("copying", **settings)
    app.stream("in", key=str, value=int).to("out")
    return app


@pytest.mark.both_logs
def test_a_client_that_is_closed_leaves_unless_it_is_to_stay(log: Log) -> None:
    log.create("in", "out")
    leaving = log.start(copying(log))
    caught_up(leaving)
    assert leaving.close(30_000)
    assert log.admin.group_members("copying") == []
    staying = log.start(copying(log))
    caught_up(staying)
    (member,) = log.admin.group_members("copying")
    assert staying.close(30_000, leave_group=False)
    assert log.admin.group_members("copying") == [member]


@pytest.mark.kafka
def test_static_members_stay_unless_they_are_to_leave(cluster) -> None:
    cluster.create("in", "out")
    staying = cluster.start(copying(cluster, group_instance_id="host"))
    caught_up(staying)
    assert staying.close(30_000)
    assert len(cluster.admin.group_members("copying")) == 1
    leaving = cluster.start(copying(cluster, group_instance_id="host"))
    caught_up(leaving)
    assert leaving.close(30_000, leave_group=True)
    eventually(lambda: cluster.admin.group_members("copying") == [], "it has left")
