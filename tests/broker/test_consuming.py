"""Consumers: every record once and in order, whatever is paused, sought or given up in between."""

from __future__ import annotations

import threading
import time
from random import Random

import pytest

from pystreams.broker.port import Consumer, Producer
from pystreams.errors import OffsetOutOfRangeError
from pystreams.record import RecordBatch
from tests.broker.kit import P0, P1, poll_until, send, values
from tests.live.support import Log


def test_a_batch_has_all_columns(consumer: Consumer, producer: Producer):
    producer.send("t", 1, b"k", b"v", 5, (("a", b"1"), ("a", None)))
    producer.send("t", 1, None, None, 6, ())
    producer.send("t", 1, b"", b"", 7, ())
    producer.commit({}, None)
    consumer.assign({P1: 0})
    (batch,) = poll_until(consumer, lambda: consumer.position(P1) == 3)
    assert list(batch.offsets) == [0, 1, 2]
    batch.offsets = [0, 1, 2]
    assert batch == RecordBatch(
        "t",
        1,
        [b"k", None, b""],
        [b"v", None, b""],
        [5, 6, 7],
        [0, 1, 2],
        [(("a", b"1"), ("a", None)), (), ()],
        3,
    )


def test_a_batch_without_headers_says_so(consumer: Consumer, producer: Producer):
    send(producer, 0, b"a")
    consumer.assign({P0: 0})
    (batch,) = poll_until(consumer, lambda: consumer.position(P0) == 1)
    assert batch.headers is None
    assert batch.next_offset == 1


def test_a_paused_partition_gives_nothing_and_loses_nothing(consumer: Consumer, producer: Producer):
    sent = [b"%d" % i for i in range(100)]
    consumer.assign({P0: 0, P1: 0})
    consumer.pause([P0])
    send(producer, 0, *sent)
    send(producer, 1, *sent)
    batches = poll_until(consumer, lambda: consumer.position(P1) == 100)
    assert (values(batches), values(batches, P1)) == ([], sent)
    assert consumer.position(P0) == 0
    assert consumer.poll(100) == []
    consumer.resume([P0])
    assert values(poll_until(consumer, lambda: consumer.position(P0) == 100)) == sent


def test_seek_goes_into_the_middle_of_a_batch(consumer: Consumer, producer: Producer):
    for number in range(10):
        producer.send("t", 0, b"k", b"%d" % number, number + 1, ())
    producer.commit({}, None)
    consumer.assign({P0: 0})
    poll_until(consumer, lambda: consumer.position(P0) == 10)
    consumer.seek({P0: 7})
    (batch,) = poll_until(consumer, lambda: consumer.position(P0) == 10)
    assert (list(batch.offsets), batch.timestamps) == ([7, 8, 9], [8, 9, 10])


def test_partitions_come_and_go_while_others_go_on(consumer: Consumer, producer: Producer):
    send(producer, 0, b"a", b"b")
    send(producer, 1, b"x", b"y")
    consumer.assign({P0: 0})
    assert values(poll_until(consumer, lambda: consumer.position(P0) == 2)) == [b"a", b"b"]
    consumer.assign({P1: 1})
    assert values(poll_until(consumer, lambda: consumer.position(P1) == 2), P1) == [b"y"]
    send(producer, 0, b"c")
    consumer.unassign([P0])
    send(producer, 1, b"z")
    batches = poll_until(consumer, lambda: consumer.position(P1) == 3)
    assert (values(batches), values(batches, P1)) == ([], [b"z"])
    consumer.seek({P1: 0})
    assert values(poll_until(consumer, lambda: consumer.position(P1) == 3), P1) == [b"x", b"y", b"z"]


def test_whatever_is_under_way_when_a_position_changes_the_new_one_counts(
    consumer: Consumer, producer: Producer
):
    sent = [b"%d" % i for i in range(30)]
    send(producer, 0, *sent)
    consumer.assign({P0: 0})
    random = Random(20_130_101)
    for _ in range(150):
        end = random.choice((0, 5, 30))
        poll_until(consumer, lambda end=end: consumer.position(P0) >= end)
        # A moment in which the end of the partition may be on its way.
        time.sleep(random.choice((0, 0, 0.002, 0.01)))
        at = random.randrange(30)
        consumer.seek({P0: at})
        batches = consumer.poll(0) + consumer.poll(20)
        assert values(batches) == sent[at : consumer.position(P0)]


