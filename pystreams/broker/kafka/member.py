"""Membership in a consumer group: kafka-python's protocol, without blocking the caller's thread.

    poll ──► one step of joining ──► Assigned (without partitions that others hold) ──► the thread commits, closes,
    opens claim ──► the claims of the next join ──► if they are fewer than before: join again, so that others get the
    rest

Only ``poll`` sends a join, and it returns an assignment repeatedly until it is claimed: so no partition moves before
its task was committed and closed. Offsets are committed over another connection than the join, with the generation that
the broker knows: the broker accepts them during a join, and refuses them from a replaced member.
"""

# pyright knows an older kafka-python by heart.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from kafka import errors
from kafka.consumer.subscription_state import SubscriptionState

from pystreams.broker.kafka.coordination import UNANSWERED, GroupConnection
from pystreams.broker.kafka.coordinator import PortAssignor, StreamsCoordinator
from pystreams.broker.kafka.group_failures import migrated, refused
from pystreams.broker.kafka.java_members import JavaMembers
from pystreams.broker.kafka.known_topics import KnownTopics
from pystreams.broker.kafka.settings import KafkaSettings
from pystreams.broker.port import Assign, Assigned, CommittedOffset, Lost, MemberEvent
from pystreams.clock import Deadline, SystemClock
from pystreams.errors import (
    BrokerError,
    BrokerUnavailableError,
    DeliveryError,
    StreamsError,
    TaskMigratedError,
)
from pystreams.ids import TopicPartition

log = logging.getLogger(__name__)

_REQUEST_TIMEOUT_MS: Final = 10_000.0
#: The timeout of leaving a group. It is short, because the others do not wait for it.
_LEAVE_TIMEOUT_MS: Final = 2_000.0
#: While a group changes to its next generation, a commit is refused for some milliseconds.
_SETTLING_PAUSE_S: Final = 0.01

_SETTLING: Final = (errors.IllegalGenerationError, errors.RebalanceInProgressError)


class MemberIdentity(NamedTuple):
    """The member as the coordinator knows it."""

    group: str
    generation: int
    member_id: str
    instance_id: str | None


