"""The open transaction of a member that is gone is ended by who takes its tasks over; a living member's never is."""

from __future__ import annotations

import time
from contextlib import closing

import pytest

from pystreams import App, TimeWindows
from pystreams.broker.kafka.fencing import transactional_ids_of
from pystreams.broker.kafka.member import MemberIdentity
from pystreams.broker.port import CommittedOffset, TransactionContent
from pystreams.errors import TaskMigratedError
from pystreams.ids import TaskId, transactional_id_of_instance
from tests.kafka.exactly_once.word_counts import APPLICATION, READ, WordCounts
from tests.kafka.support import Cluster
from tests.live.support import caught_up, eventually, run_to_the_end
from tests.unit.broker.log_helpers import deal

PROCESS = "0b1e6c0e-6a54-4f0a-9d7e-2a3c6c2f3b11"
CONTENT = TransactionContent("shop", frozenset({"t"}))
#: No transaction of these tests ends by its time.
PATIENT = {"transaction.timeout.ms": "600000"}


@pytest.fixture
def patient(cluster: Cluster) -> Cluster:
    cluster.create("t")
    cluster.broker = cluster.broker_with(exactly_once=True, client_settings=PATIENT)
    return cluster


def left_open(cluster: Cluster, transactional_id: str):
    """A producer with an open transaction that holds one record, and that nobody will end."""
    producer = cluster.broker.producer("p", transactional_id)
    producer.send("t", 0, b"k", b"v", 1, ())
    producer._flush(None)
    return producer


def stable_end(cluster: Cluster) -> int:
    (partition,) = cluster.partitions("t")
    return cluster.admin.stable_end_offsets([partition])[partition]


@pytest.mark.parametrize("number", ["0-1", "17"])
def test_the_first_transaction_of_a_member_that_is_gone_is_ended(patient: Cluster, number: str):
    producer = left_open(patient, f"shop-{PROCESS}-{number}")
    assert stable_end(patient) == 0
    patient.broker.fence(CONTENT, [TaskId(0, 0)])
    assert stable_end(patient) == 2  # the record and the mark of the abort
    assert patient.read("t", value=bytes) == []
    producer.send("t", 0, b"k", b"late", 1, ())
    with pytest.raises(TaskMigratedError, match="Others have ended the transaction"):
        producer.commit({}, None)
    producer.abort()
    producer.settle()
    producer.send("t", 0, b"k", b"again", 1, ())
    producer.commit({}, None)
    assert [record.value for record in patient.read("t", value=bytes)] == [b"again"]
    producer.close()


def test_another_application_whose_name_begins_in_the_same_way_is_left_alone(patient: Cluster):
    with closing(left_open(patient, f"shop-eu-{PROCESS}-0-1")) as producer:
        patient.broker.fence(CONTENT, [TaskId(0, 0)])
        assert stable_end(patient) == 0
        producer.commit({}, None)
    assert [record.value for record in patient.read("t", value=bytes)] == [b"v"]


def test_a_living_members_transaction_is_left_alone(patient: Cluster):
    transactional_id = f"shop-{PROCESS}-0-1"
    with (
        closing(left_open(patient, transactional_id)) as producer,
        closing(
            patient.broker.member("c", "shop", ["t"], bytes, lambda _: {}, transactional_id=transactional_id)
        ) as member,
    ):
        eventually(lambda: member.poll() or member.can_commit(), "it is a member")
        patient.broker.fence(CONTENT, [TaskId(0, 0)])
        assert stable_end(patient) == 0
        producer.commit({}, None)
    assert [record.value for record in patient.read("t", value=bytes)] == [b"v"]


