"""T5, T11: who gets which tasks, on a broker that waits for all members of a new group, as brokers do by default."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.coordinator.assignors.sticky.user_data import StickyAssignorUserData
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from pystreams.app import App
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.group.assignor import assign_tasks
from pystreams.runtime.group.situation import AssignorMember, TaskFacts
from pystreams.runtime.streams import Streams
from tests.kafka.membership import examples
from tests.kafka.server import ROOT, KafkaServer
from tests.kafka.support import HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS, Cluster
from tests.live.support import eventually, running

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def patient_server(server: KafkaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """One with Kafka's default delay of a group's first rebalance. (``server`` knows whether Kafka can be had.)"""
    patient = KafkaServer(
        tmp_path_factory.mktemp("patient"), properties={"group.initial.rebalance.delay.ms": "3000"}
    )
    patient.start()
    yield patient
    patient.stop()


@pytest.fixture
def patient(patient_server: KafkaServer, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(patient_server.bootstrap_servers, tmp_path)
    yield cluster
    cluster.close()


def configured(cluster: Cluster, app: App, process: str, **settings: object) -> App:
    app.config = app.config.override(
        {"state_dir": cluster.path / process, "poll_ms": 10, "commit_interval_ms": 100, **settings}
    )
    return app


def by_thread(streams: Streams) -> list[dict[str, list[str]]]:
    """For each thread, the inputs of its tasks."""
    return [
        {str(task.task_id): sorted(map(str, task.inputs)) for task in thread.tasks}
        for thread in streams.metadata_for_local_threads()
    ]


def held_in_the_group(cluster: Cluster, group: str) -> dict[str, frozenset[TopicPartition]]:
    """What the broker says that each member has, by client id."""
    described = cluster.broker._client.describe_consumer_groups([group])[group].result()
    return {
        member.client_id: frozenset(
            TopicPartition(p.topic, p.partition) for p in member.assignment.topic_partitions
        )
        for member in described.members
    }


def pairs(*partitions: int) -> dict[str, list[str]]:
    return {f"0_{partition}": [f"A-{partition}", f"B-{partition}"] for partition in partitions}


def start_process(cluster: Cluster, app: str) -> subprocess.Popen[bytes]:
    """``pystreams run`` with one thread."""
    settings = {
        "session_timeout_ms": SESSION_TIMEOUT_MS,
        "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS,
        "state_dir": cluster.path / "second",
    }
    options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    with (cluster.path / "second.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "pystreams", "run", f"tests.kafka.membership.examples:{app}", *options]
            + ["--bootstrap-servers", cluster.bootstrap_servers],
            cwd=ROOT,
            stdout=log,
            stderr=log,
        )


@pytest.mark.parametrize("app", ["JOINED", "MERGED"], ids=["stateful", "stateless"])
def test_two_threads_share_three_tasks_and_exactly_one_goes_to_a_process_that_joins(
    patient: Cluster, app: str
) -> None:
    patient.create("A", "B", "out", partitions=3)
    first = patient.start(configured(patient, getattr(examples, app), "first", num_stream_threads=2))
    running(first)
    eventually(
        lambda: by_thread(first) == [pairs(0, 2), pairs(1)], "0_0 and 0_2 in one thread, 0_1 in the other"
    )
    group = app.lower()
    before = held_in_the_group(patient, group)

    second = start_process(patient, app)
    try:
        eventually(
            lambda: sorted(map(len, held_in_the_group(patient, group).values())) == [2, 2, 2], "one task each"
        )
        after = held_in_the_group(patient, group)
        assert sum(map(len, by_thread(first))) == 2
        lost = {thread: before[thread] - after[thread] for thread in before}
        assert sorted(map(len, lost.values())) == [0, 2], "the inputs of one task have moved"
        assert all(after[thread] <= before[thread] for thread in before)
    finally:
        second.terminate()
        assert second.wait(30) == 0
    eventually(lambda: sorted(map(len, by_thread(first))) == [1, 2], "two and one again")
    again = held_in_the_group(patient, group)
    assert all(after[thread] <= again[thread] for thread in before)
    assert first.metrics.total("task-closed-total") == 1


def four_copies(cluster: Cluster, process: str) -> App:
    """Topics t0 to t3, each copied by a sub-topology of its own."""
    app = cluster.app("copies", state_dir=cluster.path / process)
    for number in range(4):
        app.stream(f"t{number}", key=bytes, value=bytes).to("out")
    return app


def test_only_the_tasks_of_the_member_that_leaves_move(cluster: Cluster) -> None:
    cluster.create(*(f"t{number}" for number in range(4)), partitions=2)
    cluster.create("out", partitions=2)
    clients = [cluster.start(four_copies(cluster, f"C{number}")) for number in range(3)]

    def held() -> list[set[TaskId]]:
        return [
            {task.task_id for thread in client.metadata_for_local_threads() for task in thread.tasks}
            for client in clients
        ]

    eventually(lambda: sorted(map(len, held())) == [2, 3, 3], "eight tasks on three members")
    before = held()
    closed = [client.metrics.total("task-closed-total") for client in clients]
    clients[1].close()
    eventually(lambda: sorted(map(len, held())) == [0, 4, 4], "four each")
    after = held()
    assert before[0] < after[0]
    assert before[2] < after[2]
    assert [clients[number].metrics.total("task-closed-total") - closed[number] for number in (0, 2)] == [
        0,
        0,
    ]
    # In every topic one partition each, as Sticky's example has it.
    assert all(len({task.subtopology for task in after[number]}) == 4 for number in (0, 2))


# Beside Kafka's own assignors

Assigned = dict[str, set[tuple[str, int]]]


class Topics(NamedTuple):
    """What an assignor of kafka-python asks of a cluster."""

    partitions: dict[str, set[int]]

    def topics(self) -> set[str]:
        return set(self.partitions)

    def partitions_for_topic(self, topic: str) -> set[int]:
        return self.partitions[topic]

    def all_tasks(self) -> list[TaskId]:
        """Each topic read by a sub-topology of its own."""
        return [
            TaskId(number, p) for number, topic in enumerate(self.partitions) for p in self.partitions[topic]
        ]


def by_kafka(assignor: AbstractPartitionAssignor, topics: Topics, owned: Assigned) -> Assigned:
    """What an assignor of Kafka's gives to members that have something already, or nothing yet."""
    members = []
    for name, partitions in owned.items():
        of_topic = {t: [p for topic, p in sorted(partitions) if topic == t] for t, _ in partitions}
        told = StickyAssignorUserData(list(of_topic.items()), 1) if partitions else b""
        metadata = ConsumerProtocolSubscription(0, list(topics.partitions), told)
        members.append(SimpleNamespace(member_id=name, group_instance_id=None, metadata=metadata))
    found = assignor.assign(topics, members)
    return {name: {(p.topic, p.partition) for p in given.partitions()} for name, given in found.items()}


