"""What goes wrong between us and Kafka, in words for people."""

from __future__ import annotations

import logging
from typing import Final

from confluent_kafka import KafkaError, KafkaException

from pystreams.clock import SystemClock
from pystreams.errors import BrokerError, BrokerUnavailableError, StreamsError, TopicError

log = logging.getLogger(__name__)

#: Nobody answers, or not now: the same may work later.
_UNAVAILABLE: Final = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._WAIT_COORD,
        KafkaError._WAIT_CACHE,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.NOT_CONTROLLER,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
        KafkaError._NOENT,  # no partition has a leader
    }
)
_UNKNOWN_TOPIC: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
)
_ACL: Final = "the user of this application needs the permission: an ACL of the cluster decides about it"
#: What to do about errors that trying again does not mend.
_HINTS: Final = {
    KafkaError.GROUP_AUTHORIZATION_FAILED: f"READ on the group; {_ACL}",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: f"CREATE, ALTER or DESCRIBE on the cluster; {_ACL}",
    KafkaError._AUTHENTICATION: "check sasl.mechanism, sasl.username and sasl.password",
    KafkaError.SASL_AUTHENTICATION_FAILED: "check sasl.mechanism, sasl.username and sasl.password",
    KafkaError._SSL: "check ssl.ca.location, and the certificates of both sides",
    KafkaError.INVALID_REPLICATION_FACTOR: "there are fewer brokers than replication_factor asks for",
    KafkaError.POLICY_VIOLATION: "the cluster has a policy for topics: create it by hand as the policy wants it",
    KafkaError.UNSUPPORTED_COMPRESSION_TYPE: "choose another compression.type",
}

#: Trying again does not help, and waiting for the timeout neither.
_HOPELESS: Final = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE})

#: A broker that is away is reported at every attempt to reach it.
_LOG_INTERVAL_S: Final = 30.0


def is_unknown_topic(error: KafkaError) -> bool:
    """True if the topic or partition does not exist (any more)."""
    return error.code() in _UNKNOWN_TOPIC


def is_unavailable(error: KafkaError) -> bool:
    """True if the same may work later."""
    return error.code() in _UNAVAILABLE


def failure(
    error: KafkaError, what: str, *, where: str, hint: str = "", needs: str = "READ or WRITE"
) -> StreamsError:
    """The error of pystreams for one of librdkafka. ``needs`` is the operation on a topic that was tried."""
    why = text(error)
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        hint = hint or f"{needs} on the topic; {_ACL}"
    hint = hint or _HINTS.get(error.code(), "")
    if is_unavailable(error):
        return BrokerUnavailableError(what, where=where, why=why, hint=hint)
    if is_unknown_topic(error):
        return TopicError(what, where=where, why=why, hint=hint or "create the topic, or mend its name")
    return BrokerError(what, where=where, why=why, hint=hint)


def error_of(exception: KafkaException) -> KafkaError:
    """The error that an exception carries."""
    error = exception.args[0]
    assert isinstance(error, KafkaError)
    return error


def text(error: KafkaError) -> str:
    """What librdkafka says, with the error's name."""
    return f"{error.str()} ({error.name()})"


class ErrorLog:
    """Is told by librdkafka about its connections' troubles; remembers the last, and logs each kind now and then."""

    def __init__(self, where: str, *, logs: bool = True) -> None:
        self._where = where
        self._clock = SystemClock()
        self._logged_s: dict[int, float] = {}
        self.logs = logs
        self.last: KafkaError | None = None

    def __call__(self, error: KafkaError) -> None:
        code = error.code()
        # That all are down follows after the news of each.
        if self.last is None or code != KafkaError._ALL_BROKERS_DOWN:
            self.last = error
        now_s = self._clock.monotonic_ms() / 1000
        if self.logs and now_s - self._logged_s.get(code, -_LOG_INTERVAL_S) >= _LOG_INTERVAL_S:
            self._logged_s[code] = now_s
            log.warning("%s: %s", self._where, text(error))

    @property
    def hopeless(self) -> bool:
        """True if the last error will not go away by itself."""
        return self.last is not None and (self.last.code() in _HOPELESS or _is_alert(self.last))


def _is_alert(error: KafkaError) -> bool:
    """The broker broke off a TLS connection on purpose: it wants a certificate, or another one."""
    return error.code() == KafkaError._TRANSPORT and "tls alert" in error.str()


def _is_tls(error: KafkaError) -> bool:
    """Also where the other side just hangs up: a listener that speaks plainly does, some of the time."""
    return error.code() == KafkaError._SSL or any(
        sign in error.str() for sign in ("tls alert", "SSL handshake failed", "in state SSL_HANDSHAKE")
    )


def cannot_connect(errors: ErrorLog, where: str, timeout_s: float) -> StreamsError:
    """Why the first connection failed, and what to look at."""
    error = errors.last
    if error is None:
        return BrokerUnavailableError(
            "Kafka does not answer",
            where=where,
            why=f"nothing came back within {timeout_s:g} s",
            hint="is this the address of a Kafka broker, and does security.protocol fit its listener?",
        )
    code, why = error.code(), text(error)
    if code == KafkaError._AUTHENTICATION:
        return BrokerError(
            "Kafka refuses the login",
            where=where,
            why=why,
            hint="check sasl.mechanism, sasl.username and sasl.password",
        )
    if _is_tls(error):
        return BrokerError(
            "No encrypted connection to Kafka can be made",
            where=where,
            why=why,
            hint="check security.protocol against the listener, ssl.ca.location against who signed the broker's"
            " certificate, its host names against bootstrap_servers; does the listener ask for a certificate of yours?",
        )
    if code == KafkaError._RESOLVE:
        return BrokerUnavailableError(
            "The address of Kafka is not known", where=where, why=why, hint="check bootstrap_servers"
        )
    return BrokerUnavailableError(
        "Kafka cannot be reached",
        where=where,
        why=why,
        hint="is it running, is bootstrap_servers right, and does security.protocol fit the listener?",
    )
