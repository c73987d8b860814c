"""kafka-python's group coordinator, driven by a loop that never waits for it.

Without these changes, kafka-python discards a finished join if no caller was waiting for it at that moment, sends no
heartbeats between the end of a join and the poll that reads it, does not report that a membership was lost during a
join or that a static member was replaced, and waits for minutes for a frozen coordinator. The overrides below change
only that. Some of the names are private: kafka-python is pinned to a narrow range of versions, and tests with a real
broker notice if their meaning changes.
"""

# pyright knows an older kafka-python by heart.
# pyright: reportAttributeAccessIssue=false, reportAssignmentType=false
# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.errors import FencedInstanceIdError, KafkaConnectionError, KafkaError, RebalanceInProgressError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.protocol.metadata import CoordinatorType

from pystreams.broker.kafka.any_broker import ask_any_broker, finding, found
from pystreams.broker.port import Assign, MemberAssignment, MemberInfo
from pystreams.clock import Deadline, SystemClock
from pystreams.ids import TopicPartition

#: The version of the subscription's format with a field for the generation of the claims.
_SUBSCRIPTION_VERSION = 2
_ASSIGNMENT_VERSION = 1
#: While a join is not answered, the interval of looking whether another broker has become the coordinator.
_JOIN_LOOK_S = 5.0


