"""The log shows who runs an application: threads, their tasks and standbys, and what waits for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pystreams.app import App
from pystreams.dsl.builder import build_topology
from pystreams.ids import TaskId
from pystreams.runtime.group.application_status import ApplicationStatus, MemberStatus, application_status
from pystreams.runtime.streams import Streams
from tests.live.standby_worker import counting
from tests.live.support import Log, eventually, running

pytestmark = [pytest.mark.both_logs]

PARTITIONS = 3
TASKS = {TaskId(0, partition) for partition in range(PARTITIONS)}


def status_of(log: Log, app: App) -> ApplicationStatus:
    config = app.config
    return application_status(
        log.admin, build_topology(app, config), config.auto_offset_reset, reads_committed=False
    )


def shown(client: Streams, status: ApplicationStatus) -> MemberStatus | None:
    """The member that is the client's only thread."""
    (thread,) = client.metadata_for_local_threads()
    return next((member for member in status.members if member.thread == thread.name), None)


def test_before_the_first_start_everything_waits_and_nobody_has_a_task(log: Log, tmp_path: Path) -> None:
    log.create("in", "out", partitions=PARTITIONS)
    log.write("in", [(f"k{n}", n, n) for n in range(30)])
    status = status_of(log, counting(tmp_path / "one"))
    assert (status.members, status.lag, set(status.unassigned)) == ((), 30, TASKS)
    assert {one.committed for one in status.inputs} == {None}


def test_who_begins_at_the_end_has_nothing_to_read(log: Log, tmp_path: Path) -> None:
    log.create("in", "out", partitions=PARTITIONS)
    log.write("in", [(f"k{n}", n, n) for n in range(30)])
    assert status_of(log, counting(tmp_path / "one", auto_offset_reset="latest")).lag == 0


def test_two_processes_are_shown_with_their_tasks_and_standbys(log: Log, tmp_path: Path) -> None:
    log.create("in", "out", partitions=PARTITIONS)
    app = counting(tmp_path / "one", num_standby_replicas=1)
    one, two = (log.start(counting(tmp_path / name, num_standby_replicas=1)) for name in ("one", "two"))

    def all_shown() -> bool:
        status = status_of(log, app)
        mine, others = shown(one, status), shown(two, status)
        if mine is None or others is None or status.rebalancing:
            return False
        return (
            set(mine.tasks) | set(others.tasks) == TASKS
            and mine.standbys == others.tasks != ()
            and others.standbys == mine.tasks != ()
        )

    eventually(all_shown, "both have tasks, and the standbys of the other's")
    status = status_of(log, app)
    assert len({member.process_id for member in status.members}) == 2
    assert [member.same_program for member in status.members] == [True, True]
    assert status.unassigned == ()


def test_what_is_processed_does_not_wait_and_what_is_new_does(log: Log, tmp_path: Path) -> None:
    log.create("in", "out", partitions=PARTITIONS)
    log.write("in", [(f"k{n}", n, n) for n in range(30)])
    app = counting(tmp_path / "one")
    client = log.start(app)
    running(client)
    eventually(lambda: status_of(log, app).lag == 0, "all is committed")
    assert sum(one.committed or 0 for one in status_of(log, app).inputs) == 30
    client.close()
    log.write("in", [("k", n, n) for n in range(7)])
    status = status_of(log, app)
    assert (status.members, status.lag) == ((), 7)


def test_a_member_with_another_program_is_noticed(log: Log, tmp_path: Path) -> None:
    log.create("in", "out", partitions=PARTITIONS)
    client = log.start(counting(tmp_path / "one"))
    running(client)
    other = App("standbys", state_dir=tmp_path / "other")
    other.stream("in", key=str, value=int).to("out")
    eventually(lambda: [member.same_program for member in status_of(log, other).members] == [False])
