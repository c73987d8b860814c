"""What is made of answers about hanging transactions that a healthy cluster without access control does not give."""

from __future__ import annotations

import warnings
from types import SimpleNamespace as Answer
from typing import Any

import pytest

from pystreams.broker.port import TransactionContent
from pystreams.ids import TopicPartition

with warnings.catch_warnings():
    # kafka-python reads its message schemas by a function that is deprecated since Python 3.11.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import errors
    from kafka.protocol.metadata import MetadataRequest

    from pystreams.broker.kafka.hanging_transactions import HangingTransactions
    from pystreams.broker.kafka.transaction_coordination import LastTransaction, ProducerId

OUT, OFFSETS = TopicPartition("out", 0), TopicPartition("__consumer_offsets", 0)
FORBIDDEN = errors.TopicAuthorizationFailedError.errno
UNKNOWN = errors.UnknownTopicOrPartitionError.errno


class Cluster:
    """One broker with the coordinator, and two partitions that may be open, forbidden or without a leader."""

    def __init__(self) -> None:
        self.state = "CompleteCommit"
        self.producer = ProducerId("shop-1", 5, 0)
        self.open: set[TopicPartition] = set()
        self.hidden: set[TopicPartition] = set()
        self.leaderless = False
        #: Topics that a broker that is only starting does not know: when asked where they are, or about producers.
        self.unlisted: set[str] = set()
        self.unknown: set[str] = set()
        self.read_only = False
        self.next_producer_id = 5
        #: How all that has been open was ended.
        self.ended: dict[TopicPartition, bool] = {}
        self._added: set[TopicPartition] = set()
        #: The request whose answer does not arrive, once.
        self.lost = ""

    def _fail_at(self, request: str) -> None:
        if self.lost == request:
            self.lost = ""
            raise errors.KafkaConnectionError("lost")

    def last_transaction(self, transactional_id: str, timeout_ms: float = 0) -> LastTransaction:
        return LastTransaction(self.producer, self.state)

    def take_over(self, transactional_id: str, timeout_ms: int) -> ProducerId:
        assert self.state != "Ongoing"
        self.state = "Empty"
        self.producer = ProducerId(transactional_id, self.next_producer_id, self.producer.epoch + 1)
        self._fail_at("take_over")
        return self.producer

    def wait_for_end(self, transactional_id: str, timeout_ms: int) -> LastTransaction:
        if self.state == "Ongoing":
            self.end(self.producer, committed=False)
        return self.last_transaction(transactional_id)

    def add_partitions(self, producer: ProducerId, partitions: Any) -> None:
        self._fail_at("add_partitions")
        if self.read_only:
            raise errors.TopicAuthorizationFailedError("out")
        self._add({*partitions})

    def announce_offsets(self, producer: ProducerId, group: str) -> None:
        self._fail_at("announce_offsets")
        assert group == "shop"
        self._add({OFFSETS})

    def _add(self, partitions: set[TopicPartition]) -> None:
        self._added |= partitions
        self.state = "Ongoing"

    def end(self, producer: ProducerId, *, committed: bool) -> None:
        self._fail_at("end")
        if self.state != "Ongoing":
            raise errors.InvalidTxnStateError
        self.ended |= dict.fromkeys(self._added, committed)
        self.open -= self._added
        self.state = "CompleteCommit" if committed else "CompleteAbort"

    def ask_broker(self, request: Any, node: int | None, timeout_ms: float) -> Any:
        if isinstance(request, MetadataRequest):
            return Answer(topics=[self._topic(topic.name) for topic in request.topics])
        return Answer(
            topics=[
                Answer(name=topic.name, partitions=[self._described(topic.name)]) for topic in request.topics
            ]
        )

    def _topic(self, name: str) -> Answer:
        code = errors.LeaderNotAvailableError.errno if self.leaderless else 0
        if name in self.unlisted:
            return Answer(error_code=UNKNOWN, name=name, partitions=[])
        return Answer(
            error_code=0, name=name, partitions=[Answer(error_code=code, partition_index=0, leader_id=1)]
        )

    def _described(self, name: str) -> Answer:
        partition = TopicPartition(name, 0)
        others = Answer(producer_id=77, current_txn_start_offset=3)
        own = Answer(producer_id=5, current_txn_start_offset=9 if partition in self.open else -1)
        code = FORBIDDEN if partition in self.hidden else UNKNOWN if name in self.unknown else 0
        return Answer(partition_index=0, error_code=code, active_producers=[] if code else [others, own])


