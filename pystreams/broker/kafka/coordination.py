"""Requests to a group's coordinator, over kafka-python's connections.

They use the *ordinary* connection to the coordinator's broker: on the connection that kafka-python uses for the
membership protocol, a pending JoinGroup would block them. Offset metadata is only handled by kafka-python, because
confluent-kafka appends a NUL to it and reads past its end.
"""

# pyright knows an older kafka-python by heart.
# pyright: reportAttributeAccessIssue=false, reportAssignmentType=false
from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final, TypeVar

from kafka import errors
from kafka.net.compat import KafkaNetClient
from kafka.protocol.admin import DeleteGroupsRequest
from kafka.protocol.consumer import (
    HeartbeatRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from kafka.protocol.metadata import CoordinatorType

from pystreams.broker.kafka.any_broker import ask_any_broker, finding, found
from pystreams.broker.kafka.cluster_clock import ask_clock_ms
from pystreams.broker.kafka.settings import CONNECT_TIMEOUT_S, KafkaSettings
from pystreams.broker.kafka.sockets import CLOSED_IF_NOT_CONNECTED
from pystreams.broker.port import CommittedOffset
from pystreams.clock import Deadline, SystemClock
from pystreams.config.client_setting import Role
from pystreams.errors import BrokerUnavailableError
from pystreams.ids import TopicPartition

log = logging.getLogger(__name__)

# kafka-python logs each attempt to reach a broker three times, as errors. Users who want that can set the level before.
if logging.getLogger("kafka").level == logging.NOTSET:
    logging.getLogger("kafka").setLevel(logging.CRITICAL)

T = TypeVar("T")

_RETRY_PAUSE_S: Final = 0.05
#: A coordinator that has not answered for this time may be frozen: it is looked up again, if the request may be
#: repeated.
_SILENCE_MS: Final = 3_000.0

#: Another broker is the coordinator, or it is not ready: find it and try again.
MOVED: Final = (
    errors.CoordinatorNotAvailableError,
    errors.NotCoordinatorError,
    errors.CoordinatorLoadInProgressError,
    errors.RequestTimedOutError,
    errors.KafkaConnectionError,
    errors.NodeNotReadyError,
    errors.UnstableOffsetCommitError,
    errors.UnknownBrokerIdError,
)

#: The request may have been carried out, or may still be.
UNANSWERED: Final = (errors.RequestTimedOutError, errors.KafkaConnectionError, errors.KafkaTimeoutError)


class GroupConnection:
    """A client for one group's coordinator, for members and others. Threads may share it."""

    def __init__(
        self, settings: KafkaSettings, client_id: str, group: str, role: Role = "main.consumer"
    ) -> None:
        """``role`` names the client whose login is used. Raises ``BrokerUnavailableError``."""
        self.group = group
        self._where = f"group {group}, {settings.description}"
        self._node: int | None = None
        self._closed = False
        client_settings = settings.membership(client_id, role)
        self.client = KafkaNetClient(**client_settings, proxy_url=CLOSED_IF_NOT_CONNECTED)
        self._manager = self.client._manager
        self._net = self._manager._net
        self._net.start()
        try:
            self._manager.bootstrap(1000 * CONNECT_TIMEOUT_S)
        except errors.KafkaError as error:
            self.close()
            raise self._unavailable(error) from None

    @property
    def broker_version(self) -> tuple[int, ...]:
        version: tuple[int, ...] = self._manager.broker_version
        return version

    def cluster_clock_ms(self, timeout_ms: float) -> int | None:
        """See ``KafkaAdmin.clock_ms``. Raises kafka-python's errors."""
        return self.run(ask_clock_ms, self._manager, Deadline(SystemClock(), timeout_ms))

    def close(self) -> None:
        """Close the connections. Requests that were not sent yet are dropped."""
        if self._closed:
            return
        self._closed = True
        try:
            # Runs on the connections' own thread, so that none is opened at the same time.
            self.run(self._close_connections)
        finally:
            self.client.close()

    async def _close_connections(self) -> None:
        for connection in list(self._manager._conns.values()):
            # Without an error, close would wait until everything is sent, which no longer happens.
            connection.close(errors.KafkaConnectionError("the client is closed"))
        self._manager.close()

    def run(self, coroutine: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """Run a coroutine on the connection's own thread, and wait for its end."""
        result: T = self._net.run(coroutine, *arguments)
        return result

    def committed(
        self, partitions: Collection[TopicPartition] | None, timeout_ms: float, *, stable: bool = True
    ) -> dict[TopicPartition, CommittedOffset]:
        """The committed offsets (None: of all partitions); see ``Admin.group_offsets`` for ``stable``. Raises
        ``BrokerUnavailableError``, ``BrokerError``. Source: KIP-447."""
        topics = None if partitions is None else by_topic(partitions)
        groups_topic = OffsetFetchRequest.OffsetFetchRequestGroup.OffsetFetchRequestTopics
        single_topic = OffsetFetchRequest.OffsetFetchRequestTopic
        request = OffsetFetchRequest(
            group_id=self.group,
            topics=None
            if topics is None
            else [single_topic(name=name, partition_indexes=numbers) for name, numbers in topics.items()],
            groups=[
                OffsetFetchRequest.OffsetFetchRequestGroup(
                    group_id=self.group,
                    topics=None
                    if topics is None
                    else [
                        groups_topic(name=name, partition_indexes=numbers) for name, numbers in topics.items()
                    ],
                )
            ],
            require_stable=stable,
            min_version=2,
            max_version=8,
        )
        return self.ask(request, _fetched, timeout_ms)

    def commit(
        self,
        offsets: Mapping[TopicPartition, CommittedOffset],
        generation: int,
        member_id: str,
        timeout_ms: float,
        instance_id: str | None = None,
        *,
        once: bool = False,
        by_epoch: bool = False,
    ) -> None:
        """Commit as a member (or without a member: -1 and ``""``). Raises kafka-python's fencing errors unchanged.

        ``once``: a request that may have been carried out is not sent again; then an error of ``UNANSWERED`` is raised.
        ``by_epoch``: ``generation`` is the epoch of a member to which the broker assigns tasks.
        """
        topic = OffsetCommitRequest.OffsetCommitRequestTopic
        partition = topic.OffsetCommitRequestPartition
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
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
            max_version=9 if by_epoch else 8,
        )
        self.ask(request, check_commit, timeout_ms, once=once)

    def heartbeat(
        self, generation: int, member_id: str, timeout_ms: float, instance_id: str | None = None
    ) -> None:
        """Send a heartbeat of a member. Raises kafka-python's fencing errors unchanged."""
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
        )
        self.ask(request, lambda response: raise_for(response.error_code), timeout_ms)

    def leave(
        self,
        member_id: str,
        timeout_ms: float,
        instance_id: str | None = None,
        reason: str = "the member was closed",
    ) -> None:
        """Remove a member from the group. It may already have been removed. Raises ``FencedInstanceIdError`` if another
        process has taken the place of a static member."""
        identity = LeaveGroupRequest.MemberIdentity(
            member_id=member_id, group_instance_id=instance_id, reason=reason
        )
        request = LeaveGroupRequest(group_id=self.group, member_id=member_id, members=[identity])
        self.ask(request, _check_leave, timeout_ms)

    def delete(self, timeout_ms: float) -> None:
        """Delete the group with its offsets. It may have been deleted already. Raises ``NonEmptyGroupError`` if it has
        members, and kafka-python's other errors."""
        self.ask(DeleteGroupsRequest(groups_names=[self.group]), _check_deleted, timeout_ms)

    def ask(self, request: Any, read: Callable[[Any], T], timeout_ms: float, *, once: bool = False) -> T:
        """Send a request to the current coordinator until it answers. ``read`` raises the error in an answer.

        Raises ``BrokerUnavailableError`` if there is no answer in time. ``once``: raises an error of ``UNANSWERED``
        instead of sending a request again that may have been carried out.
        """
        result: T = self.run(self._ask, request, read, Deadline(SystemClock(), timeout_ms), once)
        return result

    def ask_broker(self, request: Any, node: int | None, timeout_ms: float) -> Any:
        """Send a request to one broker, once, or (None) to any that answers. Raises kafka-python's errors unchanged."""
        deadline = Deadline(SystemClock(), timeout_ms)
        if node is None:
            return self.run(ask_any_broker, self._manager, request, deadline)
        return self.run(self._send, request, node, deadline.remaining_ms())

    async def _ask(self, request: Any, read: Callable[[Any], T], deadline: Deadline, once: bool) -> T:
        while True:
            asked = False
            try:
                if self._node is None:
                    self._node = await self._find(deadline)
                asked = once
                remaining_ms = deadline.remaining_ms()
                wait_ms = remaining_ms if once else min(_SILENCE_MS, remaining_ms)
                return read(await self._send(request, self._node, wait_ms))
            except (*UNANSWERED, *MOVED) as error:
                self._node = None
                if asked and isinstance(error, UNANSWERED):
                    raise
                if deadline.expired():
                    raise self._unavailable(error) from None
                await self._net.sleep(_RETRY_PAUSE_S)

    async def _find(self, deadline: Deadline) -> int:
        request = finding(self.group, CoordinatorType.GROUP)
        coordinator = found(await ask_any_broker(self._manager, request, deadline))
        raise_for(coordinator.error_code, self.group)
        node_id: int = coordinator.node_id
        return node_id

    async def _send(self, request: Any, node: int, timeout_ms: float) -> Any:
        return await self._manager.wait_for(self._manager.send(request, node_id=node), max(1.0, timeout_ms))

    def _unavailable(self, error: BaseException) -> BrokerUnavailableError:
        return BrokerUnavailableError(
            "The coordinator of the group does not answer",
            where=self._where,
            why=f"{type(error).__name__}: {error}",
            hint="is the broker reachable, and the login right?",
        )


