"""The leader of a group is told in which racks the replicas of partitions are."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from pystreams.ids import TopicPartition
from tests.kafka.server import KafkaServer
from tests.kafka.support import Cluster

pytestmark = pytest.mark.slow

PARTITIONS = [TopicPartition("in", 0), TopicPartition("in", 1)]


def test_brokers_without_racks_name_none(cluster: Cluster) -> None:
    cluster.create("in", partitions=2)
    assert cluster.admin.partition_racks(PARTITIONS) == {}


def test_each_partition_has_the_racks_of_its_replicas(server: KafkaServer, tmp_path: Path) -> None:
    """``server`` knows whether Kafka can be had."""
    in_a_rack = KafkaServer(tmp_path, properties={"broker.rack": "eu-1a"})
    in_a_rack.start()
    try:
        with closing(Cluster(in_a_rack.bootstrap_servers, tmp_path)) as cluster:
            cluster.create("in", partitions=2)
            assert cluster.admin.partition_racks(PARTITIONS) == dict.fromkeys(
                PARTITIONS, frozenset({"eu-1a"})
            )
    finally:
        in_a_rack.stop()