class KafkaMember:
    """See ``port.Member``. A member's methods are called by one thread."""

    def __init__(
        self,
        settings: KafkaSettings,
        client_id: str,
        group: str,
        topics: Collection[str],
        user_data: Callable[[], bytes],
        assign: Assign,
        instance_id: str | None = None,
    ) -> None:
        """With an ``instance_id`` the member is static: after a restart it counts as the same member.

        Raises ``BrokerUnavailableError``, and ``TopicError`` if the brokers do not know a topic.
        """
        self._where = f"group {group}, {settings.description}"
        self._user_data = user_data
        self._instance_id = instance_id
        #: The user data, read by this thread before each join, because the join runs on the connection's thread.
        self._sent_data = b""
        self._claims: frozenset[TopicPartition] = frozenset()
        self._announced: frozenset[TopicPartition] = frozenset()
        #: The generation of the last assignment, kept also after a loss, so that each join has different data. With the
        #: same data as before, a member may stay in its generation, in which late requests are still accepted.
        self._claimed_generation = -1
        self._assigned: Assigned | None = None  # read, but not claimed yet
        self._lost = False
        self._closing = False
        self._trouble: type[errors.KafkaError] | None = None  # the last error that was logged
        self._connection = GroupConnection(settings, client_id, group)
        self._java_members = JavaMembers(self._connection, self._where, settings.session_timeout_ms)
        try:
            self._coordinator = self._make_coordinator(settings, topics, assign)
        except BaseException:
            self._connection.close()
            raise

    @property
    def member_id(self) -> str:
        """Empty before the first join; it changes when the member rejoins after a loss."""
        member_id: str = self._coordinator.group_metadata().member_id
        return member_id

    def poll(self) -> list[MemberEvent]:
        """An assignment is returned again until it is claimed. Also raises errors of the assignor."""
        if self._coordinator.fenced:
            raise self._fenced()
        if not self._lost and self._assigned is None:
            self._step()
        if self._lost:
            return [self._lose()]
        if self._assigned is not None:
            self.keep_alive()
            return [self._assigned]
        return []

    def claim(self, partitions: Collection[TopicPartition]) -> None:
        """Raises ``BrokerError`` for a partition that was never in an ``Assigned``. Has no effect after a loss."""
        claimed = frozenset(partitions)
        given = self._claims.union(self._assigned.partitions if self._assigned is not None else ())
        if not claimed <= given:
            raise BrokerError(
                "A member cannot claim partitions that were not assigned to it",
                where=f"{self._where}, member {self.member_id}: {sorted(claimed - given)}",
            )
        self._claims = claimed
        self._assigned = None
        if self._announced - claimed:
            self._coordinator.request_rejoin()

    def can_commit(self) -> bool:
        """Whether offsets can be committed, which is also possible during a join."""
        return not self._lost and self._coordinator.group_metadata().generation_id >= 0

    def confirm(self) -> None:
        """Ask the coordinator if it has not confirmed the membership for a whole session: if the process was frozen for
        longer, other members have its tasks, and its writes would be obsolete."""
        if not self._coordinator.doubtful:
            return
        identity = self.identity()
        try:
            self._connection.heartbeat(
                identity.generation, identity.member_id, _REQUEST_TIMEOUT_MS, self._instance_id
            )
        except errors.RebalanceInProgressError:
            pass  # The group waits for its join, so it is a member.
        except errors.IllegalGenerationError as error:
            raise self._removed(identity.member_id, str(error)) from None
        except errors.UnknownMemberIdError as error:
            raise self._removed("", str(error)) from None
        except errors.FencedInstanceIdError:
            raise self._fenced() from None
        except errors.KafkaError as error:
            raise refused(error, "The membership cannot be confirmed", self._where) from None

    @property
    def joining(self) -> bool:
        """True from the sending of a join until its result is read: the generation may end at any moment."""
        return self._coordinator.joining

    def identity(self) -> MemberIdentity:
        """The identity for a commit by other means. Raises ``TaskMigratedError`` if it is not a member any more."""
        # Read the generation first: if it belongs to a new membership, the loss of the old one is recorded by then.
        identity = self._coordinator.group_metadata()
        if self._lost or identity.generation_id < 0:
            raise migrated("it is not a member any more", self._where)
        return MemberIdentity(
            self._connection.group, identity.generation_id, identity.member_id, self._instance_id
        )

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset], *, strict: bool = False) -> None:
        """Commit as the member that the broker knows. This is the producer's last step.

        ``strict``: a request without an answer may still arrive, and would overwrite later commits. So the member then
        gives up its generation, which makes the coordinator refuse the request.

        Raises ``TaskMigratedError`` if the group has continued without this member, ``BrokerUnavailableError`` if the
        coordinator does not answer or the group does not finish its rebalance in time.
        """
        deadline = Deadline(SystemClock(), _REQUEST_TIMEOUT_MS)
        while True:
            identity = self.identity()
            try:
                self._connection.commit(
                    offsets,
                    identity.generation,
                    identity.member_id,
                    _REQUEST_TIMEOUT_MS,
                    self._instance_id,
                    once=strict,
                )
                return
            except _SETTLING as error:
                if not self.is_between_generations(error):
                    raise self._removed(identity.member_id, str(error)) from None
                if deadline.expired():
                    raise BrokerUnavailableError(
                        "Offsets cannot be committed: the group is rebalancing",
                        where=self._where,
                        why=f"{type(error).__name__} for {_REQUEST_TIMEOUT_MS:g} ms",
                    ) from None
                time.sleep(_SETTLING_PAUSE_S)
            except errors.UnknownMemberIdError as error:
                raise self._removed("", str(error)) from None
            except errors.FencedInstanceIdError:
                raise self._fenced() from None
            except UNANSWERED as error:
                raise self._unanswered(identity.member_id, error) from None
            except errors.KafkaError as error:
                raise refused(error, "Offsets cannot be committed", self._where) from None

    def is_between_generations(self, error: errors.KafkaError) -> bool:
        """Whether a commit was refused with this error only because the group is changing to its next generation. It
        will be accepted some milliseconds later, with the next generation's identity."""
        return isinstance(error, _SETTLING) and self._coordinator.joining

    def refused_commit(self, error: errors.KafkaError) -> StreamsError | None:
        """The error for a transaction whose offsets the group has refused; None if it is not about the membership."""
        match error:
            case errors.FencedInstanceIdError():
                return self._fenced()
            case errors.UnknownMemberIdError():
                return self._removed("", str(error))
            case errors.IllegalGenerationError() | errors.RebalanceInProgressError():
                if self.is_between_generations(error):
                    return DeliveryError(
                        "The offsets of a transaction were refused: the group is between two generations",
                        where=self._where,
                        why=f"{type(error).__name__}: {error}",
                        hint="the work since the last commit is dropped, and done again",
                    )
                return self._removed(self.member_id, str(error))
        return None

    def _removed(self, member_id: str, why: str) -> TaskMigratedError:
        """Give the generation up, and the member id unless it is still valid."""
        if member_id:
            self._coordinator.reset_generation(member_id=member_id)
        else:
            self._coordinator.reset_generation()
        return migrated(why, self._where)

    def _unanswered(self, member_id: str, error: errors.KafkaError) -> TaskMigratedError:
        self._coordinator.reset_generation(member_id=member_id)
        return TaskMigratedError(
            "A commit of offsets was not answered: the member gives its generation up",
            where=self._where,
            why=f"{type(error).__name__}: {error}; the request may still arrive, and must not undo a later commit",
            hint="what the commit came to is read from the group",
        )

    def committed(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset | None]:
        return committed_offsets(self._connection, partitions, self._where)

    def request_rejoin(self) -> None:
        self._coordinator.request_rejoin()

    def look(self) -> None:
        self._coordinator.heartbeat_soon()

    def keep_alive(self) -> None:
        """Signal that the thread is working, as ``poll`` does, without a step of the protocol: during long
        operations."""
        self._coordinator.heartbeat.poll()

    def close(self, *, leave: bool | None = None) -> None:
        leave = self._instance_id is None if leave is None else leave
        if self._closing:
            return
        self._closing = True
        member_id = self.member_id
        try:
            if leave and member_id:
                self._connection.leave(member_id, _LEAVE_TIMEOUT_MS, self._instance_id)
        except (errors.KafkaError, BrokerError) as error:
            log.warning("%s: could not leave the group: %s", self._where, error)
        finally:
            # Without a generation, kafka-python does not try to leave by itself, after a join that may be pending.
            self._coordinator.reset_generation()
            self._coordinator.close()
            self._connection.close()

    def _make_coordinator(
        self, settings: KafkaSettings, topics: Collection[str], assign: Assign
    ) -> StreamsCoordinator:
        connection = self._connection
        self._topics = KnownTopics(connection, topics, self._where)
        subscription = SubscriptionState("earliest")
        subscription.subscribe(topics=sorted(topics))
        return StreamsCoordinator(
            connection.client,
            subscription,
            self._note_loss,
            assignors=[PortAssignor(assign, self._subscription, self._note_assignment)],
            group_id=connection.group,
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            max_poll_interval_ms=settings.max_poll_interval_ms,
            api_version=connection.broker_version,
            group_instance_id=self._instance_id,
            retry_backoff_ms=settings.member_retry_backoff_ms,
        )

    def _step(self) -> None:
        coordinator = self._coordinator
        try:
            if coordinator.generation_if_stable() is None or coordinator.need_rejoin():
                if not self._java_members.may_join():
                    return
                if not coordinator.joining:
                    self._topics.check()
                    self._sent_data = self._user_data()
                # The timeout 0 makes it one step, and never two rounds of a rebalance in one call.
                coordinator.poll(timeout_ms=0)
                if self._assigned is not None:
                    # The leader already knows partitions added during the join, so it would not rejoin because of them.
                    self._topics.check()
                    self._java_members.joined()
            else:
                coordinator.poll_heartbeat()
            self._trouble = None
        except errors.KafkaError as error:
            if isinstance(error, errors.InconsistentGroupProtocolError) and self._java_members.wait():
                return
            if not getattr(error, "retriable", False):
                raise refused(error, "The group refuses this member", self._where) from error
            if self._trouble is not type(error):
                log.warning("%s: %s: %s", self._where, type(error).__name__, error)
            self._trouble = type(error)

    def _lose(self) -> Lost:
        self._claims = self._announced = frozenset()
        self._assigned = None
        # Last, because a join that is in progress must not claim any partition.
        self._lost = False
        return Lost(
            "the coordinator has removed this member: it sent no heartbeat in time, or did not poll in time"
        )

    def _fenced(self) -> BrokerError:
        return BrokerError(
            "Another member has taken the place of this one",
            where=f"{self._where}, group_instance_id {self._instance_id}",
            why="two processes have the same id of a static member, or this member was started again elsewhere",
            hint="give every process its own group_instance_id",
        )

    # Called on the connection's thread: they only record

    def _subscription(self) -> tuple[bytes, frozenset[TopicPartition], int]:
        claims = frozenset() if self._lost else self._claims
        self._announced = claims
        return self._sent_data, claims, self._claimed_generation

    def _note_assignment(
        self, partitions: tuple[TopicPartition, ...], user_data: bytes, generation: int
    ) -> None:
        self._claimed_generation = generation
        self._assigned = Assigned(generation, partitions, user_data)

    def _note_loss(self) -> None:
        if not self._closing:
            self._lost = True


def committed_offsets(
    connection: GroupConnection, partitions: Collection[TopicPartition], where: str
) -> dict[TopicPartition, CommittedOffset | None]:
    """The offsets that a member's group has committed; None for partitions without one. ``where`` names the member in
    errors. Raises ``StreamsError`` if they cannot be read."""
    try:
        found = connection.committed(partitions, _REQUEST_TIMEOUT_MS) if partitions else {}
    except errors.KafkaError as error:
        raise refused(error, "Committed offsets cannot be read", where) from None
    return {partition: found.get(partition) for partition in partitions}