@pytest.fixture
def cluster() -> Any:
    return Cluster()


@pytest.fixture
def hanging() -> HangingTransactions:
    return HangingTransactions("shop-1", 60_000, TransactionContent("shop", frozenset({"out"})), "here")


def test_nothing_is_done_if_nothing_hangs(cluster, hanging):
    hanging.end(cluster)
    assert (cluster.state, cluster.ended) == ("CompleteCommit", {})


def test_partitions_of_which_the_login_learns_nothing_are_ended_once_to_be_safe(cluster, hanging):
    cluster.hidden = {OUT, OFFSETS}
    hanging.end(cluster)
    assert cluster.ended == {OUT: True, OFFSETS: True}
    assert cluster.producer.epoch == 1


def test_a_topic_that_may_not_be_written_is_left_alone(cluster, hanging):
    cluster.hidden, cluster.read_only = {OUT}, True
    hanging.end(cluster)
    assert cluster.ended == {}


def test_the_outcome_is_not_forgotten_while_a_partition_has_no_leader(cluster, hanging):
    cluster.open, cluster.leaderless = {OUT}, True
    with pytest.raises(errors.LeaderNotAvailableError):
        hanging.end(cluster)
    assert cluster.state == "CompleteCommit"
    cluster.leaderless = False
    hanging.end(cluster)
    assert cluster.ended == {OUT: True}


@pytest.mark.parametrize("answer", ["unlisted", "unknown"])
def test_a_broker_that_is_only_starting_is_asked_again(cluster, hanging, answer: str):
    cluster.open = {OUT}
    setattr(cluster, answer, {OFFSETS.topic})
    with pytest.raises(errors.LeaderNotAvailableError):
        hanging.end(cluster)
    assert cluster.state == "CompleteCommit"


def test_a_topic_that_was_deleted_holds_nothing_back(cluster, hanging):
    cluster.open, cluster.unlisted = {OUT}, {OUT.topic}
    hanging.end(cluster)
    assert cluster.ended == {}


@pytest.mark.parametrize("lost", ["take_over", "add_partitions", "announce_offsets", "end"])
def test_a_committed_transaction_is_committed_everywhere_although_the_first_attempt_fails(
    cluster, hanging, lost: str
):
    cluster.open, cluster.lost = {OUT, OFFSETS}, lost
    with pytest.raises(errors.KafkaConnectionError):
        hanging.end(cluster)
    hanging.end(cluster)
    assert cluster.ended == {OUT: True, OFFSETS: True}
    assert not cluster.open


def test_an_open_transaction_is_aborted_first(cluster, hanging):
    cluster.state, cluster.open = "Ongoing", {OUT}
    hanging.end(cluster)
    assert cluster.ended == {OUT: False}


def test_what_cannot_be_ended_is_reported_with_the_command_that_can(cluster, hanging, caplog):
    cluster.open, cluster.next_producer_id = {OUT}, 6
    hanging.end(cluster)
    assert cluster.ended == {}
    assert "producer id 5 hangs in out-0" in caplog.text
    assert "kafka-transactions.sh" in caplog.text


@pytest.mark.parametrize("found", ["open", "hidden", "neither"])
def test_a_look_changes_nothing(cluster, hanging, found: str):
    if found != "neither":
        setattr(cluster, found, {OUT})
    assert hanging.hang(cluster, cluster.producer, 1_000) == (found != "neither")
    assert (cluster.state, cluster.producer.epoch) == ("CompleteCommit", 0)


def test_a_look_waits_for_the_end_of_the_last_transaction(cluster, hanging):
    cluster.state = "PrepareCommit"
    with pytest.raises(errors.ConcurrentTransactionsError):
        hanging.hang(cluster, cluster.producer, 1_000)


def test_a_look_leaves_who_has_taken_the_id_alone(cluster, hanging):
    cluster.open = {OUT}
    assert not hanging.hang(cluster, cluster.producer._replace(epoch=4), 1_000)