def test_the_end_offset_is_known_once_it_was_asked_for(consumer: Consumer, producer: Producer):
    send(producer, 0, b"a", b"b", b"c")
    consumer.assign({P0: 3})
    assert consumer.known_end_offset(P0) is None
    assert poll_until(consumer, lambda: consumer.known_end_offset(P0) is not None) == []
    assert (consumer.known_end_offset(P0), consumer.position(P0)) == (3, 3)
    send(producer, 0, b"d", b"e")
    assert consumer.known_end_offset(P0) == 3, "as of the last poll"
    poll_until(consumer, lambda: consumer.position(P0) == 5)
    assert consumer.known_end_offset(P0) == 5


def test_the_end_that_was_known_of_a_partition_is_forgotten_with_it(consumer: Consumer, producer: Producer):
    send(producer, 0, b"a", b"b")
    consumer.assign({P0: 0})
    poll_until(consumer, lambda: consumer.position(P0) == 2)
    consumer.unassign([P0])
    send(producer, 0, b"c")
    consumer.assign({P0: 2})
    assert consumer.known_end_offset(P0) is None
    poll_until(consumer, lambda: consumer.position(P0) == 3)
    assert consumer.known_end_offset(P0) == 3


def test_where_everything_was_deleted_the_end_is_known_and_nothing_comes(
    log: Log, consumer: Consumer, producer: Producer
):
    send(producer, 0, b"a", b"b")
    log.admin.delete_records({P0: 2}).wait()
    consumer.assign({P0: 2})
    assert poll_until(consumer, lambda: consumer.known_end_offset(P0) is not None) == []
    assert (consumer.position(P0), consumer.known_end_offset(P0)) == (2, 2)


@pytest.mark.parametrize("position", [1, 9])
def test_a_position_outside_of_the_log_is_an_error_and_not_a_gap(
    log: Log, consumer: Consumer, producer: Producer, position: int
):
    send(producer, 0, b"a", b"b", b"c")
    log.admin.delete_records({P0: 2}).wait()
    send(producer, 1, b"x")
    consumer.assign({P0: position, P1: 0})
    with pytest.raises(OffsetOutOfRangeError, match=rf"Offset {position} is not in the log\n  where: .*t-0"):
        poll_until(consumer, lambda: False)
    assert consumer.position(P0) == position
    consumer.seek({P0: 2})
    assert values(poll_until(consumer, lambda: consumer.position(P0) == 3)) == [b"c"]


def test_what_was_wrong_with_a_partition_is_forgotten_when_it_is_read_elsewhere_or_given_up(
    consumer: Consumer, producer: Producer
):
    send(producer, 0, b"a", b"b", b"c")
    send(producer, 1, b"x", b"y")
    consumer.assign({P0: 9, P1: 9})
    with pytest.raises(OffsetOutOfRangeError):
        poll_until(consumer, lambda: False)
    consumer.seek({P0: 2})
    consumer.unassign([P1])
    assert values(poll_until(consumer, lambda: consumer.position(P0) == 3)) == [b"c"]
    consumer.assign({P1: 1})
    assert values(poll_until(consumer, lambda: consumer.position(P1) == 2), P1) == [b"y"]


def test_a_waiting_poll_returns_when_a_record_arrives(consumer: Consumer, producer: Producer):
    consumer.assign({P0: 0})
    poll_until(consumer, lambda: consumer.known_end_offset(P0) == 0)
    writer = threading.Timer(0.05, send, (producer, 0, b"a"))
    writer.start()
    began = time.monotonic()
    assert values(consumer.poll(60_000)) == [b"a"]
    assert time.monotonic() - began < 30, "it has not waited to the end"
    writer.join()


def test_a_waiting_poll_burns_no_processor_and_gives_up_in_time(consumer: Consumer, producer: Producer):
    consumer.assign({P0: 0})
    poll_until(consumer, lambda: consumer.known_end_offset(P0) == 0)
    began, began_cpu = time.monotonic(), time.thread_time()
    assert consumer.poll(300) == []
    assert time.monotonic() - began >= 0.29
    assert time.thread_time() - began_cpu < 0.1
