"""Membership in a group for stream applications: the broker assigns the tasks (KIP-1071).

A separate thread sends the heartbeats. The broker first revokes tasks; when the stream thread has closed them, it
claims the remaining tasks, the next heartbeat reports this, and then the broker gives the revoked tasks to others. So a
member never gets a task that another one still has.

The broker checks the epoch of a commit, but not whether the member has the partitions. So nothing may be committed for
a task whose partitions were given up by ``claim``.
"""

# pyright knows an older kafka-python by heart.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import enum
import logging
import threading
import time
import uuid
from collections.abc import Collection, Mapping
from typing import Any, Final

from kafka import errors

from pystreams.broker.group_application import BrokerAssignment, GroupApplication
from pystreams.broker.kafka import streams_heartbeat as beats
from pystreams.broker.kafka.coordination import UNANSWERED, GroupConnection
from pystreams.broker.kafka.group_failures import migrated, refused
from pystreams.broker.kafka.known_topics import KnownTopics
from pystreams.broker.kafka.member import MemberIdentity, committed_offsets
from pystreams.broker.kafka.settings import CONNECT_TIMEOUT_S, KafkaSettings
from pystreams.broker.kafka.streams_failures import (
    group_cannot_run,
    heartbeat_refused,
    other_version,
    unknown_tasks,
)
from pystreams.broker.kafka.streams_group import list_members
from pystreams.broker.kafka.streams_heartbeat import Answer, HeartbeatRefusedError, Tasks
from pystreams.broker.port import Assigned, CommittedOffset, Lost, MemberEvent
from pystreams.clock import Deadline, SystemClock
from pystreams.errors import BrokerError, BrokerUnavailableError, StreamsError, TaskMigratedError
from pystreams.ids import TopicPartition
from pystreams.transitions import check_transition

log = logging.getLogger(__name__)

_REQUEST_TIMEOUT_MS: Final = 10_000.0
#: The timeout of leaving a group. It is short, because the others do not wait for it.
_LEAVE_TIMEOUT_MS: Final = 2_000.0
#: The interval of heartbeats while an assignment is in progress.
_SOON_MS: Final = 300.0
#: How long a commit with an old epoch waits for the heartbeat that brings the new one.
_EPOCH_TIMEOUT_MS: Final = 2_000.0
_EPOCH_PAUSE_S: Final = 0.01
#: The default of the group's setting ``streams.session.timeout.ms``, which is also the lowest value that brokers allow.
_SESSION_TIMEOUT_MS: Final = 45_000.0
_OTHER_KIND_MARGIN_MS: Final = 5_000.0
#: How often a member requests the owners of partitions. The broker sends an assignment when it changes, but does not
#: report that another member has taken on its tasks.
_PLACES_AGAIN_MS: Final = 5_000.0

#: The member has another epoch, or another member has the partition.
_OTHER_EPOCH: Final = (errors.StaleMemberEpochError, errors.IllegalGenerationError)
#: Reasons why the group assigns no tasks, which are over soon.
_SOON_OVER: Final = frozenset((beats.MISSING_INTERNAL_TOPICS, beats.ASSIGNMENT_DELAYED))


class Standing(enum.Enum):
    """The member as the group knows it."""

    JOINING = "joining"
    MEMBER = "member"
    #: The broker has removed the member, and the stream thread does not know it yet.
    LOST = "lost"
    LEFT = "left"


STANDING_SUCCESSORS: Final = {
    Standing.JOINING: frozenset((Standing.MEMBER, Standing.LEFT)),
    Standing.MEMBER: frozenset((Standing.LOST, Standing.LEFT)),
    Standing.LOST: frozenset((Standing.JOINING, Standing.LEFT)),
    Standing.LEFT: frozenset[Standing](),
}


