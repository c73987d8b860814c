"""Ends transactions that hang: they are over for their coordinator, but not in all of their partitions.

When a transaction is over, its coordinator has a marker written to each of its partitions. If a partition has no leader
at that moment, the coordinator (seen with Kafka 4.3) treats it as deleted, and writes no marker to it. So if the only
broker with a partition is killed just after a commit, the partition may never get its marker: the group's offsets stay
unstable, and readers of committed records are blocked. Worse, the producer's next transaction would include these
records, and lose them if it is aborted. (Java: ``TransactionMarkerChannelManager``, to which a partition without a
leader has no endpoint.)

The partition shows that a producer's transaction is open there, and the coordinator knows its outcome. The remedy is
an empty transaction of the same transactional id in these partitions, with the same outcome: its markers end both.
Source: KIP-664, for the request that asks a partition.

A hanging transaction is not found if its successor had begun before the broker was killed, and is in the same
partitions.
"""

# pyright knows an older kafka-python by heart.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from kafka import errors
from kafka.protocol.admin import DescribeProducersRequest
from kafka.protocol.metadata import MetadataRequest

from pystreams.broker.kafka.coordination import by_topic, raise_for
from pystreams.broker.kafka.transaction_coordination import (
    COMMITTED,
    NOTHING,
    ONGOING,
    OVER,
    REQUEST_TIMEOUT_MS,
    ProducerId,
    TransactionConnection,
)
from pystreams.broker.port import TransactionContent
from pystreams.clock import Deadline, SystemClock
from pystreams.ids import TopicPartition
from pystreams.nearest import listing

log = logging.getLogger(__name__)

_OFFSETS_TOPIC: Final = "__consumer_offsets"


@dataclass(slots=True)
class _Found:
    """Partitions by the state of a producer that their leaders report."""

    open: set[TopicPartition] = field(default_factory=set)
    #: Partitions that the login may not see; a transaction may be open there, too.
    hidden: set[TopicPartition] = field(default_factory=set)


class HangingTransactions:
    """The hanging transactions of one transactional id. The methods raise kafka-python's errors; afterwards they may be
    called again."""

    def __init__(
        self, transactional_id: str, transaction_timeout_ms: int, content: TransactionContent, where: str
    ) -> None:
        self._id = transactional_id
        self._timeout_ms = transaction_timeout_ms
        self._content = content
        self._where = where
        #: The outcome of a transaction of a producer id that may still hang, although the coordinator has forgotten it.
        self._outcome: tuple[int, bool] | None = None
        #: The producer id that may have an empty transaction open.
        self._empty: ProducerId | None = None

    def end(self, connection: TransactionConnection) -> None:
        """Abort the last transaction if it is ongoing, wait until it is over, and then end it in each partition where
        it still hangs. Both the abort and the end fence the producer that has the transactional id."""
        deadline = Deadline(SystemClock(), REQUEST_TIMEOUT_MS)
        look_at_hidden = True
        while (over := self._wait_for_end(connection)) is not None:
            producer, committed = over
            found = self._ask_leaders(connection, producer, REQUEST_TIMEOUT_MS)
            if not found.open and not (look_at_hidden and found.hidden):
                break
            if deadline.expired():
                raise errors.KafkaTimeoutError(
                    f"a transaction still hangs in {listing(map(str, found.open))}"
                )
            if not self._end(connection, producer, found, committed=committed):
                break
            look_at_hidden = False
        self._outcome = self._empty = None

    def hang(self, connection: TransactionConnection, producer: ProducerId, timeout_ms: float) -> bool:
        """Whether the last transaction is still open in a partition, for a producer without a present transaction.
        Changes nothing."""
        last = connection.last_transaction(self._id, timeout_ms)
        if last.producer != producer or last.state in NOTHING:
            return False
        if last.state not in OVER:
            raise errors.ConcurrentTransactionsError(f"{self._id}: {last.state}")
        found = self._ask_leaders(connection, producer, timeout_ms)
        return bool(found.open or found.hidden)

    def _wait_for_end(self, connection: TransactionConnection) -> tuple[ProducerId, bool] | None:
        """The last transaction's producer, and whether it was committed; None if it cannot hang."""
        try:
            last = connection.last_transaction(self._id)
            if self._empty is not None and last == (self._empty, ONGOING) and self._outcome is not None:
                connection.end(self._empty, committed=self._outcome[1])
            last = connection.wait_for_end(self._id, self._timeout_ms)
        except errors.TransactionalIdNotFoundError:
            return None
        if last.state in OVER:
            return last.producer, last.state == COMMITTED
        if self._outcome is not None and self._outcome[0] == last.producer.producer_id:
            return last.producer, self._outcome[1]
        return None

    def _end(
        self, connection: TransactionConnection, last: ProducerId, found: _Found, *, committed: bool
    ) -> bool:
        self._outcome = last.producer_id, committed
        producer = connection.take_over(self._id, self._timeout_ms)
        if producer.producer_id != last.producer_id:
            # After 32,767 take-overs the coordinator issues a new producer id, whose markers do not end transactions of
            # the old one.
            self._report_unmended(last, found)
            return False
        self._empty = producer
        for partitions in _in_requests(found):
            with suppress(errors.TopicAuthorizationFailedError):
                connection.add_partitions(producer, partitions)
        if any(partition.topic == _OFFSETS_TOPIC for partition in (*found.open, *found.hidden)):
            connection.announce_offsets(producer, self._content.group)
        with suppress(errors.InvalidTxnStateError):  # if no partition could be added, nothing has begun
            connection.end(producer, committed=committed)
        if found.open:
            log.warning(
                "%s: the last transaction was %s, but a broker had left it open in %s: it is ended there, too",
                self._where,
                "committed" if committed else "aborted",
                listing(map(str, found.open)),
            )
        return True

    def _report_unmended(self, last: ProducerId, found: _Found) -> None:
        for partition in sorted(found.open):
            log.error(
                "%s: a transaction of producer id %d hangs in %s, and cannot be ended from here; an administrator of "
                "the cluster can: kafka-transactions.sh find-hanging and abort, with this topic and partition",
                self._where,
                last.producer_id,
                partition,
            )

    def _ask_leaders(
        self, connection: TransactionConnection, producer: ProducerId, timeout_ms: float
    ) -> _Found:
        """Ask the leaders of all partitions. Raises an error if one of them has no leader."""
        found = _Found()
        for partition, described in _described(connection, self._content, timeout_ms, found):
            if any(active.producer_id == producer.producer_id for active in _with_open(described)):
                found.open.add(partition)
        return found


