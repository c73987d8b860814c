"""Kafka as a broker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from pystreams.broker.group_application import GroupApplication
from pystreams.broker.kafka.admin import KafkaAdmin
from pystreams.broker.kafka.admin_client import SharedAdminClient
from pystreams.broker.kafka.consumer import KafkaConsumer
from pystreams.broker.kafka.coordination import GroupConnection
from pystreams.broker.kafka.exactly_once import ExactlyOnceProducer
from pystreams.broker.kafka.failures import ErrorLog, cannot_connect, error_of, text
from pystreams.broker.kafka.fencing import Doubt, fence_the_dead
from pystreams.broker.kafka.group_commit import KafkaGroupCommitter
from pystreams.broker.kafka.group_member import GroupMember
from pystreams.broker.kafka.member import KafkaMember
from pystreams.broker.kafka.oauth import TokenProvider
from pystreams.broker.kafka.producer import KafkaProducer
from pystreams.broker.kafka.settings import KafkaSettings
from pystreams.broker.kafka.statistics import ClientStatistics
from pystreams.broker.kafka.streams_member import StreamsGroupMember
from pystreams.broker.kafka.transaction_coordination import TransactionConnection
from pystreams.broker.kafka.transactions import KafkaTransactionalProducer
from pystreams.broker.port import Assign, ConsumerPurpose, TransactionContent
from pystreams.clock import Clock, Deadline, SystemClock
from pystreams.config.client_setting import Role
from pystreams.errors import ConfigError
from pystreams.ids import TaskId
from pystreams.metrics import Sample

_CONNECT_SLICE_S = 0.5

_ROLES: Final[Mapping[ConsumerPurpose, Role]] = {
    "main": "main.consumer",
    "restore": "restore.consumer",
    "global": "global.consumer",
}


class KafkaBroker:
    """A Kafka cluster. See ``port.Broker``.

    ``client_settings`` are Java's client settings by name, with Java's prefixes; both clients get the login and
    encryption settings among them. At least once, outputs are flushed before offsets are committed; with
    ``exactly_once``, they are committed in one transaction, and consumers read what is committed.

    Raises ``BrokerUnavailableError`` if no broker answers, ``BrokerError`` if the login is refused, ``ConfigError`` for
    unknown or invalid settings.
    """

    notices_deaths = False
    assigns_tasks = True
    compacts_by_timestamp = True

    def __init__(
        self,
        bootstrap_servers: str,
        clock: Clock | None = None,
        *,
        session_timeout_ms: int = 45_000,
        heartbeat_interval_ms: int = 3_000,
        max_poll_interval_ms: int = 300_000,
        replication_factor: int = -1,
        exactly_once: bool = False,
        client_settings: Mapping[str, Any] | None = None,
        oauth_token_provider: TokenProvider | None = None,
        client_id: str = "pystreams",
        connect_timeout_s: float = 5.0,
        statistics_interval_ms: int = 0,
    ) -> None:
        self._settings = KafkaSettings(
            bootstrap_servers,
            session_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=heartbeat_interval_ms,
            max_poll_interval_ms=max_poll_interval_ms,
            replication_factor=replication_factor,
            exactly_once=exactly_once,
            client_settings=client_settings or {},
            oauth_token_provider=oauth_token_provider,
        )
        self._statistics = ClientStatistics(statistics_interval_ms)
        self._admin_id = f"{client_id}-admin"
        self._clock = SystemClock() if clock is None else clock
        self._doubt = Doubt(self._clock)
        self._errors = ErrorLog(self.description, logs=False)
        # One client for all: it is thread-safe and has connections of its own.
        self._shared_client = SharedAdminClient(self._make_client)
        self._mutex = threading.Lock()
        self._admins: list[KafkaAdmin] = []
        #: The members of this client that are still in use, with their groups.
        self._members: WeakKeyDictionary[GroupMember, str] = WeakKeyDictionary()
        self._transaction_connection: TransactionConnection | None = None
        self._connect(connect_timeout_s)

    @property
    def description(self) -> str:
        return self._settings.description

    @property
    def transactional(self) -> bool:
        return self._settings.exactly_once

    @property
    def reads_committed(self) -> bool:
        """Whether consumers leave out records of transactions that are not committed."""
        return bool(self._settings.consumer("")["isolation.level"] == "read_committed")

    def admin(self) -> KafkaAdmin:
        admin = KafkaAdmin(self._shared_client, self._settings, self._admin_id)
        with self._mutex:
            self._admins.append(admin)
        return admin

    def consumer(self, client_id: str, purpose: ConsumerPurpose = "main") -> KafkaConsumer:
        role = _ROLES[purpose]
        return KafkaConsumer(
            {**self._settings.consumer(client_id, role), **self._statistics.settings(client_id)},
            f"{client_id}, {self.description}",
            self._settings.poll_records_max(role),
        )

    def producer(
        self,
        client_id: str,
        transactional_id: str | None = None,
        content: TransactionContent | None = None,
    ) -> KafkaProducer | ExactlyOnceProducer:
        """With at-least-once there are no transactions: a ``transactional_id`` only marks a stream thread's
        producer."""
        where, room_timeout_s = f"{client_id}, {self.description}", self._settings.producer_room_timeout_s
        if transactional_id is None or not self.transactional:
            of_thread = transactional_id is not None
            settings = (self._settings.thread_producer if of_thread else self._settings.producer)(client_id)
            settings = {**settings, **self._statistics.settings(client_id)}
            return KafkaProducer(settings, where, self._clock, self.admin(), room_timeout_s)
        return ExactlyOnceProducer(
            {**self._settings.exactly_once_producer(client_id), **self._statistics.settings(client_id)},
            transactional_id,
            where,
            self._clock,
            self.admin(),
            room_timeout_s,
            self._transactions,
            content,
        )

    def transactional_producer(self, client_id: str, transactional_id: str) -> KafkaTransactionalProducer:
        """Also raises ``BrokerUnavailableError``, ``BrokerError``, ``ConfigError``."""
        return KafkaTransactionalProducer(
            self._settings.producer(client_id), transactional_id, f"{client_id}, {self.description}"
        )

    def group_committer(self, client_id: str, group: str, transactional_id: str) -> KafkaGroupCommitter:
        """Also raises ``BrokerUnavailableError``, ``BrokerError``."""
        return KafkaGroupCommitter(
            self._settings.membership(client_id, "producer"),
            group,
            transactional_id,
            self.admin(),
            f"{client_id}, {self.description}",
        )

    def samples(self) -> Sequence[Sample]:
        return self._statistics.samples()

    def opener(self) -> Callable[[], KafkaBroker]:
        settings = self._settings
        return KafkaAddress(
            settings.bootstrap_servers,
            settings.session_timeout_ms,
            settings.heartbeat_interval_ms,
            settings.max_poll_interval_ms,
            settings.replication_factor,
            settings.exactly_once,
            dict(settings.client_settings),
            settings.oauth_token_provider,
            self._admin_id.removesuffix("-admin"),
        )

    def fence(self, content: TransactionContent, tasks: Collection[TaskId]) -> None:
        """With exactly-once, end the open transactions of members that are gone. With at-least-once, do nothing: the
        group refuses the offsets of a replaced member, but its records cannot be refused; ``ChangelogGuard`` repairs
        the changelogs that they have changed."""
        if self.transactional:
            timeout_ms = self._settings.transaction_timeout_ms
            doubt = self._doubt if self._has_joined(content.group) else None
            fence_the_dead(self._transactions(), content, timeout_ms, self.description, doubt=doubt)
            self._doubt.end()

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
    ) -> GroupMember:
        """With exactly-once, ``transactional_id`` is the member's name in the group. Also raises ``TopicError`` if a
        topic does not exist."""
        if transactional_id is not None and self.transactional:
            client_id = transactional_id
        member: GroupMember
        if application is not None:
            member = StreamsGroupMember(self._settings, client_id, group, application)
        else:
            member = KafkaMember(self._settings, client_id, group, topics, user_data, assign, instance_id)
        with self._mutex:
            self._members[member] = group
        return member

    def _has_joined(self, group: str) -> bool:
        """Whether the group has a member of this client, as far as the client knows."""
        with self._mutex:
            members = [member for member, of_group in self._members.items() if of_group == group]
        return any(member.can_commit() for member in members)

    def close(self) -> None:
        with self._mutex:
            admins, self._admins = self._admins, []
            connection, self._transaction_connection = self._transaction_connection, None
        for admin in admins:
            admin.close()
        if connection is not None:
            connection.close()

    def _transactions(self) -> TransactionConnection:
        """The connection for requests about transactions, with the producers' login."""
        with self._mutex:
            if self._transaction_connection is None:
                connection = GroupConnection(self._settings, f"{self._admin_id}-transactions", "", "producer")
                self._transaction_connection = TransactionConnection(connection)
            return self._transaction_connection

    @property
    def _client(self) -> AdminClient:
        return self._shared_client.current

    def _make_client(self) -> AdminClient:
        self._settings.check()
        client_settings = {**self._settings.admin(self._admin_id), "error_cb": self._errors}
        try:
            return AdminClient(client_settings)
        except KafkaException as exception:
            raise ConfigError(
                "Kafka's client cannot work with its settings",
                where=self.description,
                why=text(error_of(exception)),
            ) from None

    def _connect(self, timeout_s: float) -> None:
        """Make the first connection with librdkafka, which reports its errors at once, unlike kafka-python."""
        deadline = Deadline(SystemClock(), 1000 * timeout_s)
        while True:
            try:
                self.log_id = str(self._client.list_topics(timeout=_CONNECT_SLICE_S).cluster_id)
            except KafkaException as exception:
                self._client.poll(0)
                if self._errors.last is None and deadline.expired():
                    self._errors(error_of(exception))
                if self._errors.hopeless or deadline.expired():
                    raise cannot_connect(self._errors, self.description, timeout_s) from None
            else:
                self._errors.logs = True
                return


@dataclass(frozen=True, slots=True)
class KafkaAddress:
    """The address and settings of a cluster; picklable if its token provider is. Calling it connects."""

    bootstrap_servers: str
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    replication_factor: int
    exactly_once: bool
    client_settings: Mapping[str, Any] = field(repr=False)
    oauth_token_provider: TokenProvider | None = field(repr=False)
    client_id: str

    def __call__(self) -> KafkaBroker:
        """Connect. Raises the errors of ``KafkaBroker``."""
        return KafkaBroker(
            self.bootstrap_servers,
            session_timeout_ms=self.session_timeout_ms,
            heartbeat_interval_ms=self.heartbeat_interval_ms,
            max_poll_interval_ms=self.max_poll_interval_ms,
            replication_factor=self.replication_factor,
            exactly_once=self.exactly_once,
            client_settings=self.client_settings,
            oauth_token_provider=self.oauth_token_provider,
            client_id=self.client_id,
        )