class StreamsGroupMember:
    """See ``port.Member``. Its methods are called by one thread; its own thread sends the heartbeats."""

    def __init__(
        self, settings: KafkaSettings, client_id: str, group: str, application: GroupApplication
    ) -> None:
        """Raises ``BrokerUnavailableError``, and ``TopicError`` if the brokers do not know a topic."""
        self._where = f"group {group}, {settings.description}"
        self._group = group
        self._application = application
        self._rebalance_timeout_ms = settings.max_poll_interval_ms
        #: How long to wait for members of another kind to go: if they belong to this application, they have the same
        #: session timeout.
        self._other_kind_ms = settings.session_timeout_ms + _OTHER_KIND_MARGIN_MS
        self._connection = GroupConnection(settings, client_id, group)
        self._member_id = str(uuid.uuid4())
        self._mutex = threading.Lock()
        self._standing = Standing.JOINING
        self._epoch = beats.JOIN_EPOCH
        self._interval_ms = _SOON_MS
        #: The tasks that the broker has assigned to this member; None: it has assigned none yet.
        self._target: Tasks | None = None
        #: The tasks that the stream thread got last, and those that it has taken on.
        self._given: Tasks | None = None
        self._claimed = Tasks()
        #: Whether the stream thread has still to take on the target.
        self._due = False
        #: Whether the stream thread is to get the target again when a heartbeat has confirmed it.
        self._again = False
        #: Whether the claimed tasks have still to be sent to the broker.
        self._unreported = True
        #: Whether it must leave before it joins again, because late requests would be accepted in its present epoch.
        self._must_leave = False
        self._endpoint_epoch = beats.NO_ENDPOINTS
        self._places = beats.Places()
        #: When the broker last sent the places.
        self._places_ms = 0.0
        self._shutdown = False
        self._why_lost = ""
        #: The error that ends this membership.
        self._failure: Exception | None = None
        #: The time since when the group has assigned no tasks.
        self._failing_ms: float | None = None
        self._trouble: type[BaseException] | None = None
        now_ms = SystemClock().monotonic_ms()
        #: When the broker last confirmed the membership, and when the stream thread last polled or showed that it
        #: works.
        self._confirmed_ms, self._alive_ms = now_ms, now_ms
        self._wake = threading.Event()
        topics = {partition.topic for inputs in application.inputs.values() for partition in inputs}
        try:
            self._topics = KnownTopics(self._connection, topics, self._where)
        except BaseException:
            self._connection.close()
            raise
        self._thread = threading.Thread(target=self._run, name=f"{client_id}-heartbeat", daemon=True)

    @property
    def member_id(self) -> str:
        """Empty before the first join."""
        return self._member_id if self._standing is not Standing.JOINING else ""

    @property
    def joining(self) -> bool:
        """False: the broker accepts commits while tasks move, because the epoch of a task that stays is still valid."""
        return False

    def poll(self) -> list[MemberEvent]:
        """An assignment is returned again until it is claimed."""
        if self._thread.ident is None:
            self._thread.start()
        self.keep_alive()
        with self._mutex:
            if self._failure is not None:
                raise self._failure
            if self._standing is Standing.LOST:
                self._enter(Standing.JOINING)
                self._wake.set()
                return [Lost(self._why_lost)]
            if self._standing is not Standing.MEMBER or not self._due or self._target is None:
                return []
            target = self._target
            self._topics.check()
            if unknown := target.active - self._application.inputs.keys():
                raise unknown_tasks(unknown, self._where)
            self._given = target
            places = self._places
            assignment = BrokerAssignment(
                target.active,
                target.standbys,
                places.owners,
                places.followers,
                places.endpoints,
                self._shutdown,
            )
            return [Assigned(self._epoch, *self._application.to_member(assignment))]

    def claim(self, partitions: Collection[TopicPartition]) -> None:
        """Raises ``BrokerError`` for a partition that was never in an ``Assigned``. Has no effect after a loss."""
        with self._mutex:
            if self._standing is not Standing.MEMBER or self._given is None:
                return
            inputs, claimed = self._application.inputs, frozenset(partitions)
            given = frozenset(p for task in self._given.active | self._claimed.active for p in inputs[task])
            if not claimed <= given:
                raise BrokerError(
                    "A member cannot claim partitions that were not assigned to it",
                    where=f"{self._where}, member {self._member_id}: {sorted(claimed - given)}",
                )
            active = frozenset(task for task, of_task in inputs.items() if of_task <= claimed)
            self._claimed = Tasks(active, self._given.standbys)
            # The broker may have sent another assignment since the poll.
            self._due = self._target != self._given
            self._unreported = True
        self._wake.set()

    def can_commit(self) -> bool:
        """Whether offsets can be committed."""
        return self._standing is Standing.MEMBER

    def confirm(self) -> None:
        """Ask the broker if it has not confirmed the membership for a whole session: if the process was frozen for
        longer, other members have its tasks, and its writes would be obsolete."""
        if SystemClock().monotonic_ms() - self._confirmed_ms <= _SESSION_TIMEOUT_MS:
            return
        try:
            self._beat()
        except errors.KafkaError as error:
            raise refused(error, "The membership cannot be confirmed", self._where) from None
        self.identity()

    def identity(self) -> MemberIdentity:
        """The identity for a commit by other means. Raises ``TaskMigratedError`` if it is not a member any more."""
        with self._mutex:
            if self._standing is not Standing.MEMBER:
                raise migrated(self._why_lost or "it is not a member any more", self._where)
            return MemberIdentity(self._group, self._epoch, self._member_id, None)

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset], *, strict: bool = False) -> None:
        """Commit with the epoch that the broker knows. ``strict``: a request without an answer may still arrive, and
        would overwrite later commits. So the member then leaves, and joins again.

        Raises ``TaskMigratedError`` if the group has continued without this member, ``BrokerUnavailableError`` if the
        coordinator does not answer.
        """
        deadline = Deadline(SystemClock(), _EPOCH_TIMEOUT_MS)
        while True:
            identity = self.identity()
            try:
                self._connection.commit(
                    offsets,
                    identity.generation,
                    identity.member_id,
                    _REQUEST_TIMEOUT_MS,
                    once=strict,
                    by_epoch=True,
                )
                return
            except _OTHER_EPOCH as error:
                if deadline.expired():
                    raise self._removed(str(error)) from None
                self._wake.set()
                time.sleep(_EPOCH_PAUSE_S)
            except beats.REMOVED as error:
                raise self._removed(str(error)) from None
            except UNANSWERED as error:
                self._leave()
                raise self._removed(
                    f"{type(error).__name__}: {error}; the request may still arrive"
                ) from None
            except errors.KafkaError as error:
                raise refused(error, "Offsets cannot be committed", self._where) from None

    def is_between_generations(self, error: errors.KafkaError) -> bool:
        """Whether a commit was refused with this error only because the next heartbeat brings another epoch."""
        self._wake.set()
        return isinstance(error, _OTHER_EPOCH) and self._standing is Standing.MEMBER

    def refused_commit(self, error: errors.KafkaError) -> StreamsError | None:
        """The error for a transaction whose offsets the group has refused; None if it is not about the membership."""
        if isinstance(error, beats.REMOVED + _OTHER_EPOCH):
            return self._removed(str(error))
        return None

    def committed(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset | None]:
        return committed_offsets(self._connection, partitions, self._where)

    def request_rejoin(self) -> None:
        """Have the stream thread get the present assignment again. The broker is not asked for another one, because it
        decides by itself."""
        with self._mutex:
            self._again = True
        self._wake.set()

    def look(self) -> None:
        self._wake.set()

    def keep_alive(self) -> None:
        """Signal that the thread is working, as ``poll`` does: during long operations."""
        self._alive_ms = SystemClock().monotonic_ms()

    def close(self, *, leave: bool | None = None) -> None:
        """If the member does not leave, the broker keeps the tasks for it until its session times out."""
        if self._standing is Standing.LEFT:
            return
        if leave is not False:
            self._leave()
        with self._mutex:
            self._enter(Standing.LEFT)
        self._wake.set()
        self._connection.close()
        if self._thread.is_alive():
            self._thread.join(_LEAVE_TIMEOUT_MS / 1000)

    # The thread of the heartbeats

    def _run(self) -> None:
        while not self._left() and self._failure is None:
            self._wake.wait(self._interval_ms / 1000)
            self._wake.clear()
            try:
                self._beat()
                self._trouble = None
            except (errors.KafkaError, BrokerUnavailableError) as error:
                self._troubled(error)
            except Exception as error:  # noqa: BLE001 - a connection that is being closed raises what it likes
                if not self._left():
                    self._failure = error

    def _left(self) -> bool:
        """Whether another thread has closed the member meanwhile."""
        return self._standing is Standing.LEFT

    def _troubled(self, error: BaseException) -> None:
        """Note a failed heartbeat. It is tried again; if no heartbeat succeeds, the member's session times out."""
        with self._mutex:
            self._unreported = True
        if not self._left() and self._trouble is not type(error):
            log.warning("%s: no heartbeat: %s: %s", self._where, type(error).__name__, error)
        self._trouble = type(error)

    def _beat(self) -> None:
        if self._standing is Standing.JOINING:
            if self._must_leave:
                try:
                    self._ask_to_leave(_REQUEST_TIMEOUT_MS)
                except HeartbeatRefusedError as error:
                    self._take_refusal(error)
                    return
            self._check_topology()
        request = self._next_request()
        if request is None:
            return
        try:
            answer = self._connection.ask(request, beats.read, _REQUEST_TIMEOUT_MS)
        except HeartbeatRefusedError as error:
            self._take_refusal(error)
        else:
            self._take(answer, joins=request.member_epoch == beats.JOIN_EPOCH)

    def _check_topology(self) -> None:
        """Compare this member's topology with those of the others, because the broker compares only the topics, and
        would let two versions of a program work side by side."""
        application = self._application
        if beats.fingerprints(list_members(self._connection)) - {application.fingerprint}:
            raise other_version(application.thread, application.difference(), self._where)

    def _next_request(self) -> Any:
        """The next heartbeat; None while there is nothing to report."""
        with self._mutex:
            if self._standing in (Standing.LOST, Standing.LEFT):
                return None
            fields: dict[str, Any] = {"shutdown_application": self._application.shuts_down()}
            if self._standing is Standing.JOINING:
                fields |= beats.joining(self._application, self._rebalance_timeout_ms)
            elif self._unreported:
                fields |= beats.owning(self._claimed)
            self._unreported = False
            known = SystemClock().monotonic_ms() < self._places_ms + _PLACES_AGAIN_MS
            endpoint_epoch = self._endpoint_epoch if known else beats.NO_ENDPOINTS
            return beats.heartbeat(self._group, self._member_id, self._epoch, endpoint_epoch, **fields)

    def _take(self, answer: Answer, *, joins: bool) -> None:
        now_ms = SystemClock().monotonic_ms()
        with self._mutex:
            # The membership for which a request was sent may be over when it is answered.
            if self._standing is Standing.JOINING and joins:
                self._enter(Standing.MEMBER)
            if self._standing is not Standing.MEMBER:
                return
            self._epoch, self._confirmed_ms = answer.epoch, now_ms
            if answer.places is not None:
                # The stream thread gets the places together with an assignment.
                self._due = self._due or (self._given is not None and answer.places != self._places)
                self._places, self._endpoint_epoch, self._places_ms = (
                    answer.places,
                    answer.endpoint_epoch,
                    now_ms,
                )
            if answer.tasks is not None and answer.tasks != self._target:
                self._target, self._due = answer.tasks, True
            if self._again or beats.SHUTDOWN_APPLICATION in answer.status:
                self._due, self._again = self._target is not None, False
            self._shutdown = beats.SHUTDOWN_APPLICATION in answer.status
            failure = group_cannot_run(answer.status, self._where)
            self._failure = self._lasting(failure, 1000 * CONNECT_TIMEOUT_S)
            pending = (
                self._target is None or self._due or self._unreported or answer.status.keys() & _SOON_OVER
            )
            self._interval_ms = min(_SOON_MS, answer.interval_ms) if pending else answer.interval_ms
            idle_ms = now_ms - self._alive_ms
        if idle_ms > self._rebalance_timeout_ms:
            self._leave()
            self._lose(f"its thread has not asked for work for {idle_ms / 1000:.0f} s (max_poll_interval_ms)")

    def _lasting(self, failure: StreamsError | None, patience_ms: float) -> StreamsError | None:
        """The error if it lasts for longer than ``patience_ms``, otherwise None: for example, a new topic may not be
        known to all brokers yet."""
        now_ms = SystemClock().monotonic_ms()
        if failure is None:
            self._failing_ms = None
        elif self._failing_ms is None:
            self._failing_ms = now_ms
        lasts = self._failing_ms is not None and now_ms - self._failing_ms >= patience_ms
        return failure if lasts else None

    def _take_refusal(self, error: HeartbeatRefusedError) -> None:
        failure = heartbeat_refused(error, self._where)
        if error.code == errors.GroupIdNotFoundError.errno and self._standing is Standing.JOINING:
            # The group is of another kind. Killed members of that kind stay until their session times out.
            self._interval_ms = _SOON_MS
            if self._failing_ms is None:
                log.warning("%s", failure)
            self._failure = self._lasting(failure, self._other_kind_ms)
        elif error.code in beats.REMOVED_CODES:
            self._lose(str(error))
        elif error.code == errors.UnknownError.errno:
            self._interval_ms = _SOON_MS
            self._failure = self._lasting(failure, 1000 * CONNECT_TIMEOUT_S)
        else:
            self._failure = failure

    def _lose(self, why: str) -> None:
        with self._mutex:
            self._why_lost = f"the coordinator has removed this member: {why}"
            self._epoch = beats.JOIN_EPOCH
            self._endpoint_epoch, self._places = beats.NO_ENDPOINTS, beats.Places()
            self._target = self._given = None
            self._claimed, self._due, self._again = Tasks(), False, False
            self._interval_ms = _SOON_MS
            if self._standing is Standing.MEMBER:
                self._enter(Standing.LOST)

    def _leave(self) -> None:
        if not self.can_commit():
            return
        self._must_leave = True
        try:
            self._ask_to_leave(_LEAVE_TIMEOUT_MS)
        except (errors.KafkaError, BrokerError) as error:
            log.warning("%s: could not leave the group: %s", self._where, error)

    def _ask_to_leave(self, timeout_ms: float) -> None:
        request = beats.heartbeat(self._group, self._member_id, beats.LEAVE_EPOCH)
        try:
            self._connection.ask(request, beats.read, timeout_ms)
        except HeartbeatRefusedError as error:
            if error.code not in beats.REMOVED_CODES:
                raise
        self._must_leave = False

    def _removed(self, why: str) -> TaskMigratedError:
        self._lose(why)
        return migrated(why, self._where)

    def _enter(self, standing: Standing) -> None:
        self._standing = check_transition(self._where, STANDING_SUCCESSORS, self._standing, standing)
