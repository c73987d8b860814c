"""A commit whose outcome is not known yet: who takes a task over waits for it, who only needs to know how far the group
has come at least does not."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pystreams.broker.port import CommittedOffset
from pystreams.ids import TaskId
from pystreams.ids import TopicPartition as Partition
from pystreams.runtime.group.log_facts import LogFacts
from tests.kafka.support import Cluster
from tests.live.support import eventually

GROUP = "counting"
IN = Partition("in", 0)
TASK = TaskId(0, 0)


@pytest.fixture
def under_way(cluster: Cluster) -> Producer:
    """Offset 3 is committed, and offset 5 in a transaction that is open."""
    cluster.create("in")
    cluster.admin.set_group_offsets(GROUP, {IN: CommittedOffset(3)})
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    producer = Producer({**servers, "transactional.id": "t", "transaction.timeout.ms": 600_000})
    producer.init_transactions(30)
    producer.begin_transaction()
    with closing(Consumer({**servers, "group.id": GROUP})) as member:
        offsets = [TopicPartition(*IN, 5)]
        producer.send_offsets_to_transaction(offsets, member.consumer_group_metadata(), 30)
    return producer


def test_a_lower_bound_is_reported_at_once_and_what_counts_after_the_commit(
    cluster: Cluster, under_way: Producer
) -> None:
    with ThreadPoolExecutor(1) as threads:
        waiting: Future[dict[Partition, CommittedOffset]] = threads.submit(cluster.admin.group_offsets, GROUP)
        for _ in range(3):
            assert cluster.admin.group_offsets(GROUP, stable=False)[IN].offset == 3
        assert not waiting.done()
        under_way.commit_transaction(30)
        assert waiting.result(30)[IN].offset == 5
    eventually(lambda: cluster.admin.group_offsets(GROUP, stable=False)[IN].offset == 5, "the commit shows")


def test_who_takes_a_task_over_waits_for_the_commit(cluster: Cluster, under_way: Producer) -> None:
    with (
        closing(cluster.broker.member("c", GROUP, ["in"], bytes, lambda _: {})) as member,
        ThreadPoolExecutor(1) as threads,
    ):
        waiting = threads.submit(member.committed, [IN])
        assert cluster.admin.group_offsets(GROUP, stable=False)[IN].offset == 3
        assert not waiting.done()
        under_way.commit_transaction(30)
        committed = waiting.result(30)[IN]
        assert committed is not None
        assert committed.offset == 5


def test_the_leader_of_the_group_does_not_wait(cluster: Cluster, under_way: Producer) -> None:
    facts = LogFacts(cluster.admin, GROUP, changelogs={}, sources={TASK: [IN]})
    assert facts.end_sums([TASK]) == {TASK: 3}
    under_way.abort_transaction(30)
    assert facts.end_sums([TASK]) == {TASK: 3}