def test_a_static_member_that_comes_back_with_another_client_id_is_left_alone(patient: Cluster):
    """Kafka keeps the client id with which a static member came first."""
    transactional_id = transactional_id_of_instance("shop", "one")

    def member(client_id: str):
        assign = deal("t", 1)
        return patient.broker.member(
            "c", "shop", ["t"], bytes, assign, instance_id="one", transactional_id=client_id
        )

    with closing(member(f"shop-{PROCESS}-0-1")) as first:
        eventually(lambda: first.poll() or first.can_commit(), "it is a member")
    with closing(left_open(patient, transactional_id)) as producer, closing(member(transactional_id)) as back:
        eventually(lambda: back.poll() or back.can_commit(), "it is a member again")
        patient.broker.fence(CONTENT, [TaskId(0, 0)])
        assert stable_end(patient) == 0
        producer.commit({}, None)
        back.close(leave=True)
    assert [record.value for record in patient.read("t", value=bytes)] == [b"v"]


def test_the_ids_of_static_members_are_their_own():
    first = transactional_id_of_instance("shop", "eu-1")
    assert first == transactional_id_of_instance("shop", "eu-1")
    assert transactional_ids_of("shop").fullmatch(first)
    assert (
        len(
            {
                first,
                transactional_id_of_instance("shop", "eu-2"),
                transactional_id_of_instance("shop-eu", "1"),
            }
        )
        == 3
    )


def test_the_ids_of_an_application_are_distinguished_from_all_others():
    ids = transactional_ids_of("shop.v1")
    assert ids.fullmatch(f"shop.v1-{PROCESS}-0-1")
    assert ids.fullmatch(f"shop.v1-{PROCESS}-3")
    for other in (
        f"shopxv1-{PROCESS}-0-1",
        f"shop.v1-eu-{PROCESS}-1",
        "shop.v1-backfill-counts-0",
        "shop.v1-1",
    ):
        assert not ids.fullmatch(other)


@pytest.mark.slow
def test_who_takes_over_from_a_killed_process_does_not_wait_for_its_transaction(words: WordCounts):
    settings = {"transaction_timeout_ms": 600_000, "commit_interval_ms": 5_000}
    victim = words.start("one", **settings)
    eventually(lambda: READ[1] in words.cluster.admin.partition_counts(), "it has made its topics")
    words.write(200)
    words.done()
    # It has read something, and commits only seconds later: killed, it leaves a transaction open.
    words.write(200)
    ends = words.cluster.admin
    changelog = words.cluster.partitions(READ[1])
    eventually(
        lambda: ends.end_offsets(changelog) != ends.stable_end_offsets(changelog), "an open transaction"
    )
    victim.kill()
    victim.wait()
    assert ends.end_offsets(changelog) != ends.stable_end_offsets(changelog)
    killed = time.monotonic()
    words.start("two", commit_interval_ms=100)
    words.done()
    print(f"all is committed {time.monotonic() - killed:.1f} s after the kill of the only process")
    words.stop_all()
    words.check()
    assert words.members() == 0, APPLICATION


def test_an_application_starts_while_the_offsets_of_a_member_that_is_gone_are_pending(patient: Cluster):
    def counting() -> App:
        app = patient.app("shop", processing_guarantee="exactly_once_v2")
        windows = app.stream("in", key=str, value=int).group_by_key().windowed_by(TimeWindows.tumbling(1_000))
        windows.count(name="counts").to_stream().map(lambda window, count: (window.key, count)).to(
            "out", key=str, value=int
        )
        return app

    now_ms = time.time_ns() // 1_000_000
    patient.create("in", "out")
    patient.write("in", [("k", 1, now_ms)])
    run_to_the_end(patient, counting())
    with closing(left_open(patient, f"shop-{PROCESS}-0-1")) as gone:
        assert gone._id is not None
        (partition,) = patient.partitions("in")
        former = MemberIdentity("shop", -1, "", None)
        gone._connection().add_offsets(gone._id, former, {partition: CommittedOffset(1_000)})
        streams = patient.start(counting())
        patient.write("in", [("k", 2, now_ms)])
        caught_up(streams)
    assert [(record.key, record.value) for record in patient.read("out")] == [("k", 1), ("k", 2)]
