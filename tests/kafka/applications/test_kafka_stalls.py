"""An application goes on although a client of Kafka has silently stopped to read a partition."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition as Location

from pystreams.broker.kafka.consumer import KafkaConsumer
from pystreams.ids import TopicPartition
from pystreams.runtime.tasks.task_manager import TaskManager
from tests.kafka.support import Cluster
from tests.live.support import caught_up, consumer_of, eventually, running

SILENT = TopicPartition("in", 1)


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_partition_that_is_silently_no_longer_read_goes_on(
    cluster: Cluster, guarantee: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.broker = cluster.broker_with(exactly_once=guarantee == "exactly_once_v2")
    cluster.create("in", "out", partitions=2)
    app = cluster.app("counting", stall_timeout_ms=1_000, processing_guarantee=guarantee)
    app.stream("in", key=str, value=int).group_by_key().count(name="counts").to_stream().to("out")
    streams = cluster.start(app)
    running(streams)
    (thread,) = streams._threads
    consumer = consumer_of(streams)
    assert isinstance(consumer, KafkaConsumer)
    client = consumer._consumer

    def stop_to_read(_: TaskManager) -> None:
        # Behind the back of the engine, which has paused nothing.
        client.pause([Location(SILENT.topic, SILENT.partition)])

    thread.call(stop_to_read).result(30)
    for partition in (0, 1):
        records = [(f"{partition}-{number % 7}", number, number) for number in range(100)]
        cluster.write("in", records, partition=partition)
    caught_up(streams)
    streams.close()
    eventually(lambda: sum(cluster.table("out").values()) == 200, "each record is counted once")
    assert "nothing has been read from in-1 for" in caplog.text
    assert "100 more records, from offset 0 on" in caplog.text
    assert consumer._consumer is not client, "another client has taken its place"
