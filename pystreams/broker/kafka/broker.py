"""Kafka as a broker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from pystreams.broker.kafka.admin import KafkaAdmin
from pystreams.broker.kafka.consumer import KafkaConsumer
from pystreams.broker.kafka.failures import ErrorLog, cannot_connect, error_of
from pystreams.broker.kafka.member import KafkaMember
from pystreams.broker.kafka.producer import KafkaProducer
from pystreams.broker.kafka.settings import KafkaSettings
from pystreams.broker.port import Assign
from pystreams.clock import Clock, Deadline, SystemClock

_CONNECT_SLICE_S = 0.5


class KafkaBroker:
    """A Kafka cluster. See ``port.Broker``.

    ``connection`` has security and socket settings by their names in ``settings.CONNECTION_SETTINGS``; both clients
    get them. At least once: outputs are flushed before offsets are committed.

    Raises ``BrokerUnavailableError`` if nobody answers, ``BrokerError`` if the login is refused, ``ConfigError`` for
    unknown settings.
    """

    transactional = False

    def __init__(
        self,
        bootstrap_servers: str,
        clock: Clock | None = None,
        *,
        session_timeout_ms: int = 45_000,
        heartbeat_interval_ms: int = 3_000,
        max_poll_interval_ms: int = 300_000,
        replication_factor: int = -1,
        connection: Mapping[str, str] | None = None,
        connect_timeout_s: float = 5.0,
    ) -> None:
        self._settings = KafkaSettings(
            bootstrap_servers,
            session_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=heartbeat_interval_ms,
            max_poll_interval_ms=max_poll_interval_ms,
            replication_factor=replication_factor,
            connection=connection or {},
        )
        self._clock = SystemClock() if clock is None else clock
        self._errors = ErrorLog(self.description, logs=False)
        # One for all: it is thread-safe, and keeps connections of its own.
        told: dict[str, Any] = {**self._settings.librdkafka("pystreams-admin"), "error_cb": self._errors}
        self._client = AdminClient(told)
        self._mutex = threading.Lock()
        self._admins: list[KafkaAdmin] = []
        self._connect(connect_timeout_s)

    @property
    def description(self) -> str:
        return self._settings.description

    def admin(self) -> KafkaAdmin:
        admin = KafkaAdmin(self._client, self._settings, "pystreams-admin")
        with self._mutex:
            self._admins.append(admin)
        return admin

    def consumer(self, client_id: str) -> KafkaConsumer:
        return KafkaConsumer(self._settings.consumer(client_id), f"{client_id}, {self.description}")

    def producer(self, client_id: str, transactional_id: str) -> KafkaProducer:
        """``transactional_id`` will fence transactions; at least once needs none."""
        return KafkaProducer(
            self._settings.producer(client_id),
            f"{client_id}, {self.description}",
            self._clock,
            self.admin().end_offsets,
        )

    def member(
        self,
        client_id: str,
        group: str,
        topics: Collection[str],
        user_data: Callable[[], bytes],
        assign: Assign,
    ) -> KafkaMember:
        """Also raises ``TopicError`` if a topic does not exist."""
        return KafkaMember(self._settings, client_id, group, topics, user_data, assign)

    def close(self) -> None:
        with self._mutex:
            admins, self._admins = self._admins, []
        for admin in admins:
            admin.close()

    def _connect(self, timeout_s: float) -> None:
        """Have librdkafka make the first connection: unlike kafka-python it tells at once what is wrong with it."""
        deadline = Deadline(SystemClock(), 1000 * timeout_s)
        while True:
            try:
                self._client.list_topics(timeout=_CONNECT_SLICE_S)
            except KafkaException as exception:
                self._client.poll(0)
                if self._errors.last is None and deadline.expired():
                    self._errors(error_of(exception))
                if self._errors.hopeless or deadline.expired():
                    raise cannot_connect(self._errors, self.description, timeout_s) from None
            else:
                self._errors.logs = True
                return
