"""What pystreams needs of a log: the protocols that the embedded log and Kafka implement.

A StreamThread owns one ``Member``, one ``Consumer`` for its inputs, one for restoring, and one ``Producer``; no two
threads share one. ``Admin`` is shared by a client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol

from pystreams.errors import BrokerError, SerializationError
from pystreams.ids import TopicPartition
from pystreams.record import Headers, RecordBatch

CleanupPolicy = Literal["delete", "compact", "compact,delete"]
#: What a consumer reads: inputs, changelogs, or topics of global tables.
ConsumerPurpose = Literal["main", "restore", "global"]

#: How long a log may take to answer a question.
ANSWER_TIMEOUT_MS: Final = 30_000.0


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create. ``config`` has Kafka's topic settings by their Java names (``retention.ms``, ...)."""

    name: str
    partitions: int
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as it is. ``config`` is empty if we may not see it."""

    name: str
    partitions: int
    config: Mapping[str, str]


def retention_of(config: Mapping[str, str]) -> int | None:
    """The age in ms past which a topic with these settings deletes records by their timestamps; None: it does not."""
    retention_ms = int(config.get("retention.ms", -1))
    by_timestamp = config.get("message.timestamp.type", "CreateTime") == "CreateTime"
    deletes = "delete" in config.get("cleanup.policy", "delete")
    return retention_ms if deletes and retention_ms >= 0 and by_timestamp else None


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The next offset to process, and the text that was committed with it (Java's offset metadata)."""

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
class MemberInfo:
    """What the assignor sees of a member: what it last told about itself and the partitions it still holds."""

    member_id: str
    user_data: bytes
    owned: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """What the assignor gives to a member: its input partitions and an opaque plan for it."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes


#: The group's assignor: a pure function of all members, run by whichever member leads. Keys of the result are the
#: member ids. Partitions that another member still holds may be given away; the port hands them over only once freed.
Assign = Callable[[Sequence[MemberInfo]], Mapping[str, MemberAssignment]]


@dataclass(frozen=True, slots=True)
class Assigned:
    """A new assignment: the *whole* target of this member, already without partitions that others still hold.

    The thread commits and closes what is not in it, opens what is new, and calls ``Member.claim`` before it polls
    again. What is new is reserved for it from now on, not only from the claim on.
    """

    generation: int
    partitions: tuple[TopicPartition, ...]
    user_data: bytes


@dataclass(frozen=True, slots=True)
class Lost:
    """The membership ended without this member's doing (evicted, fenced): close all tasks without a commit."""

    reason: str


MemberEvent = Assigned | Lost