def by_topic(partitions: Collection[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of the partitions of each topic, as requests have them."""
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(partitions):
        topics[topic].append(partition)
    return dict(topics)


def _fetched(response: Any) -> dict[TopicPartition, CommittedOffset]:
    answer = response.groups[0] if response.API_VERSION >= 8 else response
    raise_for(answer.error_code)
    found = {}
    for topic in answer.topics:
        for partition in topic.partitions:
            raise_for(partition.error_code)
            if partition.committed_offset >= 0:
                found[TopicPartition(topic.name, partition.partition_index)] = CommittedOffset(
                    # librdkafka appends a NUL, if others commit with it.
                    partition.committed_offset,
                    (partition.metadata or "").rstrip("\0"),
                )
    return found


def check_commit(response: Any) -> None:
    """Raise for the first partition whose offset was not committed."""
    for topic in response.topics:
        for partition in topic.partitions:
            raise_for(partition.error_code, f"{topic.name}-{partition.partition_index}")


def _check_leave(response: Any) -> None:
    for code in (response.error_code, *(member.error_code for member in response.members)):
        if code != errors.UnknownMemberIdError.errno:
            raise_for(code)


def _check_deleted(response: Any) -> None:
    (result,) = response.results
    if result.error_code != errors.GroupIdNotFoundError.errno:
        raise_for(result.error_code)


def raise_for(code: int, what: str = "") -> None:
    """Raise kafka-python's error for a code of the protocol; 0 is none."""
    if code:
        raise errors.for_code(code)(what)
