"""Who is closed leaves no transaction open: what it has written to can be read as committed at once."""

from __future__ import annotations

import pytest

from tests.kafka.support import Cluster
from tests.live.support import eventually, running

#: No transaction of these tests ends by its time.
PATIENT = {"transaction.timeout.ms": "600000"}


@pytest.fixture
def patient(cluster: Cluster) -> Cluster:
    cluster.create("in", "out")
    cluster.broker = cluster.broker_with(exactly_once=True, client_settings=PATIENT)
    return cluster


def left_open(cluster: Cluster):
    """A producer with an open transaction that holds one record."""
    producer = cluster.broker.producer("p", "shop")
    producer.send("out", 0, b"k", b"v", 1, ())
    producer._flush(None)
    assert not all_is_stable(cluster)
    return producer


def all_is_stable(cluster: Cluster) -> bool:
    partitions = cluster.partitions("out")
    return cluster.admin.end_offsets(partitions) == cluster.admin.stable_end_offsets(partitions)


@pytest.mark.parametrize("aborted", [False, True])
def test_a_producer_that_is_closed_ends_its_transaction(patient: Cluster, aborted: bool):
    producer = left_open(patient)
    if aborted:
        producer.abort()
    producer.close()
    assert all_is_stable(patient)
    assert patient.read("out") == []
    producer.close()


def test_a_producer_whose_transactional_id_has_been_taken_over_ends_nothing_of_its_successor(
    patient: Cluster,
):
    former = left_open(patient)
    successor = left_open(patient)
    former.close()
    successor.commit({}, None)
    assert [record.value for record in patient.read("out", value=bytes)] == [b"v"]
    successor.close()


def test_an_application_that_fails_leaves_nothing_open(patient: Cluster):
    app = patient.app("failing", statestore_cache_max_bytes=0, commit_interval_ms=600_000)

    def fail(value: int) -> int:
        if value == 7:
            raise ValueError("seven")
        return value

    app.stream("in", key=str, value=int).map_values(fail).to("out")
    streams = patient.start(app)
    running(streams)
    patient.write("in", [("k", i, i) for i in range(7)])
    eventually(lambda: not all_is_stable(patient), "an open transaction")
    patient.write("in", [("k", 7, 7)])
    eventually(lambda: streams.finished, "it has failed")
    assert all_is_stable(patient)
    assert patient.read("out") == []