def producers_with_open(
    connection: TransactionConnection, content: TransactionContent, timeout_ms: float
) -> set[int]:
    """The ids of producers with an open transaction in a partition, of the partitions that the login may see. Raises an
    error if a partition has no leader."""
    described = _described(connection, content, timeout_ms, _Found())
    return {active.producer_id for _, partition in described for active in _with_open(partition)}


def _described(
    connection: TransactionConnection, content: TransactionContent, timeout_ms: float, found: _Found
) -> Iterator[tuple[TopicPartition, Any]]:
    """The producers of all partitions, as their leaders describe them; hidden partitions are added to ``found``."""
    leaders = _leaders(connection, {*content.topics, _OFFSETS_TOPIC}, timeout_ms, found)
    for node, partitions in leaders.items():
        topic = DescribeProducersRequest.TopicRequest
        request = DescribeProducersRequest(
            topics=[
                topic(name=name, partition_indexes=numbers) for name, numbers in by_topic(partitions).items()
            ]
        )
        for described in connection.ask_broker(request, node, timeout_ms).topics:
            for one in described.partitions:
                partition = TopicPartition(described.name, one.partition_index)
                if one.error_code == errors.TopicAuthorizationFailedError.errno:
                    found.hidden.add(partition)
                    continue
                if one.error_code == errors.UnknownTopicOrPartitionError.errno:
                    raise _not_ready(str(partition))
                raise_for(one.error_code, str(partition))
                yield partition, one


def _with_open(described: Any) -> list[Any]:
    return [active for active in described.active_producers if active.current_txn_start_offset >= 0]


def _leaders(
    connection: TransactionConnection, topics: Collection[str], timeout_ms: float, found: _Found
) -> dict[int, list[TopicPartition]]:
    """The partitions of topics by the node ids of their leaders. Topics that do not exist are left out."""
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in sorted(topics)],
        allow_auto_topic_creation=False,
        min_version=4,
    )
    leaders: dict[int, list[TopicPartition]] = defaultdict(list)
    for topic in connection.ask_broker(request, None, timeout_ms).topics:
        if topic.error_code == errors.UnknownTopicOrPartitionError.errno:
            if topic.name == _OFFSETS_TOPIC:
                raise _not_ready(topic.name)  # every transaction has offsets
            continue
        if topic.error_code == errors.TopicAuthorizationFailedError.errno:
            # The number of partitions is not known; for the group's offsets it does not matter.
            if topic.name == _OFFSETS_TOPIC:
                found.hidden.add(TopicPartition(_OFFSETS_TOPIC, 0))
            continue
        raise_for(topic.error_code, topic.name)
        for partition in topic.partitions:
            raise_for(partition.error_code, f"{topic.name}-{partition.partition_index}")
            leaders[partition.leader_id].append(TopicPartition(topic.name, partition.partition_index))
    return leaders


def _not_ready(what: str) -> errors.KafkaError:
    """The error for a broker that does not know a topic yet, because it is starting."""
    return errors.LeaderNotAvailableError(what)


def _in_requests(found: _Found) -> list[list[TopicPartition]]:
    """The partitions with records, in as few requests as possible: one for all partitions that the login certainly may
    write, and one for each other topic."""
    requests = [sorted(partition for partition in found.open if partition.topic != _OFFSETS_TOPIC)]
    hidden = by_topic([partition for partition in found.hidden if partition.topic != _OFFSETS_TOPIC])
    requests += [[TopicPartition(name, number) for number in numbers] for name, numbers in hidden.items()]
    return [request for request in requests if request]
