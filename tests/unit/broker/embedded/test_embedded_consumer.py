"""The consumer of the embedded log: positions, fairness, waiting."""

from __future__ import annotations

import pytest

from pystreams.broker.embedded import log
from pystreams.errors import OffsetOutOfRangeError, TopicError
from pystreams.ids import TopicPartition
from tests.unit.broker.log_helpers import T0, create, write

T1 = TopicPartition("t", 1)


@pytest.fixture
def consumer(broker):
    consumer = broker.consumer("test")
    yield consumer
    consumer.close()


def fill(broker, count: int, partition: TopicPartition = T0, size: int = 4) -> None:
    write(broker, [(b"%d" % number, b"v" * size, number) for number in range(count)], partition)


def test_a_batch_is_bounded_and_the_position_stands_behind_it(broker, consumer):
    create(broker)
    fill(broker, 5000)
    consumer.assign({T0: 0})
    (batch,) = consumer.poll(0)
    assert list(batch.offsets) == list(range(1000))
    assert batch.next_offset == consumer.position(T0) == 1000
    assert batch.headers is None


def test_what_is_deleted_right_before_it_is_read_is_no_hole(broker, consumer, monkeypatch):
    create(broker)
    fill(broker, 10)
    consumer.assign({T0: 0})
    read, admin = log.read, broker.admin()

    def read_late(*args):
        admin.delete_records({T0: 5})
        return read(*args)

    with monkeypatch.context() as patch:
        patch.setattr(log, "read", read_late)
        with pytest.raises(OffsetOutOfRangeError, match="Offset 0 is not in the log"):
            consumer.poll(0)
    admin.close()
    assert consumer.position(T0) == 0
    consumer.seek({T0: 5})
    (batch,) = consumer.poll(0)
    assert list(batch.offsets) == [5, 6, 7, 8, 9]


def test_what_arrives_while_it_reads_comes_with_the_next_poll(broker, consumer, monkeypatch):
    create(broker)
    fill(broker, 3)
    consumer.assign({T0: 0})
    read = log.read

    def read_early(*args):
        batch = read(*args)
        fill(broker, 2)
        return batch

    with monkeypatch.context() as patch:
        patch.setattr(log, "read", read_early)
        assert [list(batch.offsets) for batch in consumer.poll(0)] == [[0, 1, 2]]
    assert [list(batch.offsets) for batch in consumer.poll(0)] == [[3, 4]]


def test_every_partition_gets_its_turn(broker, consumer):
    create(broker, "t", 2)
    fill(broker, 4000)
    fill(broker, 10, T1)
    consumer.assign({T0: 0, T1: 0})
    assert sorted((batch.partition, len(batch)) for batch in consumer.poll(0)) == [(0, 1000), (1, 10)]


def test_large_values_are_given_in_turns(broker, consumer):
    create(broker, "t", 3, {"max.message.bytes": "30000000"})
    for partition in range(3):
        fill(broker, 2, TopicPartition("t", partition), size=20_000_000)
    consumer.assign({TopicPartition("t", partition): 0 for partition in range(3)})
    polled = [[batch.partition for batch in consumer.poll(0)] for _ in range(3)]
    assert polled == [[0, 1], [2, 0], [1, 2]]


def test_the_end_offset_is_known_from_the_first_poll_on(broker, consumer):
    create(broker)
    fill(broker, 3)
    consumer.assign({T0: 3})
    assert consumer.known_end_offset(T0) is None
    assert consumer.poll(0) == []
    assert consumer.known_end_offset(T0) == 3
    fill(broker, 2)
    assert consumer.known_end_offset(T0) == 3
    consumer.poll(0)
    assert consumer.known_end_offset(T0) == 5


def test_the_position_passes_a_hole_at_the_end(broker, consumer, clock):
    create(broker, config={"cleanup.policy": "compact", "delete.retention.ms": "0"})
    write(broker, [(b"a", b"1", 1), (b"b", b"1", 2), (b"b", None, 3)])
    clock.advance_ms(1)
    admin = broker.admin()
    admin.clean()
    admin.close()
    consumer.assign({T0: 0})
    (batch,) = consumer.poll(0)
    assert (list(batch.offsets), batch.next_offset, consumer.position(T0)) == ([0], 3, 3)
    consumer.seek({T0: 1})
    assert consumer.poll(0) == []
    assert consumer.position(T0) == 3


@pytest.mark.parametrize("position", [1, 11])
def test_a_position_outside_of_the_log_is_an_error_that_names_the_bounds(broker, consumer, position):
    create(broker)
    fill(broker, 10)
    admin = broker.admin()
    admin.delete_records({T0: 5}).wait()
    admin.close()
    consumer.assign({T0: position})
    with pytest.raises(OffsetOutOfRangeError, match=rf"(?s)Offset {position} is not.*t-0.*offsets 5 to 10"):
        consumer.poll(0)


def test_records_that_vanish_under_a_reader_are_an_error_not_a_gap(broker, consumer):
    create(broker)
    fill(broker, 10)
    consumer.assign({T0: 0})
    admin = broker.admin()
    admin.delete_records({T0: 5}).wait()
    admin.close()
    with pytest.raises(OffsetOutOfRangeError):
        consumer.poll(0)


def test_a_topic_that_is_missing_or_deleted_is_named(broker, consumer):
    with pytest.raises(TopicError, match="'t' does not exist"):
        consumer.assign({T0: 0})
    create(broker)
    consumer.assign({T0: 0})
    admin = broker.admin()
    admin.delete_topics(["t"])
    admin.close()
    with pytest.raises(TopicError, match="'t' was deleted"):
        consumer.poll(0)