class _Unread:
    """A finished join in the shape of a running one, so that it is read instead of started again."""

    is_done = False

    def __init__(self, finished: Any) -> None:
        self._finished = finished

    def add_callback(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._finished.add_callback(function, *args, **kwargs)

    def add_errback(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._finished.add_errback(function, *args, **kwargs)


class StreamsCoordinator(ConsumerCoordinator):  # type: ignore[misc]
    """``on_loss`` is called, from the thread that notices, when the member loses its generation."""

    _join_task: Any

    def __init__(self, client: Any, subscription: Any, on_loss: Callable[[], None], **configs: Any) -> None:
        self._unread = False
        #: Counts the beginnings and ends of joins.
        self._joins = 0
        #: Whether another process has taken the place of this static member.
        self.fenced = False
        #: When the last request was sent whose answer has confirmed the membership.
        self._confirmed_ms = 0.0
        self._on_loss = on_loss
        super().__init__(client, subscription, metrics=None, enable_auto_commit=False, **configs)

    @property
    def joining(self) -> bool:
        """True from the sending of a JoinGroup until its result is read."""
        return self._join_task is not None

    @property
    def doubtful(self) -> bool:
        """Whether no answer has confirmed the membership for a whole session: the process may have been frozen or cut
        off for so long that it was removed. During a join this is not doubtful, because the coordinator waits for the
        member."""
        age_ms = SystemClock().monotonic_ms() - self._confirmed_ms
        return not self.joining and age_ms > self.config["session_timeout_ms"]

    async def _do_join_and_sync_async(self) -> Any:
        self._unread = False
        self._joins += 1
        self._manager.call_soon(self._watch_join, self._joins)
        try:
            assignment = await super()._do_join_and_sync_async()
        finally:
            self._joins += 1
        self._confirmed_ms = SystemClock().monotonic_ms()
        # From here on only heartbeats keep the membership, until a poll reads the assignment.
        self._unread = True
        self._enable_heartbeat()
        return assignment

    async def _watch_join(self, number: int) -> None:
        """Give up a join if another broker has become the coordinator, so that it is repeated there. A coordinator may
        hold back the answer to a join for minutes, until all members have joined, but a frozen one never answers."""
        coordinator = self.coordinator_id
        while True:
            await self._net.sleep(_JOIN_LOOK_S)
            if self._joins != number:
                return
            try:
                now = found(await self._find_coordinator())
            except KafkaError:
                continue
            if now.error_code or self._joins != number or f"coordinator-{now.node_id}" == coordinator:
                continue
            moved = KafkaConnectionError("another broker coordinates the group")
            self.coordinator_dead(moved)
            connection = self._manager._conns.get(coordinator)
            if connection is not None:
                connection.close(moved)
            return

    async def _send_group_coordinator_request(self) -> Any:
        return self._handle_find_coordinator_response(await self._find_coordinator())

    async def _find_coordinator(self) -> Any:
        deadline = Deadline(SystemClock(), self.config["request_timeout_ms"])
        return await ask_any_broker(self._manager, finding(self.group_id, CoordinatorType.GROUP), deadline)

    def stable(self) -> bool:
        """Called only by the heartbeat loop."""
        return bool(super().stable()) or self._unread

    def _handle_heartbeat_response(self, response: Any, send_time: float) -> None:
        try:
            super()._handle_heartbeat_response(response, send_time)
        except RebalanceInProgressError:
            self._confirmed_ms = 1000 * send_time
            raise
        except FencedInstanceIdError:
            self.fenced = True
            raise
        self._confirmed_ms = 1000 * send_time

    def heartbeat_soon(self) -> None:
        """Send a heartbeat as soon as a failed one would be repeated. Its answer shows whether the group rebalances."""
        self.heartbeat.fail_heartbeat()
        self._heartbeat_wakeup.notify()

    def reset_generation(self, *args: Any, **kwargs: Any) -> None:
        was_member = self._generation.generation_id >= 0
        super().reset_generation(*args, **kwargs)
        self.rejoining = self._unread = False
        if was_member:
            self._on_loss()

    async def join_group_async(self, timeout_ms: float | None = None) -> bool:
        task = self._join_task
        if task is not None and task.is_done:
            # A successful join that is no longer unread was followed by a loss, so it does not count.
            self._join_task = None if task.succeeded() and not self._unread else _Unread(task)
        try:
            return bool(await super().join_group_async(timeout_ms))
        finally:
            if self._join_task is None:
                self._unread = False

    def need_rejoin(self) -> bool:
        """True also during a join, so that a join that was started because of changed metadata is read, too."""
        return self._join_task is not None or bool(super().need_rejoin())


class PortAssignor(AbstractPartitionAssignor):  # type: ignore[misc]
    """Adapts ``port.Assign`` to kafka-python's protocol. Called on the connection's own thread."""

    name = "pystreams"
    version = _SUBSCRIPTION_VERSION

    def __init__(
        self,
        assign: Assign,
        subscription: Callable[[], tuple[bytes, frozenset[TopicPartition], int]],
        assigned: Callable[[tuple[TopicPartition, ...], bytes, int], None],
    ) -> None:
        """``subscription`` returns user data, claims and the claims' generation; ``assigned`` receives an
        assignment."""
        self._assign = assign
        self._subscription = subscription
        self._assigned = assigned

    def supported_protocols(self) -> list[RebalanceProtocol]:
        return [RebalanceProtocol.COOPERATIVE]

    def metadata(self, topics: set[str]) -> ConsumerProtocolSubscription:
        user_data, claims, generation = self._subscription()
        return ConsumerProtocolSubscription(
            version=_SUBSCRIPTION_VERSION,
            topics=sorted(topics),
            user_data=user_data,
            owned_partitions=grouped(claims),
            generation_id=generation,
        )

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, ConsumerProtocolAssignment]:
        claims = {
            member.member_id: (member.metadata.generation_id, _flat(member.metadata.owned_partitions))
            for member in members
        }
        owned = owners(claims)
        infos = [
            MemberInfo(member.member_id, bytes(member.metadata.user_data or b""), owned[member.member_id])
            for member in sorted(members, key=lambda member: str(member.member_id))
        ]
        given = withhold(self._assign(infos), {member_id: held for member_id, (_, held) in claims.items()})
        nothing = MemberAssignment((), b"")
        return {
            member_id: ConsumerProtocolAssignment(
                version=_ASSIGNMENT_VERSION,
                assigned_partitions=grouped(given.get(member_id, nothing).partitions),
                user_data=given.get(member_id, nothing).user_data,
            )
            for member_id in claims
        }

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        partitions = tuple(sorted(TopicPartition(topic, number) for topic, number in assignment.partitions()))
        self._assigned(partitions, bytes(assignment.user_data or b""), generation)


def owners(
    claims: Mapping[str, tuple[int, frozenset[TopicPartition]]],
) -> dict[str, frozenset[TopicPartition]]:
    """The partitions that each member really holds: if two members claim one, the claim of the later generation
    counts."""
    latest: dict[TopicPartition, tuple[int, str]] = {}
    for member_id, (generation, held) in sorted(claims.items()):
        for partition in held:
            latest[partition] = max(latest.get(partition, (-2, "")), (generation, member_id))
    return {
        member_id: frozenset(partition for partition in held if latest[partition][1] == member_id)
        for member_id, (_, held) in claims.items()
    }


def withhold(
    targets: Mapping[str, MemberAssignment], claims: Mapping[str, frozenset[TopicPartition]]
) -> dict[str, MemberAssignment]:
    """The assignments without partitions that others still claim. They are assigned when the holder has released
    them."""
    claimants: dict[TopicPartition, set[str]] = {}
    for member_id, held in claims.items():
        for partition in held:
            claimants.setdefault(partition, set()).add(member_id)
    return {
        member_id: MemberAssignment(
            tuple(p for p in target.partitions if claimants.get(p, set()) <= {member_id}), target.user_data
        )
        for member_id, target in targets.items()
    }


def grouped(partitions: Sequence[TopicPartition] | frozenset[TopicPartition]) -> list[tuple[str, list[int]]]:
    """The partitions by topic, as the group's protocol sends them."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return list(topics.items())


def _flat(topics: Any) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic.topic, number) for topic in topics for number in topic.partitions)
