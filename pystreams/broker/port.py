"""The protocols that pystreams needs from a log. The embedded log and Kafka implement them.

Begin with ``Broker``, the last one, which opens all others.

A StreamThread owns one ``Member``, one ``Consumer`` for its inputs, one for restoring, and one ``Producer``; no two
threads share one. ``Admin`` is shared by a client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol

from pystreams.broker.group_application import GroupApplication
from pystreams.errors import BrokerError, SerializationError
from pystreams.ids import MemberName, TaskId, TopicPartition
from pystreams.metrics import Sample
from pystreams.nearest import listing
from pystreams.plural import plural
from pystreams.record import Headers, RecordBatch

CleanupPolicy = Literal["delete", "compact", "compact,delete"]
#: The records that a consumer reads: inputs, changelogs, or topics of global tables.
ConsumerPurpose = Literal["main", "restore", "global"]

#: The timeout of a request to a log.
ANSWER_TIMEOUT_MS: Final = 30_000.0


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create. ``config`` has Kafka's topic settings by their Java names (``retention.ms``, ...)."""

    name: str
    partitions: int
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """An existing topic. ``config`` is empty if the login may not see it."""

    name: str
    partitions: int
    config: Mapping[str, str]


def retention_of(config: Mapping[str, str]) -> int | None:
    """The age in ms after which a topic with these settings deletes records by their timestamps; None: it does not."""
    retention_ms = int(config.get("retention.ms", -1))
    by_timestamp = config.get("message.timestamp.type", "CreateTime") == "CreateTime"
    deletes = "delete" in config.get("cleanup.policy", "delete")
    return retention_ms if deletes and retention_ms >= 0 and by_timestamp else None


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The next offset to process, and the metadata that was committed with it (Java's offset metadata)."""

    offset: int
    metadata: str = ""


class Write(NamedTuple):
    """A record to write to a partition; ``timestamp`` in ms."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    timestamp: int


@dataclass(frozen=True, slots=True)
class TransactionContent:
    """The possible content of a producer's transactions: offsets of a group, and records of topics."""

    group: str
    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class MemberInfo:
    """The assignor's view of a member: its latest user data, and the partitions that it still holds."""

    member_id: str
    user_data: bytes
    owned: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """The assignor's result for a member: its input partitions, and an opaque plan."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member of a group, as the log shows it to everybody.

    ``host`` is the host from which it connects; empty on a log that is a file. ``user_data`` is the data with which it
    joined, ``plan`` the data that the assignor has sent it with its ``partitions``. If the broker assigns the tasks,
    both are empty, and the other fields have the broker's information: ``endpoint`` is the address at which its process
    answers queries, ``pystreams`` and ``python`` are versions; each is empty if the member has not sent it.
    """

    member_id: str
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes = b""
    plan: bytes = b""
    tasks: tuple[TaskId, ...] = ()
    standbys: tuple[TaskId, ...] = ()
    process_id: str = ""
    fingerprint: str = ""
    endpoint: str = ""
    pystreams: str = ""
    python: str = ""


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group's living members. While it is ``rebalancing``, Kafka does not show the members' partitions. A group
    without members is not rebalancing."""

    members: tuple[MemberDescription, ...] = ()
    rebalancing: bool = False


#: The group's assignor: a pure function of all members, run by the leading member. The keys of the result are member
#: ids. It may assign partitions that another member still holds; the port delivers them only after their release.
Assign = Callable[[Sequence[MemberInfo]], Mapping[str, MemberAssignment]]


@dataclass(frozen=True, slots=True)
class Assigned:
    """A new assignment: the *whole* target of this member, but without partitions that others still hold.

    The thread commits and closes the tasks that are not in it, opens new tasks, and calls ``Member.claim`` before it
    polls again. New partitions are reserved for it at once, even before the claim.
    """

    generation: int
    partitions: tuple[TopicPartition, ...]
    user_data: bytes


@dataclass(frozen=True, slots=True)
class Lost:
    """The member was removed from the group (evicted, fenced): close all tasks without a commit."""

    reason: str


MemberEvent = Assigned | Lost


class Member(Protocol):
    """Membership in a group."""

    @property
    def member_id(self) -> str: ...

    def poll(self) -> list[MemberEvent]:
        """Join if necessary, keep the membership alive, and return the events. Never blocks for long."""
        ...

    def keep_alive(self) -> None:
        """Signal that the thread is working, as ``poll`` does: between the parts of a step that may take long."""
        ...

    def claim(self, partitions: Collection[TopicPartition]) -> None:
        """Declare the partitions that this member now holds; others may take those that it no longer holds."""
        ...

    def can_commit(self) -> bool:
        """False while offsets cannot be committed (not joined, or during a join)."""
        ...

    def confirm(self) -> None:
        """Before an irrevocable write: let the log confirm the membership, if it is doubtful. Raises
        ``TaskMigratedError``, ``BrokerUnavailableError``."""
        ...

    def committed(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """The group's committed offsets."""
        ...

    def look(self) -> None:
        """Ask the log soon, before the next heartbeat, whether the group rebalances, because a member has just gone."""
        ...

    def request_rejoin(self) -> None:
        """Run the assignor again, with this member's new ``user_data``."""
        ...

    def close(self, *, leave: bool | None = None) -> None:
        """End the membership. If it leaves, others get its partitions at once; otherwise when its session times out.
        None: static members do not leave, because they come back; others do."""
        ...


class Consumer(Protocol):
    """Reads assigned partitions, independent of groups."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Add partitions, each with the offset to start from."""
        ...

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        """Remove partitions; none of their records are returned any more."""
        ...

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """Continue at other offsets."""
        ...

    def read_anew(self, positions: Mapping[TopicPartition, int]) -> None:
        """Continue at these offsets after no records have come from the partitions for a long time. If the log has
        connections, which may be the cause, use a new one."""
        ...

    def pause(self, partitions: Collection[TopicPartition]) -> None: ...

    def resume(self, partitions: Collection[TopicPartition]) -> None: ...

    def poll(self, timeout_ms: float) -> list[RecordBatch]:
        """The records that have arrived, at most one batch per partition; waits up to ``timeout_ms`` if there are none.

        Raises ``OffsetOutOfRangeError`` and ``BrokerUnavailableError``.
        """
        ...

    def position(self, partition: TopicPartition) -> int:
        """The offset after the last returned record, and after holes of the log."""
        ...

    def known_end_offset(self, partition: TopicPartition) -> int | None:
        """The end offset as of the last poll, or None if it is not known yet. Does not ask the log."""
        ...

    def close(self) -> None: ...


class Producer(Protocol):
    """Writes records; a commit makes the records since the last one durable."""

    def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
    ) -> None:
        """Send to a partition, or, with None, to the partition of the key's murmur2 hash.

        Raises ``SerializationError`` if key, value or headers are not bytes.
        """
        ...

    def send_to_changelog(
        self,
        topic: str,
        partition: int,
        key: bytes,
        value: bytes | None,
        timestamp: int | None,
        headers: Headers,
    ) -> None:
        """Send to a changelog. ``commit`` returns the end offset of every partition written this way."""
        ...

    def commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset], member: Member | None
    ) -> dict[TopicPartition, int]:
        """Make the sent records durable, together with the input offsets. Returns the end offsets of written
        changelogs.

        ``member`` None: no group is checked. Raises ``TaskMigratedError`` if the member no longer holds the
        partitions, ``ProductionError`` if a record since the last commit was not accepted.
        """
        ...

    def abort(self) -> None:
        """Discard the records sent since the last commit, if the log can do so. A commit whose outcome is not known may
        still succeed until ``settle``."""
        ...

    def settle(self) -> None:
        """Make sure that records sent before ``abort``, or by a former producer with the same transactional id, cannot
        be committed any more. Called before committed offsets are read. Raises ``BrokerUnavailableError``."""
        ...

    def postpones(self, member: Member) -> bool:
        """Whether a commit should wait, because the group is about to change its generation."""
        ...

    def close(self) -> None: ...


