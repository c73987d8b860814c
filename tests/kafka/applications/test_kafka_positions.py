"""Where reading begins on Kafka: by duration, and never silently behind a gap."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from confluent_kafka import Producer

from pystreams.app import App
from pystreams.broker.port import CommittedOffset
from pystreams.errors import OffsetOutOfRangeError, StreamsError
from pystreams.ids import TopicPartition
from pystreams.runtime.streams import Streams
from tests.kafka.support import Cluster
from tests.live.support import caught_up, eventually, run_to_the_end

IN = TopicPartition("in", 0)


def counting(cluster: Cluster, look: Any = lambda value: None, **settings: Any) -> App:
    app = cluster.app("counting", **settings)
    values = app.stream("in", key=str, value=int).peek(look)
    values.group_by_key().count(name="counts").to_stream().to("out")
    return app


def copying_slowly(cluster: Cluster, look: Any = lambda value: None) -> App:
    app = cluster.app("copying", buffered_records_per_partition=1)
    app.stream("in", key=str, value=int).peek(look).to("out")
    return app


def failure_of(streams: Streams) -> StreamsError:
    eventually(lambda: streams.finished, "the failure")
    assert isinstance(streams.failure, StreamsError)
    return streams.failure


def test_records_deleted_past_the_committed_offset_stop_a_stateful_application_at_the_next_start(
    cluster: Cluster,
):
    cluster.create("in", "out")
    cluster.write("in", [("k", i, i + 1) for i in range(10)])
    run_to_the_end(cluster, counting(cluster))
    cluster.write("in", [("k", i, i + 1) for i in range(10, 20)])
    cluster.admin.delete_records({IN: 16}).wait()
    failure = failure_of(cluster.start(counting(cluster)))
    assert isinstance(failure, OffsetOutOfRangeError)
    assert "committed offset 10 of in-0" in failure.what
    assert "16 to 20" in failure.where
    assert "6 records were deleted" in failure.why
    assert cluster.committed("counting")[IN].offset == 10
    assert cluster.table("out") == {"k": 10}

    cluster.admin.set_group_offsets("counting", {IN: CommittedOffset(16)})
    run_to_the_end(cluster, counting(cluster))
    assert cluster.table("out") == {"k": 14}


def test_a_topic_that_was_made_anew_stops_a_stateful_application(cluster: Cluster):
    cluster.create("in", "out")
    cluster.write("in", [("k", i, i + 1) for i in range(10)])
    run_to_the_end(cluster, counting(cluster))
    cluster.admin.delete_topics(["in"])
    cluster.create("in")
    cluster.write("in", [("k", 1, 1)])
    cluster.admin.set_group_offsets("counting", {IN: CommittedOffset(10)})
    failure = failure_of(cluster.start(counting(cluster)))
    assert isinstance(failure, OffsetOutOfRangeError)
    assert "created anew" in failure.why


@pytest.mark.parametrize("stateful", [True, False])
def test_records_deleted_before_they_are_read_stop_what_has_state_while_it_runs(
    cluster: Cluster, stateful: bool
):
    held, go_on = threading.Event(), threading.Event()

    def look(value: int) -> None:
        if value == 5:
            held.set()
            go_on.wait(30)

    cluster.create("in", "out")
    # More than the client fetches ahead, so that the rest is still in the log alone.
    cluster.write("in", [("k" * 1_000, i, i + 1) for i in range(150_000)])
    last = 149_990
    streams = cluster.start(counting(cluster, look) if stateful else copying_slowly(cluster, look))
    eventually(held.is_set, "the record that holds")
    cluster.admin.delete_records({IN: last}).wait()
    go_on.set()
    if stateful:
        failure = failure_of(streams)
        assert isinstance(failure, OffsetOutOfRangeError)
        assert "task 0_0" in failure.where
        assert "in-0" in str(failure)
    else:
        caught_up(streams)
        copied = [record.value for record in cluster.read("out")]
        assert copied[-10:] == list(range(last, last + 10))
        assert len(copied) < last


def test_the_marker_of_a_transaction_that_ends_after_its_records_were_committed_is_committed_too(
    cluster: Cluster,
):
    cluster.create("in", "out")
    other = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "x"})
    other.init_transactions()
    other.begin_transaction()
    other.produce("in", (1).to_bytes(8), b"k", 0, timestamp=1)
    other.flush()
    streams = cluster.start(counting(cluster))
    eventually(lambda: IN in cluster.committed("counting"), "the record")
    assert cluster.committed("counting")[IN].offset == 1
    other.commit_transaction()
    eventually(lambda: cluster.committed("counting")[IN].offset == 2, "the marker")
    caught_up(streams)
    assert cluster.table("out") == {"k": 1}


def test_a_marker_stays_committed_while_records_behind_it_wait(cluster: Cluster):
    """Going back to before it, the next start might find that it was deleted, and say that records are lost."""
    cluster.create("in", "other", "out")
    app = cluster.app("merging", max_task_idle_ms=600_000)
    other = app.stream("other", key=str, value=int)
    app.stream("in", key=str, value=int).merge(other).to("out")
    streams = cluster.start(app)

    def write_transaction(records: dict[str, int]) -> None:
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "x"})
        producer.init_transactions()
        producer.begin_transaction()
        for topic, timestamp in records.items():
            producer.produce(topic, (1).to_bytes(8), b"k", 0, timestamp=timestamp)
        producer.commit_transaction()

    def committed() -> list[int | None]:
        found = cluster.committed("merging")
        return [found[p].offset if p in found else None for p in (IN, TopicPartition("other", 0))]

    write_transaction({"in": 1_000, "other": 2_000})
    eventually(lambda: committed()[0] == 2, "the marker")
    # This one waits for what may come in the other topic, whose record is earlier.
    write_transaction({"in": 3_000})
    eventually(lambda: committed()[1] is not None, "the record of the other topic")
    assert committed()[0] == 2
    assert len(cluster.read("out")) == 2
    assert streams.failure is None