def by_us(topics: Topics, owned: Assigned) -> Assigned:
    names = list(topics.partitions)
    members = [
        AssignorMember(name, name, name, frozenset(TaskId(names.index(topic), p) for topic, p in partitions))
        for name, partitions in owned.items()
    ]
    found = assign_tasks(TaskFacts(frozenset(topics.all_tasks())), members).active
    return {name: {(names[t.subtopology], t.partition) for t in tasks} for name, tasks in found.items()}


def test_three_partitions_go_to_two_members_as_evenly_as_with_range() -> None:
    topics = Topics({"t": {0, 1, 2}})
    fresh: Assigned = {"C0": set(), "C1": set()}
    assert by_kafka(RangePartitionAssignor(), topics, fresh) == {"C0": {("t", 0), ("t", 1)}, "C1": {("t", 2)}}
    assert by_us(topics, fresh) == {"C0": {("t", 0), ("t", 2)}, "C1": {("t", 1)}}


def test_only_what_the_one_that_left_had_is_moved_as_with_sticky() -> None:
    topics = Topics({f"t{number}": {0, 1} for number in range(4)})
    stay: Assigned = {"C0": {("t0", 0), ("t1", 1), ("t3", 0)}, "C2": {("t1", 0), ("t2", 1)}}
    expected: Assigned = {
        "C0": {("t0", 0), ("t1", 1), ("t2", 0), ("t3", 0)},
        "C2": {("t0", 1), ("t1", 0), ("t2", 1), ("t3", 1)},
    }
    assert by_kafka(StickyPartitionAssignor(), topics, stay) == expected
    assert by_us(topics, stay) == expected
