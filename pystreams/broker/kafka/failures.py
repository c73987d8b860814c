"""Turns errors of librdkafka into errors of pystreams, with messages for people."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

from pystreams.clock import SystemClock
from pystreams.errors import BrokerError, BrokerUnavailableError, StreamsError, TopicError

log = logging.getLogger(__name__)

T = TypeVar("T")

#: No broker answers, or not now: the same request may work later.
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
        KafkaError._DESTROY,  # the client has dropped the broker, because the others do not name it any more
    }
)
_UNKNOWN_TOPIC: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
)
_ACL: Final = "the login of this application needs this permission: an ACL of the cluster grants it"
#: Advice for errors that a retry does not solve.
_HINTS: Final = {
    KafkaError.GROUP_AUTHORIZATION_FAILED: f"READ on the group; {_ACL}",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: f"CREATE, ALTER or DESCRIBE on the cluster; {_ACL}",
    KafkaError._AUTHENTICATION: "check sasl.mechanism, sasl.username and sasl.password",
    KafkaError.SASL_AUTHENTICATION_FAILED: "check sasl.mechanism, sasl.username and sasl.password",
    KafkaError._SSL: "check ssl.ca.location, and the certificates of both sides",
    KafkaError.INVALID_REPLICATION_FACTOR: "the cluster has fewer brokers than replication_factor demands",
    KafkaError.POLICY_VIOLATION: "the cluster has a policy for topics: create the topic by hand in line with it",
    KafkaError.UNSUPPORTED_COMPRESSION_TYPE: "choose another compression.type",
}

#: Neither a retry nor waiting for the timeout helps.
_HOPELESS: Final = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE})

#: An unreachable broker is reported at every attempt to reach it; this is how often it is logged.
_LOG_INTERVAL_S: Final = 30.0


def is_unknown_topic(error: KafkaError) -> bool:
    """Whether the topic or partition does not exist (any more)."""
    return error.code() in _UNKNOWN_TOPIC


def is_unavailable(error: KafkaError) -> bool:
    """Whether the same request may work later."""
    return error.code() in _UNAVAILABLE


def failure(
    error: KafkaError, what: str, *, where: str, hint: str = "", needs: str = "READ or WRITE"
) -> StreamsError:
    """The error of pystreams for an error of librdkafka. ``needs`` is the permission on the topic for the operation."""
    why = text(error)
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        hint = hint or f"{needs} on the topic; {_ACL}"
    hint = hint or _HINTS.get(error.code(), "")
    if is_unavailable(error):
        return BrokerUnavailableError(what, where=where, why=why, hint=hint)
    if is_unknown_topic(error):
        return TopicError(what, where=where, why=why, hint=hint or "create the topic, or correct its name")
    return BrokerError(what, where=where, why=why, hint=hint)


def error_of(exception: KafkaException) -> KafkaError:
    """The error inside an exception."""
    error = exception.args[0]
    assert isinstance(error, KafkaError)
    return error


def served(call: Callable[[float], T], timeout_s: float) -> T:
    """Call a method of a client that may call its callbacks, and that raises a fatal error of the client. If a callback
    runs at that moment, confluent-kafka raises a ``SystemError`` instead, with or without the error as its cause.
    Raises ``KafkaException`` in all three cases."""
    try:
        return call(timeout_s)
    except SystemError as error:
        if error.__cause__ is None:
            raise KafkaException(KafkaError(KafkaError._FATAL)) from None
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from None
        raise


def text(error: KafkaError) -> str:
    """The message of librdkafka, with the error's name."""
    return f"{error.str()} ({error.name()})"


class ErrorLog:
    """Receives librdkafka's connection errors; keeps the last one, and logs each kind from time to time."""

    def __init__(self, where: str, *, logs: bool = True) -> None:
        self._where = where
        self._clock = SystemClock()
        self._logged_s: dict[int, float] = {}
        self.logs = logs
        self.last: KafkaError | None = None
        #: How many errors were received.
        self.count = 0

    def __call__(self, error: KafkaError) -> None:
        self.count += 1
        code = error.code()
        # ALL_BROKERS_DOWN only follows the errors of the single brokers: keep those.
        if self.last is None or code != KafkaError._ALL_BROKERS_DOWN:
            self.last = error
        now_s = self._clock.monotonic_ms() / 1000
        if self.logs and now_s - self._logged_s.get(code, -_LOG_INTERVAL_S) >= _LOG_INTERVAL_S:
            self._logged_s[code] = now_s
            log.warning("%s: %s", self._where, text(error))

    @property
    def hopeless(self) -> bool:
        """Whether the last error will not go away by itself."""
        return self.last is not None and (self.last.code() in _HOPELESS or _is_alert(self.last))


class LostConnections(logging.Handler):
    """Counts the connections that a client of librdkafka loses while requests may be on their way. librdkafka repeats
    these requests by itself, and reports such a loss only in its log: see ``settings``."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a client whose connections are counted while it is polled."""
        # Nobody else reads this log. A loss has the level 6 (info).
        logger = logging.Logger("librdkafka")  # noqa: LOG001
        logger.addHandler(self)
        return {"logger": logger, "log_level": 6}

    def emit(self, record: logging.LogRecord) -> None:
        """A line of the log. Only in the state UP can requests be on their way."""
        text = record.getMessage()
        if text.startswith("FAIL") and "in state UP" in text:
            self.count += 1


def _is_alert(error: KafkaError) -> bool:
    """Whether the broker ended a TLS connection on purpose: it demands a certificate, or another one."""
    return error.code() == KafkaError._TRANSPORT and "tls alert" in error.str()


def _is_tls(error: KafkaError) -> bool:
    """Whether it is a TLS error, including a closed connection: a plaintext listener sometimes just closes it."""
    return error.code() == KafkaError._SSL or any(
        sign in error.str() for sign in ("tls alert", "SSL handshake failed", "in state SSL_HANDSHAKE")
    )


def cannot_connect(errors: ErrorLog, where: str, timeout_s: float) -> StreamsError:
    """The error for a failed first connection, with advice."""
    error = errors.last
    if error is None:
        return BrokerUnavailableError(
            "Kafka does not answer",
            where=where,
            why=f"no answer came within {timeout_s:g} s",
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
            "An encrypted connection to Kafka cannot be made",
            where=where,
            why=why,
            hint="compare security.protocol with the listener, ssl.ca.location with the issuer of the broker's"
            " certificate, its host names with bootstrap_servers; does the listener demand a client certificate?",
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
