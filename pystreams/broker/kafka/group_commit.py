"""Commits offsets of a group without members, together with records, in one transaction.

Without a member id, the broker accepts offsets in a transaction even if the group has members. So the members are
checked here, when only the last step is left. It uses kafka-python's producer: confluent-kafka would append a NUL to
the offsets' metadata, and a second commit that removes it would be missing if the process is killed in between.
"""

# pyright knows an older kafka-python by heart.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from kafka import KafkaProducer as Client
from kafka import errors
from kafka.producer.transaction_manager import AddPartitionsToTxnHandler
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata
from kafka.structs import TopicPartition as Location

from pystreams.broker.kafka.group_failures import ACL_HINT, refused
from pystreams.broker.kafka.transactions import superseded
from pystreams.broker.port import CommittedOffset, Write, has_members
from pystreams.errors import BrokerError, BrokerUnavailableError, StreamsError
from pystreams.ids import TopicPartition

log = logging.getLogger(__name__)

#: An open transaction of a killed committer delays readers for this time, unless another one takes over its id.
TRANSACTION_TIMEOUT_MS: Final = 60_000
_TIMEOUT_MS: Final = 30_000
_CLOSE_TIMEOUT_S: Final = 5.0

_FENCED: Final = (errors.ProducerFencedError, errors.InvalidProducerEpochError)


#: The coordinator writes the offsets of a request as one batch, whose limit is the record size of
#: ``__consumer_offsets`` (1 MiB). Keys and values need some 150 bytes in addition to names and metadata.
_REQUEST_BYTES: Final = 500_000
_OFFSET_BYTES: Final = 300


class Members(Protocol):
    """The methods of an admin that a committer uses."""

    def group_members(self, group: str) -> list[str]: ...


class KafkaGroupCommitter:
    """See ``port.GroupCommitter``."""

    def __init__(
        self, settings: Mapping[str, Any], group: str, transactional_id: str, admin: Members, where: str
    ) -> None:
        """``settings`` are kafka-python's. Raises ``BrokerUnavailableError``, ``BrokerError``."""
        self._group = group
        self._id = transactional_id
        self._admin = admin
        self._where = f"{where}, transactional.id {transactional_id}"
        own = {name: value for name, value in settings.items() if name in Client.DEFAULT_CONFIG}
        try:
            self._client = Client(
                **own,
                transactional_id=transactional_id,
                transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
                max_block_ms=_TIMEOUT_MS,
                allow_auto_create_topics=False,
                metrics_enabled=False,
            )
        except errors.KafkaError as error:
            raise self._failed(error) from None
        try:
            self._client.init_transactions()
        except errors.KafkaError as error:
            self._client.close(_CLOSE_TIMEOUT_S)
            raise self._failed(error) from None

    def probe(self, partitions: Collection[TopicPartition]) -> None:
        """Check with a transaction without records, which is aborted. If it raises, the committer cannot be used
        again."""
        manager = self._client._transaction_manager
        try:
            self._client.begin_transaction()
            if partitions:
                added = AddPartitionsToTxnHandler(manager, {Location(*partition) for partition in partitions})
                manager._enqueue_request(added)
                self._wait(added.result)
            self._wait(manager.send_offsets_to_transaction({}, ConsumerGroupMetadata(group_id=self._group)))
            self._wait(manager.begin_abort())
        except errors.TopicAuthorizationFailedError as error:
            raise BrokerError(
                "The result of a backfill cannot be written",
                where=self._where,
                why=f"{type(error).__name__}: {error}",
                hint=f"WRITE on the topic; {ACL_HINT}",
            ) from None
        except errors.KafkaError as error:
            raise self._failed(error) from None

    def commit(self, records: Sequence[Write], offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """If it raises anything but that the group has members, the committer cannot be used again."""
        manager = self._client._transaction_manager
        try:
            self._client.begin_transaction()
            # Wait for each record: after a failed one, the client reports the others only as failed, too.
            for record in records:
                self._send(record).get(_TIMEOUT_MS / 1000)
            group = ConsumerGroupMetadata(group_id=self._group)
            for request in _requests(offsets):
                self._wait(manager.send_offsets_to_transaction(request, group))
            members = self._admin.group_members(self._group)
            self._wait(manager.begin_abort() if members else manager.begin_commit())
        except errors.KafkaError as error:
            raise self._failed(error) from None
        if members:
            raise has_members(self._group, members, self._where)

    def close(self) -> None:
        """Abort a failed transaction if the brokers can be reached; otherwise it ends by its timeout."""
        manager = self._client._transaction_manager
        try:
            if manager.has_abortable_error():
                self._wait(manager.begin_abort())
        except errors.KafkaError as error:
            log.debug("%s: the transaction ends by its timeout: %s", self._where, error)
        finally:
            self._client.close(_CLOSE_TIMEOUT_S)

    def _send(self, record: Write) -> Any:
        return self._client.send(
            record.topic,
            value=record.value,
            key=record.key,
            partition=record.partition,
            timestamp_ms=record.timestamp,
        )

    def _wait(self, result: Any) -> None:
        """Wait with a timeout, which the client's own methods do not have."""
        self._client._sender.wakeup()
        if not result.wait(_TIMEOUT_MS):
            raise errors.KafkaTimeoutError(f"no answer within {_TIMEOUT_MS / 1000:g} s")

    def _failed(self, error: errors.KafkaError) -> StreamsError:
        what = "Offsets and records cannot be committed together"
        if isinstance(error, _FENCED):
            return superseded(self._id, self._where, f"{type(error).__name__}: {error}")
        if getattr(error, "retriable", False):
            return BrokerUnavailableError(what, where=self._where, why=f"{type(error).__name__}: {error}")
        return refused(error, what, self._where)


def _requests(
    offsets: Mapping[TopicPartition, CommittedOffset],
) -> Iterator[dict[Location, OffsetAndMetadata]]:
    """The offsets, in parts that are small enough for the coordinator."""
    request: dict[Location, OffsetAndMetadata] = {}
    size = 0
    for partition, at in offsets.items():
        request[Location(*partition)] = OffsetAndMetadata(at.offset, at.metadata, -1)
        size += _OFFSET_BYTES + len(partition.topic) + len(at.metadata)
        if size >= _REQUEST_BYTES:
            yield request
            request, size = {}, 0
    if request:
        yield request
