"""Requests about transactions, over kafka-python's connections, which librdkafka does not offer, or does badly.

librdkafka's ``send_offsets_to_transaction`` never returns if the group's coordinator cannot be found at that moment
(seen with 2.16), and it appends a NUL to the offsets' metadata. So the offsets join librdkafka's transaction from here,
with its producer id and epoch.

A request without an answer may still arrive. It is not repeated: the caller takes over the transactional id again, and
then the coordinator refuses the late request.
"""

# pyright knows an older kafka-python by heart.
# pyright: reportAttributeAccessIssue=false, reportAssignmentType=false
from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from kafka import errors
from kafka.protocol.admin import (
    DescribeGroupsRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from kafka.protocol.metadata import CoordinatorType, MetadataRequest
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

from pystreams.broker.kafka import streams_group
from pystreams.broker.kafka.any_broker import finding, found
from pystreams.broker.kafka.coordination import (
    MOVED,
    UNANSWERED,
    GroupConnection,
    by_topic,
    check_commit,
    raise_for,
)
from pystreams.broker.kafka.member import MemberIdentity
from pystreams.broker.port import CommittedOffset
from pystreams.clock import Deadline, SystemClock
from pystreams.ids import TopicPartition, transactional_id_of_instance

T = TypeVar("T")

REQUEST_TIMEOUT_MS: Final = 10_000.0
#: States of a transaction, by Kafka's names.
ONGOING: Final = "Ongoing"
COMMITTED: Final = "CompleteCommit"
OVER: Final = frozenset({COMMITTED, "CompleteAbort"})
#: The id was taken over after its last transaction.
NOTHING: Final = frozenset({"Empty", "Dead"})

#: A short timeout, because a broker that does not answer may be frozen; the cluster soon notices that.
_LIST_TIMEOUT_MS: Final = 3_000.0
_REFRESH_TIMEOUT_MS: Final = 1_000.0
_PAUSE_S: Final = 0.01

#: The coordinator has refused the request, and will accept it soon.
_NOT_YET: Final = (*MOVED, errors.ConcurrentTransactionsError)


class ProducerId(NamedTuple):
    """The identity of a producer's transaction: a new producer with the same transactional id has a higher epoch."""

    transactional_id: str
    producer_id: int
    epoch: int


class LastTransaction(NamedTuple):
    """The last transaction of a transactional id, as the coordinator knows it."""

    producer: ProducerId
    #: ``ONGOING``, one of ``OVER`` or ``NOTHING``, or on the way to one of them.
    state: str


class ListedTransaction(NamedTuple):
    """A transaction in the list of all transactions, in which brokers give no epochs."""

    transactional_id: str
    producer_id: int
    state: str


class TransactionConnection:
    """Requests to the coordinators of transactions and groups. Threads may share it. Its methods raise kafka-python's
    errors unchanged; after one of ``UNANSWERED`` the outcome is not known."""

    def __init__(self, connection: GroupConnection) -> None:
        self._connection = connection
        self._nodes: dict[tuple[str, int], int] = {}

    def close(self) -> None:
        self._connection.close()

    def forget_coordinators(self) -> None:
        """Look up all coordinators again after a failure: a frozen one does not answer, and each request to it would
        wait for its timeout."""
        self._nodes.clear()

    def producer_id(self, transactional_id: str) -> ProducerId:
        """The last producer that has taken a transactional id."""
        return self.last_transaction(transactional_id).producer

    def last_transaction(
        self, transactional_id: str, timeout_ms: float = REQUEST_TIMEOUT_MS
    ) -> LastTransaction:
        """Raises ``TransactionalIdNotFoundError`` if nobody has taken the id so far."""

        def read(response: Any) -> LastTransaction:
            (state,) = response.transaction_states
            raise_for(state.error_code, transactional_id)
            producer = ProducerId(transactional_id, state.producer_id, state.producer_epoch)
            return LastTransaction(producer, state.transaction_state)

        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        return self._ask(transactional_id, CoordinatorType.TRANSACTION, request, read, timeout_ms)

    def add_offsets(
        self,
        producer: ProducerId,
        member: MemberIdentity,
        offsets: Mapping[TopicPartition, CommittedOffset],
    ) -> None:
        """Make the offsets of a member part of the transaction. The group refuses those of a replaced member."""
        self.announce_offsets(producer, member.group)
        topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        partition = topic.TxnOffsetCommitRequestPartition
        request = TxnOffsetCommitRequest(
            transactional_id=producer.transactional_id,
            group_id=member.group,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            generation_id=member.generation,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            topics=[
                topic(
                    name=name,
                    partitions=[
                        partition(
                            partition_index=number,
                            committed_offset=offsets[TopicPartition(name, number)].offset,
                            committed_leader_epoch=-1,
                            committed_metadata=offsets[TopicPartition(name, number)].metadata,
                        )
                        for number in numbers
                    ],
                )
                for name, numbers in by_topic(offsets).items()
            ],
            min_version=3,
            max_version=3,
        )
        self._ask(member.group, CoordinatorType.GROUP, request, check_commit)

    def announce_offsets(self, producer: ProducerId, group: str) -> None:
        """Make the partition with the group's offsets part of the transaction."""
        request = AddOffsetsToTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            group_id=group,
            max_version=3,
        )
        self._ask_transactions(producer.transactional_id, request)

    def add_partitions(self, producer: ProducerId, partitions: Collection[TopicPartition]) -> None:
        """Make partitions part of the transaction: they get a marker when it ends."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=producer.transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=numbers)
                for name, numbers in by_topic(partitions).items()
            ],
            max_version=3,
        )
        self._ask(producer.transactional_id, CoordinatorType.TRANSACTION, request, _check_partitions)

    def end(self, producer: ProducerId, *, committed: bool) -> None:
        """End a transaction. Its markers are written afterwards."""
        request = EndTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=committed,
            max_version=3,
        )
        self._ask_transactions(producer.transactional_id, request)

    def transactions(self, pattern: re.Pattern[str]) -> list[ListedTransaction]:
        """The last transactions of the transactional ids that match, from all brokers that are in the cluster now;
        brokers that are gone coordinate no transactions."""
        matching: list[ListedTransaction] = []
        cluster = self._connection.ask_broker(
            MetadataRequest(topics=[], min_version=1), None, REQUEST_TIMEOUT_MS
        )
        for broker in cluster.brokers:
            request = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
            answer = self._connection.ask_broker(request, broker.node_id, _LIST_TIMEOUT_MS)
            raise_for(answer.error_code)
            matching += [
                ListedTransaction(one.transactional_id, one.producer_id, one.transaction_state)
                for one in answer.transaction_states
                if pattern.fullmatch(one.transactional_id)
            ]
        return matching

    def members_ids(self, group: str) -> set[str]:
        """The transactional ids of a group's members; none if it has never had any. The id of a member is its client
        id; but for a static member, Kafka keeps the client id with which it joined first."""

        def read(response: Any) -> set[str]:
            (described,) = response.groups
            if described.error_code == errors.GroupIdNotFoundError.errno:
                return set()
            raise_for(described.error_code, group)
            return {
                member.client_id
                if member.group_instance_id is None
                else transactional_id_of_instance(group, member.group_instance_id)
                for member in described.members
            }

        request = DescribeGroupsRequest(groups=[group], include_authorized_operations=False, min_version=4)
        return self._ask(group, CoordinatorType.GROUP, request, read) or self._client_ids_by_task(group)

    def _client_ids_by_task(self, group: str) -> set[str]:
        """The client ids of the members of a group to which the broker assigns tasks; the other request does not find
        such a group."""
        try:
            members = self._ask(
                group, CoordinatorType.GROUP, streams_group.describing(group), streams_group.members_of
            )
        except (errors.IncompatibleBrokerVersion, errors.UnsupportedVersionError):
            return set()
        return {member.client_id for member in members}

    def take_over(self, transactional_id: str, timeout_ms: int) -> ProducerId:
        """Fence the producer with this id. Returns when its open transaction is aborted in all partitions."""

        def read(response: Any) -> ProducerId:
            raise_for(response.error_code, transactional_id)
            return ProducerId(transactional_id, response.producer_id, response.producer_epoch)

        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=timeout_ms, max_version=5
        )
        return self._ask(transactional_id, CoordinatorType.TRANSACTION, request, read)

    def wait_for_end(self, transactional_id: str, timeout_ms: int) -> LastTransaction:
        """Fence the producer with this id if its transaction is open, and return when its last transaction is over.
        Unlike after ``take_over``, the coordinator still knows how it has ended."""
        deadline = Deadline(SystemClock(), REQUEST_TIMEOUT_MS)
        while True:
            last = self.last_transaction(transactional_id)
            if last.state in OVER or last.state in NOTHING:
                return last
            if deadline.expired():
                raise errors.ConcurrentTransactionsError(f"{transactional_id}: {last.state}")
            if last.state == ONGOING:
                self._begin_abort(transactional_id, timeout_ms)
            time.sleep(_PAUSE_S)

    def _begin_abort(self, transactional_id: str, timeout_ms: int) -> None:
        def read(response: Any) -> None:
            # This is the answer if the abort has begun. If the transaction were over, it would be another one.
            if response.error_code != errors.ConcurrentTransactionsError.errno:
                raise_for(response.error_code, transactional_id)

        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=timeout_ms, max_version=5
        )
        self._ask(transactional_id, CoordinatorType.TRANSACTION, request, read)

    def ask_broker(self, request: Any, node: int | None, timeout_ms: float) -> Any:
        """Send a request to one broker (None: to any), once."""
        return self._connection.ask_broker(request, node, timeout_ms)

    def refresh(self) -> None:
        """Ask for the brokers again: one of them may be gone."""
        cluster, manager = self._connection.client.cluster, self._connection.client._manager
        self._connection.run(manager.wait_for, cluster.request_update(), _REFRESH_TIMEOUT_MS)

    def _ask_transactions(self, transactional_id: str, request: Any) -> None:
        self._ask(
            transactional_id,
            CoordinatorType.TRANSACTION,
            request,
            lambda response: raise_for(response.error_code, transactional_id),
        )

    def _ask(
        self,
        key: str,
        kind: int,
        request: Any,
        read: Callable[[Any], T],
        timeout_ms: float = REQUEST_TIMEOUT_MS,
    ) -> T:
        """Send a request to the coordinator of a key, repeatedly as long as it is refused only for the moment."""
        deadline = Deadline(SystemClock(), timeout_ms)
        while True:
            try:
                node = self._coordinator(key, kind, deadline)
                return read(self._connection.ask_broker(request, node, deadline.remaining_ms()))
            except (*UNANSWERED, *_NOT_YET) as error:
                if not isinstance(error, errors.ConcurrentTransactionsError):
                    self._nodes.pop((key, kind), None)
                if isinstance(error, UNANSWERED) or deadline.expired():
                    raise
                time.sleep(_PAUSE_S)

    def _coordinator(self, key: str, kind: int, deadline: Deadline) -> int:
        known = self._nodes.get((key, kind))
        if known is not None:
            return known
        coordinator = found(self._connection.ask_broker(finding(key, kind), None, deadline.remaining_ms()))
        raise_for(coordinator.error_code, key)
        node: int = coordinator.node_id
        self._nodes[key, kind] = node
        return node


def _check_partitions(response: Any) -> None:
    for topic in response.results_by_topic_v3_and_below:
        for partition in topic.results_by_partition:
            raise_for(partition.partition_error_code, f"{topic.name}-{partition.partition_index}")
