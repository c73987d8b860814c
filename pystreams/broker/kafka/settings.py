"""One set of settings for both clients, by the names of Java's clients.

librdkafka and kafka-python have other names, and defaults that differ from Java's in harmful ways: all settings of
``config.client_table`` are set explicitly, and settings that only librdkafka has are set here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pystreams.broker.kafka.client_logs import CLIENT_LOG
from pystreams.broker.kafka.oauth import MemberTokens, TokenProvider, Tokens
from pystreams.broker.kafka.tls import tls_context
from pystreams.config.client_setting import ROLES, Role
from pystreams.config.client_settings import (
    client_security,
    client_settings,
    given_for,
    held_by_application,
)
from pystreams.config.client_table import CLIENT_SETTINGS
from pystreams.config.security import Security
from pystreams.config.values import INT_MAX

#: The timeout of the first connection. It is shorter than the time that services have to end, because a client cannot
#: be closed meanwhile.
CONNECT_TIMEOUT_S: Final = 20.0

#: Settings that only librdkafka has, for every client.
_COMMON: Final[Mapping[str, Any]] = {
    "socket.keepalive.enable": True,
    "allow.auto.create.topics": False,
    # Its own log lines report every connection attempt; errors come through ``error_cb``.
    "log_level": 2,
}
_CONSUMER: Final[Mapping[str, Any]] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # Positions are always given; a position that the log does not have is an error.
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    # The default of 1,000 ms makes a consumer 3 to 6 times slower.
    "fetch.queue.backoff.ms": 5,
}
_PRODUCER: Final[Mapping[str, Any]] = {
    "delivery.report.only.error": True,
    "partitioner": "murmur2_random",
}
#: The least time that a record has to be delivered: a first connection, or another leader, may take seconds.
_DELIVERY_MS_MIN: Final = 10_000
#: How long a topic that a broker does not know may still be one that was just created.
_TOPIC_IS_GONE_AFTER_MS: Final = 8_000
#: Shorter than Java's 30 s, so that members find another coordinator, and transactions another leader, sooner.
_SOON_TIMEOUT_MS: Final = 10_000
#: The leader receives the user data of all members in one response.
_MEMBER_RECEIVE_BYTES_MAX: Final = 100_000_000


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """How to connect to a cluster, and the timing of a group member. Raises ``ConfigError`` for invalid settings."""

    bootstrap_servers: str
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    replication_factor: int = -1
    #: Whether threads write in transactions, and all consumers read what is committed.
    exactly_once: bool = False
    #: Java's names, with prefixes. Not in ``repr``, because it contains passwords.
    client_settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    oauth_token_provider: TokenProvider | None = field(default=None, repr=False)
    _security: dict[Role, Security] = field(default_factory=dict, init=False, repr=False)
    _tokens: dict[Role, Tokens] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "client_settings", client_settings(self.client_settings))
        for name, value in held_by_application(self.client_settings).items():
            if name in ("session_timeout_ms", "heartbeat_interval_ms", "max_poll_interval_ms"):
                object.__setattr__(self, name, int(value))
        for role in ROLES:
            security = client_security(
                self.client_settings, role, has_token_provider=self.oauth_token_provider is not None
            )
            self._security[role] = security
            if security.settings.get("sasl.mechanism") == "OAUTHBEARER":
                self._tokens[role] = self._tokens_from(security)

    def _tokens_from(self, security: Security) -> Tokens:
        """The token cache of a source, shared by clients with the same source."""
        for role, tokens in self._tokens.items():
            other = self._security[role]
            if (other.tokens, other.extensions) == (security.tokens, security.extensions):
                return tokens
        provider = self.oauth_token_provider
        if provider is None:
            from pystreams.broker.kafka.token_sources import provider_of

            provider = provider_of(security.tokens)
        return Tokens(provider, security.extensions)

    @property
    def description(self) -> str:
        """The cluster, for people."""
        return f"Kafka at {self.bootstrap_servers}"

    def admin(self, client_id: str) -> dict[str, Any]:
        """The admin client's settings for librdkafka."""
        return self._librdkafka("admin", client_id)

    def consumer(self, client_id: str, role: Role = "main.consumer") -> dict[str, Any]:
        """The settings of a consumer whose partitions and positions are always assigned explicitly."""
        # A group is required but not used: kafka-python handles the membership.
        options = {**self._librdkafka(role, client_id), "group.id": client_id, **_CONSUMER}
        return {**options, "isolation.level": "read_committed"} if self.exactly_once else options

    def poll_records_max(self, role: Role) -> int | None:
        """The maximum number of records per poll; None: the best number."""
        given = given_for(self.client_settings, role).get("max.poll.records")
        return None if given is None else int(given)

    def producer(self, client_id: str) -> dict[str, Any]:
        """The settings of a producer that is idempotent, keeps the order, and partitions as Java does."""
        settings = self._security["producer"].settings
        options = {**self._librdkafka("producer", client_id), **_PRODUCER}
        # librdkafka has a second request timeout, for the brokers' wait for their followers.
        options["request.timeout.ms"] = settings["request.timeout.ms"]
        options["batch.size"] = int(options["batch.size"])
        level = settings.get(f"compression.{settings['compression.type']}.level")
        return options if level is None else {**options, "compression.level": level}

    def thread_producer(self, client_id: str) -> dict[str, Any]:
        """The settings of a stream thread's producer without transactions.

        Its records expire before the session does. A process that was frozen for a session finds them in its queue when
        it wakes up; another process may own the tasks by then, and an old value must not follow newer ones in a
        changelog.
        """
        settings = self.producer(client_id)
        # The last heartbeat of the member may be older than a record by one heartbeat interval.
        limit_ms = max(self.session_timeout_ms - self.heartbeat_interval_ms, _DELIVERY_MS_MIN)
        # librdkafka refuses a delivery timeout that the wait for a batch exceeds.
        limit_ms = max(limit_ms, int(settings["linger.ms"]) + 1)
        return {
            **settings,
            "delivery.timeout.ms": min(int(settings["delivery.timeout.ms"]), limit_ms),
            # A topic that was deleted is reported before its records expire, which would not name it.
            "topic.metadata.propagation.max.ms": _TOPIC_IS_GONE_AFTER_MS,
        }

    @property
    def transaction_timeout_ms(self) -> int:
        """The maximum duration of a thread's transaction."""
        return int(self._security["producer"].settings["transaction.timeout.ms"])

    def exactly_once_producer(self, client_id: str) -> dict[str, Any]:
        """The settings of a producer whose commits are transactions, without its transactional id."""
        settings = {**self.producer(client_id), "transaction.timeout.ms": self.transaction_timeout_ms}
        if "request.timeout.ms" not in given_for(self.client_settings, "producer"):
            settings["socket.timeout.ms"] = _SOON_TIMEOUT_MS
        return settings

    @property
    def producer_room_timeout_s(self) -> float:
        """How long a write waits for room in the local queue."""
        return float(self._security["producer"].settings["max.block.ms"]) / 1000

    def membership(self, client_id: str, role: Role = "main.consumer") -> dict[str, Any]:
        """The settings of kafka-python's network client. Raises ``ConfigError`` for certificates that cannot be
        read."""
        settings = self._security[role].settings
        options: dict[str, Any] = {
            row.member: int(settings[name]) if name.endswith(".ms") else settings[name]
            for name, row in CLIENT_SETTINGS.items()
            if row.member and name in settings
        }
        if "request.timeout.ms" not in given_for(self.client_settings, role):
            options["request_timeout_ms"] = _SOON_TIMEOUT_MS
        if "SSL" in settings["security.protocol"].split("_"):
            options["ssl_context"] = tls_context(settings)
        if role in self._tokens:
            options["sasl_oauth_token_provider"] = MemberTokens(self._tokens[role])
        # It belongs to the coordinator, and the network client ignores unknown settings silently.
        del options["retry_backoff_ms"]
        if options["connections_max_idle_ms"] < 0:  # never
            options["connections_max_idle_ms"] = INT_MAX
        name = options.get("sasl_plain_username")
        if name and options.get("sasl_mechanism", "").startswith("SCRAM"):
            # Escaped according to RFC 5802; librdkafka does this itself.
            options["sasl_plain_username"] = name.replace("=", "=3D").replace(",", "=2C")
        return {
            **options,
            # As with librdkafka, every attempt has the same time.
            "socket_connection_setup_timeout_max_ms": options["socket_connection_setup_timeout_ms"],
            "bootstrap_servers": self.bootstrap_servers.split(","),
            "client_id": client_id,
            "receive_message_max_bytes": _MEMBER_RECEIVE_BYTES_MAX,
            "metrics": None,
        }

    @property
    def member_retry_backoff_ms(self) -> int:
        """How long a member waits before it asks the coordinator again."""
        return int(self._security["main.consumer"].settings["retry.backoff.ms"])

    def check(self) -> None:
        """Do everything that can fail without a broker: read certificates, fetch tokens. The clients' own errors would
        be less precise.

        Raises ``ConfigError``, ``BrokerError``.
        """
        for role in ROLES:
            self.membership("", role)
        for tokens in self._tokens.values():
            tokens.get()

    def _librdkafka(self, role: Role, client_id: str) -> dict[str, Any]:
        settings = self._security[role].settings
        options: dict[str, Any] = {"bootstrap.servers": self.bootstrap_servers, "client.id": client_id}
        for name, value in settings.items():
            row = CLIENT_SETTINGS.get(name)
            properties: Mapping[str, Callable[[str], str]] = (
                row.librdkafka if row is not None else {name: str}
            )
            options.update({prop: convert(value) for prop, convert in properties.items() if value != ""})
        if role in self._tokens:
            options["oauth_cb"] = self._tokens[role].for_librdkafka
        return {**options, **_COMMON, "logger": CLIENT_LOG}