class Member(Protocol):
    """Membership in a group."""

    @property
    def member_id(self) -> str: ...

    def poll(self) -> list[MemberEvent]:
        """Join if need be, keep the membership alive, and give what happened. Never blocks for long."""
        ...

    def claim(self, partitions: Collection[TopicPartition]) -> None:
        """Tell what this member now holds; what it no longer holds becomes free for others."""
        ...

    def can_commit(self) -> bool:
        """False while offsets cannot be committed (not joined, or a join is under way)."""
        ...

    def confirm(self) -> None:
        """Before something is written that cannot be taken back: have the log confirm that this is still a member, if
        that is doubtful. Raises ``TaskMigratedError``, ``BrokerUnavailableError``."""
        ...

    def committed(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """The group's committed offsets."""
        ...

    def request_rejoin(self) -> None:
        """Have the assignor run again, with this member's fresh ``user_data``."""
        ...

    def close(self, *, leave: bool | None = None) -> None:
        """Stop being a member. Who leaves makes room for others at once, who does not when its session is over. None: a
        static member does not leave, because it comes back; any other does."""
        ...


class Consumer(Protocol):
    """Reads partitions that it was told to read. Knows nothing of groups."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Add partitions, each read from the given offset."""
        ...

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        """Drop partitions; nothing more of them is returned."""
        ...

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """Go on at other offsets."""
        ...

    def pause(self, partitions: Collection[TopicPartition]) -> None: ...

    def resume(self, partitions: Collection[TopicPartition]) -> None: ...

    def poll(self, timeout_ms: float) -> list[RecordBatch]:
        """What has arrived, at most one batch per partition; waits up to ``timeout_ms`` if nothing has.

        Raises ``OffsetOutOfRangeError`` and ``BrokerUnavailableError``.
        """
        ...

    def position(self, partition: TopicPartition) -> int:
        """The offset after the last record returned, past holes of the log."""
        ...

    def known_end_offset(self, partition: TopicPartition) -> int | None:
        """The end offset as of the last poll, or None if it is not known yet. Costs nothing."""
        ...

    def close(self) -> None: ...


class Producer(Protocol):
    """Writes records; what was sent since the last commit becomes durable with the next one."""

    def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
    ) -> None:
        """Send to a partition, or to the one that the key's murmur2 hash gives (None).

        Raises ``SerializationError`` where key, value or headers are not bytes.
        """
        ...

    def log_change(
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
        """Make what was sent durable together with the input offsets; give the end offsets of the changelogs written.

        ``member`` None: no group is checked. Raises ``TaskMigratedError`` if the member no longer holds the
        partitions, ``ProductionError`` if any record since the last commit was not accepted.
        """
        ...

    def abort(self) -> None:
        """Forget what was sent since the last commit, as far as the log can."""
        ...

    def close(self) -> None: ...


class Deletion(Protocol):
    """Records that are being deleted."""

    @property
    def done(self) -> bool:
        """True once they are, or will not be."""
        ...

    def wait(self) -> None:
        """Wait until they are deleted. Raises ``TopicError``, ``OffsetOutOfRangeError`` for an offset past the end."""
        ...


class TransactionalProducer(Protocol):
    """Writes what readers of committed records see once it is committed.

    Whoever makes another one with the same transactional id ends the transaction of this one, for good. A log that
    cannot do that refuses to make the other one while this one lives.
    """

    @property
    def transaction_records_max(self) -> int | None:
        """Commit at least so often, because a transaction is kept in memory; None: it may be of any size."""
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
        """Make all that was sent since the last commit visible, or nothing. Raises ``ProductionError`` and
        ``BrokerError``: among others where somebody else has taken the transactional id over."""
        ...

    def close(self) -> None:
        """What was not committed is dropped."""
        ...


class GroupCommitter(Protocol):
    """Commits offsets of a group without members together with records. Fenced as a ``TransactionalProducer`` is."""

    def probe(self, partitions: Collection[TopicPartition]) -> None:
        """Raises ``BrokerError`` if the log does not let us write to the partitions or commit offsets of the group.
        Writes nothing that anybody sees."""
        ...

    def commit(self, records: Sequence[Write], offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """All of it or nothing. Raises ``BrokerError`` if the group has members, asked when all but the last step is
        done: who joins later finds the records, or waits for the transaction when it reads them. Also if somebody else
        has taken the transactional id over."""
        ...

    def close(self) -> None: ...


class Admin(Protocol):
    """Topics, offsets and groups as a whole."""

    def partition_counts(self) -> dict[str, int]:
        """The number of partitions of every topic."""
        ...

    def describe_topics(self, names: Collection[str] | None = None) -> dict[str, TopicDescription]:
        """The topics that exist among ``names`` (None: all)."""
        ...

    def topic_id(self, name: str) -> str | None:
        """What tells a topic from another one that had, or will have, the same name. None: there is no such topic, or
        nobody tells."""
        ...

    def create_topics(self, topics: Collection[TopicSpec]) -> None:
        """Create topics; one that exists already with the same partition count is left as it is.

        Raises ``TopicError`` for another partition count.
        """
        ...

    def alter_topic_config(self, name: str, config: Mapping[str, str]) -> None: ...

    def delete_topics(self, names: Collection[str]) -> None: ...
    def require_remaking(self, names: Collection[str]) -> None:
        """Raises ``BrokerError`` if it is known that who asks must not delete these topics and create them again."""
        ...

    def delete_records(self, offsets: Mapping[TopicPartition, int]) -> Deletion:
        """Begin to delete everything before the given offsets."""
        ...

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...

    def end_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: float = ANSWER_TIMEOUT_MS
    ) -> dict[TopicPartition, int]:
        """Raises ``BrokerUnavailableError`` if there is no answer in time."""
        ...

    def stable_end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Where a consumer ends that reads what is committed: before the first transaction that is still open."""
        ...

    def offsets_for_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The first offset whose record has at least the timestamp; the end offset if there is none."""
        ...

    def group_offsets(self, group: str) -> dict[TopicPartition, CommittedOffset]: ...

    def set_group_offsets(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Overwrite committed offsets. Raises ``BrokerError`` while the group has members."""
        ...

    def delete_group(self, group: str) -> None:
        """Forget a group's offsets. Raises ``BrokerError`` while it has members."""
        ...

    def group_members(self, group: str) -> list[str]:
        """The member ids of a group's living members."""
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
        """Another log has another one, also at the same place."""
        ...

    @property
    def transactional(self) -> bool:
        """True if a commit is atomic over outputs, changelogs and offsets (exactly once)."""
        ...

    @property
    def compacts_by_timestamp(self) -> bool:
        """True if the age that ``min.compaction.lag.ms`` asks for is that of the records' own timestamps, False if it
        is the time since they were written."""
        ...

    def admin(self) -> Admin: ...

    def consumer(self, client_id: str, purpose: ConsumerPurpose = "main") -> Consumer:
        """``purpose`` says whose settings it follows."""
        ...

    def producer(self, client_id: str, transactional_id: str) -> Producer: ...

    def transactional_producer(self, client_id: str, transactional_id: str) -> TransactionalProducer: ...

    def group_committer(self, client_id: str, group: str, transactional_id: str) -> GroupCommitter: ...

    def opener(self) -> Callable[[], Broker]:
        """Connects anew to the same log when it is called; picklable, for other processes."""
        ...

    def member(
        self,
        client_id: str,
        group: str,
        topics: Collection[str],
        user_data: Callable[[], bytes],
        assign: Assign,
        instance_id: str | None = None,
    ) -> Member:
        """Become a member of ``group``. ``user_data`` is asked anew for every join. A log that has static members takes
        who comes back with the same ``instance_id`` for the same member."""
        ...

    def close(self) -> None: ...


#: Of a group that has members though nobody runs.
KILLED_MEMBER_HINT: Final = (
    "one that was killed stays a member until its session is over (session_timeout_ms, 45 s unless set)"
)


def no_bytes(topic: str, key: object, value: object) -> SerializationError:
    """What to raise for a key or value that a user's serde gave as something else: it would spoil its whole batch."""
    what, wrong = ("key", key) if key is not None and not isinstance(key, bytes) else ("value", value)
    return SerializationError(
        f"the serde of the {what} gave {type(wrong).__qualname__}, not bytes",
        where=f"topic {topic}",
        hint="let the serializer return bytes: text.encode()",
    )


def has_members(group: str, members: Collection[str], where: str) -> BrokerError:
    """What to raise where the offsets of a group are set while it has members, who may have left since."""
    return BrokerError(
        f"Group {group!r} has {len(members)} living members",
        where=where,
        why=f"{', '.join(members) or 'a member'} may commit at any moment",
        hint=f"stop the application, then try again; {KILLED_MEMBER_HINT}",
    )


def check_headers(topic: str, headers: Headers) -> None:
    """Raises ``SerializationError`` for headers that are not pairs of a name and bytes or None."""
    for header in headers:
        match header:
            case (str(), bytes() | None):
                pass
            case _:
                raise SerializationError(
                    "a record's headers are pairs of a name and bytes",
                    where=f"topic {topic}",
                    hint='write them like (("source", b"web"),)',
                )


#: Source: org.apache.kafka.common.internals.Topic.
_LEGAL_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def why_no_topic_name(name: str) -> str:
    """Why Kafka has no topic of that name; empty if it may have one."""
    if _LEGAL_TOPIC_NAME.fullmatch(name) and name not in (".", ".."):
        return ""
    return "Kafka allows letters, digits, '.', '_' and '-', at most 249 of them"
