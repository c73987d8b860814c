"""One set of connection settings for both clients, by the names that Java's clients give them.

librdkafka and kafka-python name things differently, and their defaults differ from Java's in ways that bite: what
matters is set explicitly here.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final

from pystreams.errors import ConfigError

#: Where both clients' own log lines go.
CLIENT_LOG: Final = logging.getLogger("pystreams.kafka")

#: How long a connection may take to be made before people are told.
CONNECT_TIMEOUT_S: Final = 10.0

#: Setting -> kafka-python's name of it; librdkafka takes the setting's own name. What kafka-python has no counterpart
#: for is None.
CONNECTION_SETTINGS: Final[Mapping[str, str | None]] = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "ssl.crl.location": "ssl_crlfile",
    "ssl.cipher.suites": "ssl_ciphers",
    "ssl.endpoint.identification.algorithm": "ssl_check_hostname",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "reconnect.backoff.max.ms": "reconnect_backoff_max_ms",
    "connections.max.idle.ms": "connections_max_idle_ms",
}


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """How to reach a cluster, and how a member of a group behaves. Raises ``ConfigError`` for an unknown setting."""

    bootstrap_servers: str
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    replication_factor: int = -1
    #: By the names of ``CONNECTION_SETTINGS``. Passwords are in it, so it is in no ``repr``.
    connection: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for name in self.connection:
            if name not in CONNECTION_SETTINGS:
                nearest = get_close_matches(name, CONNECTION_SETTINGS, 1)
                raise ConfigError(
                    f"{name} is no setting of the connection to Kafka",
                    hint=f"did you mean {nearest[0]}?"
                    if nearest
                    else f"there are: {', '.join(CONNECTION_SETTINGS)}",
                )

    @property
    def description(self) -> str:
        """For people."""
        return f"Kafka at {self.bootstrap_servers}"

    def librdkafka(self, client_id: str) -> dict[str, Any]:
        """What every confluent-kafka client is told."""
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "client.id": client_id,
            "socket.keepalive.enable": True,
            "connections.max.idle.ms": 540_000,
            "allow.auto.create.topics": False,
            "logger": CLIENT_LOG,
            # Its own lines are about connections that come and go, at every attempt; errors are told to ``error_cb``.
            "log_level": 2,
            **self.connection,
        }

    def consumer(self, client_id: str) -> dict[str, Any]:
        """Reads what it is told to, from where it is told to."""
        return {
            **self.librdkafka(client_id),
            # Required, and unused: membership is kafka-python's.
            "group.id": client_id,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
            # The default of 1,000 ms makes a consumer 3 to 6 times slower.
            "fetch.queue.backoff.ms": 5,
        }

    def producer(self, client_id: str) -> dict[str, Any]:
        """Idempotent and in order, partitioned as Java does it."""
        return {
            **self.librdkafka(client_id),
            "enable.idempotence": True,
            "delivery.report.only.error": True,
            "partitioner": "murmur2_random",
            "message.max.bytes": 1_048_576,
            "queue.buffering.max.kbytes": 64 << 10,
            "linger.ms": 100,
            "delivery.timeout.ms": 120_000,
        }

    def membership(self, client_id: str) -> dict[str, Any]:
        """What kafka-python's network client is told."""
        given = {
            name: self.connection[setting]
            for setting, name in CONNECTION_SETTINGS.items()
            if name is not None and setting in self.connection
        }
        typed: dict[str, Any] = {
            name: int(value) if name.endswith("_ms") else value for name, value in given.items()
        }
        if "ssl_check_hostname" in typed:
            typed["ssl_check_hostname"] = typed["ssl_check_hostname"] != "none"
        return {
            "bootstrap_servers": self.bootstrap_servers.split(","),
            "client_id": client_id,
            "request_timeout_ms": 10_000,
            "reconnect_backoff_max_ms": 1_000,
            # All members' user data comes in one response to the leader.
            "receive_message_max_bytes": 100_000_000,
            "metrics": None,
            **typed,
        }
