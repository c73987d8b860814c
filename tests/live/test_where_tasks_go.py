"""Standbys go to another zone by the members' tags, tasks go to the rack of their partitions, or where an assignor of
the program's own puts them, and the results are right."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from pystreams.app import App
from pystreams.ids import TaskId
from pystreams.runtime.streams import Streams
from pystreams.runtime.threads.thread_state import ThreadState
from pystreams.task_assignor import ApplicationState, TaskAssignment
from tests.kafka.server import KafkaServer
from tests.kafka.support import Cluster
from tests.live.counted_input import CountedInput
from tests.live.standby_worker import SETTINGS, counting
from tests.live.support import Log, eventually

pytestmark = [pytest.mark.slow, pytest.mark.both_logs]

PARTITIONS = 3


def tasks_of(subtopology: int) -> set[TaskId]:
    return {TaskId(subtopology, partition) for partition in range(PARTITIONS)}


def active(streams: Streams) -> set[TaskId]:
    """The tasks that run."""
    threads = streams.metadata_for_local_threads()
    return {t.task_id for thread in threads if thread.state is ThreadState.RUNNING for t in thread.tasks}


def followed(streams: Streams) -> set[TaskId]:
    """The standbys that lack nothing."""
    return {standby.task_id for standby in streams.progress().standbys if standby.lag == 0}


def test_each_standby_is_in_the_other_zone_which_goes_on_when_one_is_lost(log: Log) -> None:
    written = CountedInput(log, "standbys", PARTITIONS)
    written.write(3_000)

    def member(name: str, zone: str) -> Streams:
        tags = {"client_tags": {"zone": zone}, "rack_aware_assignment_tags": "zone"}
        return log.start(counting(log.path / name, num_standby_replicas=1, **tags))

    east, also_east, west = member("one", "east"), member("two", "east"), member("three", "west")
    eventually(
        lambda: (
            [len(active(streams)) for streams in (east, also_east, west)] == [1, 1, 1]
            and followed(west) == active(east) | active(also_east)
            and followed(east) | followed(also_east) == active(west)
        ),
        "the one in the west follows both in the east, and one of those follows it",
    )
    written.wait_until_counted()
    east.close()
    also_east.close()
    eventually(lambda: active(west) == tasks_of(0), "all tasks in the west")
    written.write(500)
    written.wait_until_counted()


@pytest.mark.kafka
def test_a_task_goes_to_the_member_that_joins_in_the_rack_of_its_partition(
    server: KafkaServer, tmp_path: Path
) -> None:
    """``server`` knows whether Kafka can be had."""
    with ExitStack() as stack:
        in_a_rack = KafkaServer(tmp_path, properties={"broker.rack": "near"})
        stack.callback(in_a_rack.stop)
        in_a_rack.start()
        cluster = stack.enter_context(closing(Cluster(in_a_rack.bootstrap_servers, tmp_path)))
        written = CountedInput(cluster, "standbys", 1)

        def member(rack: str) -> Streams:
            settings = {"client.rack": rack, "rack_aware_assignment_strategy": "min_traffic"}
            return cluster.start(counting(tmp_path / rack, **settings))

        far = member("far")
        written.write(500)
        eventually(lambda: active(far) == {TaskId(0, 0)}, "the only member has the task")
        written.wait_until_counted()
        near = member("near")
        eventually(lambda: active(near) == {TaskId(0, 0)}, "the task is in its rack")
        written.write(500)
        written.wait_until_counted()


class CountsApart:
    """The first process has the tasks without stores, the last one those with stores; others have nothing."""

    def assign(self, state: ApplicationState) -> TaskAssignment:
        processes = sorted(state.processes)
        given: dict[str, list[TaskId]] = {process: [] for process in processes}
        for task, info in state.tasks.items():
            given[processes[-1 if info.stores else 0]].append(task)
        return TaskAssignment(given)


def counting_apart(state_dir: Path) -> App:
    """Two sub-topologies: what comes in gets another key, and is counted behind a topic."""
    app = App("apart", state_dir=state_dir, task_assignor_class=CountsApart, **SETTINGS)
    counts = (
        app.stream("in", key=str, value=int).group_by(lambda key, value: key, key=str).count(name="counts")
    )
    counts.to_stream().to("out")
    return app


def test_a_programs_own_assignor_puts_all_tasks_of_a_subtopology_into_one_member(log: Log) -> None:
    written = CountedInput(log, "apart", PARTITIONS)
    members = [log.start(counting_apart(log.path / name)) for name in ("one", "two", "three")]

    def apart(*nothing: set[TaskId]) -> bool:
        return sorted(map(active, members), key=sorted) == [*nothing, tasks_of(0), tasks_of(1)]

    def counted() -> bool:
        return log.table("out") == dict(written.counts)

    eventually(lambda: apart(set()), f"each sub-topology in one member: {[*map(active, members)]}")
    written.write(3_000)
    eventually(counted, "all counted")

    counts = eventually(
        lambda: next((streams for streams in members if active(streams) == tasks_of(1)), None), "who counts"
    )
    counts.close()
    members.remove(counts)
    eventually(apart, "the counts go to the other one of those who are left")
    written.write(500)
    eventually(counted, "all counted")