class Deletion(Protocol):
    """A deletion of records that is in progress."""

    @property
    def done(self) -> bool:
        """Whether it has finished or failed."""
        ...

    def wait(self) -> None:
        """Wait for its end. Raises ``TopicError``, ``OffsetOutOfRangeError`` for an offset past the end."""
        ...


class TransactionalProducer(Protocol):
    """Writes records that become visible to readers of committed records when they are committed.

    A new producer with the same transactional id ends the transactions of this one, for good. A log that cannot do so
    refuses the new producer while this one exists.
    """

    @property
    def transaction_records_max(self) -> int | None:
        """The maximum number of records between commits, because a transaction is kept in memory; None: no limit."""
        ...

    def send(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
    ) -> None:
        """Raises ``ProductionError``, ``SerializationError``."""
        ...

    def commit(self) -> None:
        """Make all records since the last commit visible, or none. Raises ``ProductionError`` and ``BrokerError``, for
        example if another producer has taken over the transactional id."""
        ...

    def close(self) -> None:
        """Close the producer. Uncommitted records are dropped."""
        ...


class GroupCommitter(Protocol):
    """Commits offsets of a group without members, together with records. Fenced like a ``TransactionalProducer``."""

    def probe(self, partitions: Collection[TopicPartition]) -> None:
        """Raise ``BrokerError`` if the login may not write to the partitions or commit offsets of the group. Writes
        nothing visible."""
        ...

    def commit(self, records: Sequence[Write], offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Commit all of it, or nothing. Raises ``BrokerError`` if the group has members, which is checked just before
        the last step: a member that joins later finds the records, or waits for the transaction when it reads them.
        Also raises it if another committer has taken over the transactional id."""
        ...

    def close(self) -> None: ...


class Admin(Protocol):
    """Administration of topics, offsets and groups."""

    def partition_counts(self) -> dict[str, int]:
        """The number of partitions of every topic."""
        ...

    def describe_topics(self, names: Collection[str] | None = None) -> dict[str, TopicDescription]:
        """The existing topics among ``names`` (None: all)."""
        ...

    def partition_racks(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, frozenset[str]]:
        """The racks of the brokers that have replicas of the partitions. A partition is left out if a broker's rack is
        not known; a log without racks returns none."""
        ...

    def topic_id(self, name: str) -> str | None:
        """An id that distinguishes a topic from earlier and later ones with the same name. None: the topic does not
        exist, or has no id."""
        ...

    def create_topics(self, topics: Collection[TopicSpec]) -> None:
        """Create topics, which accept records when this returns; an existing topic with the same partition count is
        left unchanged.

        Raises ``TopicError`` for another partition count.
        """
        ...

    def alter_topic_config(self, name: str, config: Mapping[str, str]) -> None: ...

    def delete_topics(self, names: Collection[str]) -> None: ...
    def require_remaking(self, names: Collection[str]) -> None:
        """Raise ``BrokerError`` if it is known that the login may not delete these topics and create them again."""
        ...

    def delete_records(self, offsets: Mapping[TopicPartition, int]) -> Deletion:
        """Start to delete all records before the given offsets."""
        ...

    def beginning_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: float = ANSWER_TIMEOUT_MS
    ) -> dict[TopicPartition, int]:
        """Raises ``BrokerUnavailableError`` if there is no answer in time."""
        ...

    def end_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: float = ANSWER_TIMEOUT_MS
    ) -> dict[TopicPartition, int]:
        """Raises ``BrokerUnavailableError`` if there is no answer in time."""
        ...

    def stable_end_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: float = ANSWER_TIMEOUT_MS
    ) -> dict[TopicPartition, int]:
        """The end offsets for a consumer of committed records: before the first open transaction. Raises
        ``BrokerUnavailableError`` if there is no answer in time."""
        ...

    def offsets_for_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The first offset whose record has at least this timestamp; the end offset if there is none."""
        ...

    def group_offsets(
        self, group: str, *, stable: bool = True, timeout_ms: float = ANSWER_TIMEOUT_MS
    ) -> dict[TopicPartition, CommittedOffset]:
        """The offsets that a group has committed. With ``stable``, wait for commits in open transactions, whose outcome
        is not known yet; otherwise return the last offsets before them. Callers that need only a lower bound pass
        False, because in a large group there is always a commit in progress. Raises ``BrokerUnavailableError`` if there
        is no answer in time."""
        ...

    def set_group_offsets(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Overwrite committed offsets. Raises ``BrokerError`` while the group has members."""
        ...

    def delete_group(self, group: str) -> None:
        """Delete a group's offsets. Raises ``BrokerError`` while it has members."""
        ...

    def group_members(self, group: str) -> list[str]:
        """The member ids of a group's living members."""
        ...

    def describe_group(self, group: str) -> GroupDescription:
        """The group's living members with their assignments; no members if there is no such group. Raises
        ``BrokerUnavailableError``, and ``BrokerError`` if the login may not see it."""
        ...

    def remove_members(self, group: str, members: Collection[MemberName]) -> list[MemberName]:
        """Remove members whose processes are gone from a group, before their sessions time out. Returns the members
        that are not in the group now: all except static members whose place another process has taken.

        Raises ``BrokerUnavailableError``, and ``BrokerError`` if the login may not do this. Source: KIP-345,
        Admin.removeMembersFromConsumerGroup.
        """
        ...

    def close(self) -> None: ...


class Broker(Protocol):
    """A log to connect to."""

    @property
    def description(self) -> str:
        """For people: ``embedded log at .pystreams/log.db``, ``Kafka at localhost:9092``."""
        ...

    @property
    def log_id(self) -> str:
        """The id of the log. Another log has another id, even at the same address."""
        ...

    @property
    def transactional(self) -> bool:
        """Whether a commit is atomic over outputs, changelogs and offsets (exactly once)."""
        ...

    @property
    def reads_committed(self) -> bool:
        """Whether consumers leave out records of transactions that are not committed."""
        ...

    @property
    def notices_deaths(self) -> bool:
        """Whether a group continues at once without members whose processes have died, and not only after their session
        timeout."""
        ...

    @property
    def assigns_tasks(self) -> bool:
        """Whether the log itself can assign a group's tasks (``group_protocol="streams"``)."""
        ...

    @property
    def compacts_by_timestamp(self) -> bool:
        """Whether the age for ``min.compaction.lag.ms`` is computed from the records' timestamps (True), or from the
        time since they were written (False)."""
        ...

    def admin(self) -> Admin: ...

    def consumer(self, client_id: str, purpose: ConsumerPurpose = "main") -> Consumer:
        """``purpose`` selects the client settings."""
        ...

    def producer(
        self,
        client_id: str,
        transactional_id: str | None = None,
        content: TransactionContent | None = None,
    ) -> Producer:
        """A producer. A log that needs transactional ids uses this one; without one, a commit of several records is not
        atomic there, and no offsets can be committed with them. With ``content``, ``settle`` also ends the last
        transaction in partitions in which brokers have left it open."""
        ...

    def transactional_producer(self, client_id: str, transactional_id: str) -> TransactionalProducer: ...

    def group_committer(self, client_id: str, group: str, transactional_id: str) -> GroupCommitter: ...

    def samples(self) -> Sequence[Sample]:
        """The metrics of its clients. Any thread may call this."""
        ...

    def opener(self) -> Callable[[], Broker]:
        """A function that connects to the same log again; picklable, for other processes."""
        ...

    def fence(self, content: TransactionContent, tasks: Collection[TaskId]) -> None:
        """Prevent further commits of the former owners of ``tasks``, if the log can do so. Called for newly assigned
        tasks before their committed offsets are read. Raises ``BrokerUnavailableError``."""
        ...

    def member(
        self,
        client_id: str,
        group: str,
        topics: Collection[str],
        user_data: Callable[[], bytes],
        assign: Assign,
        instance_id: str | None = None,
        transactional_id: str | None = None,
        application: GroupApplication | None = None,
    ) -> Member:
        """Become a member of ``group``. ``user_data`` is called for every join. In a log with static members, a
        member that returns with the same ``instance_id`` counts as the same member. ``transactional_id`` is that of the
        thread's producer. With an ``application`` the broker assigns the tasks, if it can, and not ``assign``."""
        ...

    def close(self) -> None: ...


#: Advice for a group that still has members although no process runs.
_KILLED_MEMBER_HINT: Final = (
    "a killed member stays in the group until its session times out (session_timeout_ms, 45 s by default)"
)


def no_bytes(topic: str, key: object, value: object) -> SerializationError:
    """The error for a key or value that a user's serde did not serialize to bytes. It would spoil its whole batch."""
    what, wrong = ("key", key) if key is not None and not isinstance(key, bytes) else ("value", value)
    return SerializationError(
        f"the serde of the {what} returned {type(wrong).__qualname__}, not bytes",
        where=f"topic {topic}",
        hint="let the serializer return bytes: text.encode()",
    )


def has_members(group: str, members: Collection[str], where: str) -> BrokerError:
    """The error for replacing what an application stored while its group has members (which may have left since)."""
    count = f"{len(members)} {plural(len(members), 'member')}"
    return BrokerError(
        f"{group} is running",
        where=where,
        why=f"its group has {count}: {listing(members, most=3)}" if members else "its group has members",
        hint=f"stop all its instances, then try again; {_KILLED_MEMBER_HINT}",
    )


def check_headers(topic: str, headers: Headers) -> None:
    """Raise ``SerializationError`` for headers that are not pairs of a name and bytes or None."""
    for header in headers:
        match header:
            case (str(), bytes() | None):
                pass
            case _:
                raise SerializationError(
                    "a record's headers must be pairs of a name and bytes",
                    where=f"topic {topic}",
                    hint='write them like (("source", b"web"),)',
                )


#: Source: org.apache.kafka.common.internals.Topic.
_LEGAL_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def why_no_topic_name(name: str) -> str:
    """Why Kafka does not allow this topic name; empty if it is valid."""
    if _LEGAL_TOPIC_NAME.fullmatch(name) and name not in (".", ".."):
        return ""
    return "Kafka allows letters, digits, '.', '_' and '-', at most 249 of them"
