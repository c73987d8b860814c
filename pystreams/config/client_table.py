"""Every setting of Kafka's clients by its Java name, and how pystreams treats it.

The names are those of ConsumerConfig, ProducerConfig and AdminClientConfig 4.3.1, with the defaults of Kafka Streams.
The clients get every default explicitly, because librdkafka's own defaults differ from Java's in harmful ways. A range
is the overlap of Java's and librdkafka's ranges. Login and encryption are in ``security_table.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pystreams.config.client_setting import (
    ADMIN,
    ALL,
    CONSUMER,
    PRODUCER,
    ClientSetting,
    own,
    passed_on,
    refused,
    same,
)
from pystreams.config.offset_reset import offset_reset
from pystreams.config.security_table import SECURITY_SETTINGS
from pystreams.config.values import INT_MAX, any_text, choice, duration, flag, number, servers, size, text

_HOUR_MS: Final = 3_600_000
_MEMBER_ONLY: Final = "only the main consumer is a member of the group: give it without {prefix}"
_ONE_CLUSTER: Final = "all clients use one cluster: give it without {prefix}"


def _thrice(value: str) -> str:
    """How long librdkafka keeps metadata: three refresh intervals, as by its default."""
    return str(min(3 * int(value), 24 * _HOUR_MS))


def _no_negative(value: str) -> str:
    """Java's -1 (the system's buffer, never) is librdkafka's 0."""
    return str(max(0, int(value)))


def _largest_message(value: str) -> str:
    """A fetch of librdkafka needs room for one message, but only producers have a message size."""
    return str(min(int(value), 1_000_000))


def _at_least_one(value: str) -> str:
    """To send each record at once, Java takes a batch size of 0, librdkafka of one byte."""
    return str(max(1, int(value)))


def _kib(value: str) -> str:
    return str(-(-int(value) // 1024))


def _safe(value: object) -> str:
    if str(value).strip().lower() not in ("all", "-1"):
        raise ValueError("all: with less, changelogs could lose acknowledged records")
    return "all"


def _idempotent(value: object) -> bool:
    if not flag(value):
        raise ValueError(
            "true: without it, a repeated request could write an older value of a changelog after a newer one"
        )
    return True


def _ordered(value: object) -> int:
    try:
        in_flight: int = number(1, maximum=5)(value)
    except ValueError as error:
        raise ValueError(f"{error}: with more than 5 the broker does not keep the order of records") from None
    return in_flight


_CONNECTION: Final[Mapping[str, ClientSetting]] = {
    "bootstrap.servers": own(
        ALL,
        servers,
        None,
        "the addresses of the Kafka brokers",
        held_by="bootstrap_servers",
        only=_ONE_CLUSTER,
    ),
    "client.id": own(
        ALL,
        text,
        None,
        "the prefix of all clients' and threads' names",
        held_by="client_id",
        only="each client's id consists of it and the client's purpose: give it without {prefix}",
    ),
    "client.dns.lookup": passed_on(
        ALL,
        choice("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
        "use_all_dns_ips",
        "client.dns.lookup",
        "client_dns_lookup",
    ),
    "connections.max.idle.ms": passed_on(
        ALL,
        duration(1, -1, INT_MAX),
        {"consumer": "540000", "producer": "540000", "admin": "300000"},
        {"connections.max.idle.ms": _no_negative},
        "connections_max_idle_ms",
    ),
    "enable.metrics.push": passed_on(ALL, flag, "true", "enable.metrics.push"),
    "metadata.max.age.ms": passed_on(
        ALL,
        duration(1, maximum=_HOUR_MS),
        "300000",
        {"topic.metadata.refresh.interval.ms": same, "metadata.max.age.ms": _thrice},
        "metadata_max_age_ms",
    ),
    "metadata.recovery.strategy": passed_on(
        ALL, choice("rebootstrap", "none"), "rebootstrap", "metadata.recovery.strategy"
    ),
    "metadata.recovery.rebootstrap.trigger.ms": passed_on(
        ALL, duration(0, maximum=INT_MAX), "300000", "metadata.recovery.rebootstrap.trigger.ms"
    ),
    "receive.buffer.bytes": passed_on(
        ALL, size(0, -1, 100_000_000), "-1", {"socket.receive.buffer.bytes": _no_negative}
    ),
    "send.buffer.bytes": passed_on(
        ALL, size(0, -1, 100_000_000), "-1", {"socket.send.buffer.bytes": _no_negative}
    ),
    "reconnect.backoff.ms": passed_on(
        ALL, duration(0, maximum=_HOUR_MS), "50", "reconnect.backoff.ms", "reconnect_backoff_ms"
    ),
    "reconnect.backoff.max.ms": passed_on(
        ALL, duration(0, maximum=_HOUR_MS), "1000", "reconnect.backoff.max.ms", "reconnect_backoff_max_ms"
    ),
    "request.timeout.ms": passed_on(
        ALL, duration(10, maximum=300_000), "30000", "socket.timeout.ms", "request_timeout_ms"
    ),
    "retry.backoff.ms": passed_on(
        ALL, duration(1, maximum=300_000), "100", "retry.backoff.ms", "retry_backoff_ms"
    ),
    "retry.backoff.max.ms": passed_on(ALL, duration(1, maximum=300_000), "1000", "retry.backoff.max.ms"),
    "socket.connection.setup.timeout.ms": passed_on(
        ALL,
        duration(1_000, maximum=INT_MAX),
        "10000",
        "socket.connection.setup.timeout.ms",
        "socket_connection_setup_timeout_ms",
    ),
    **refused(
        ALL,
        "socket.connection.setup.timeout.max.ms",
        why="librdkafka gives every attempt the same time: set socket.connection.setup.timeout.ms",
    ),
    **refused(
        CONSUMER + ADMIN,
        "default.api.timeout.ms",
        why="calls that time out are repeated until task_timeout_ms is over",
    ),
    **refused(
        ADMIN,
        "bootstrap.controllers",
        why="pystreams connects to brokers, not to controllers: set bootstrap_servers",
    ),
    **refused(
        ALL,
        "config.providers",
        why="values come from the program, the environment or the command line, not from Java classes",
    ),
    **refused(
        ALL,
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        why="Kafka's clients here do not have Java's metrics; the application's metrics are in Streams.metrics",
    ),
}

_CONSUMER: Final[Mapping[str, ClientSetting]] = {
    "auto.offset.reset": own(
        CONSUMER,
        offset_reset,
        "earliest",
        "applied when a task is opened; the other consumers know their positions",
        held_by="auto_offset_reset",
        only=_MEMBER_ONLY,
    ),
    "check.crcs": passed_on(CONSUMER, flag, "true", "check.crcs"),
    "client.rack": passed_on(CONSUMER, any_text, "", "client.rack"),
    "fetch.max.bytes": passed_on(
        CONSUMER,
        size(1_024, maximum=2_147_483_135),
        "52428800",
        {"fetch.max.bytes": same, "message.max.bytes": _largest_message},
    ),
    "fetch.max.wait.ms": passed_on(
        CONSUMER,
        duration(0, maximum=300_000),
        # Before a task can start, these two read to the end, which is known when the broker has waited for more.
        {"consumer": "500", "restore.consumer": "100", "global.consumer": "100"},
        "fetch.wait.max.ms",
    ),
    "fetch.min.bytes": passed_on(CONSUMER, size(1, maximum=100_000_000), "1", "fetch.min.bytes"),
    "max.partition.fetch.bytes": passed_on(
        CONSUMER, size(1, maximum=1_000_000_000), "1048576", "max.partition.fetch.bytes"
    ),
    "isolation.level": passed_on(
        CONSUMER,
        choice("read_uncommitted", "read_committed"),
        # Records that a killed or superseded hand-over wrote to a changelog are aborted: they are not state.
        {"consumer": "read_uncommitted", "restore.consumer": "read_committed"},
        "isolation.level",
    ),
    "max.poll.records": own(
        CONSUMER,
        number(1, maximum=100_000),
        None,
        "the most records that one poll returns; the default is 500",
    ),
    "group.instance.id": own(
        CONSUMER,
        text,
        None,
        "static membership",
        held_by="group_instance_id",
        only=_MEMBER_ONLY,
    ),
    "session.timeout.ms": own(
        CONSUMER,
        duration(1, maximum=INT_MAX),
        "45000",
        "kafka-python `session_timeout_ms`",
        held_by="session_timeout_ms",
        only=_MEMBER_ONLY,
    ),
    "heartbeat.interval.ms": own(
        CONSUMER,
        duration(1, maximum=INT_MAX),
        "3000",
        "kafka-python `heartbeat_interval_ms`",
        held_by="heartbeat_interval_ms",
        only=_MEMBER_ONLY,
    ),
    "max.poll.interval.ms": own(
        CONSUMER,
        duration(1, maximum=INT_MAX),
        "300000",
        "kafka-python `max_poll_interval_ms`",
        held_by="max_poll_interval_ms",
        only=_MEMBER_ONLY,
    ),
    **refused(
        CONSUMER,
        "enable.auto.commit",
        "auto.commit.interval.ms",
        why="offsets are committed together with state and outputs: set commit_interval_ms",
    ),
    **refused(
        CONSUMER,
        "partition.assignment.strategy",
        "group.remote.assignor",
        why="pystreams itself assigns tasks, to where their state is",
    ),
    **refused(
        CONSUMER,
        "allow.auto.create.topics",
        why="a misspelt topic would be created instead of being reported",
    ),
    **refused(CONSUMER, "group.id", why="the group is named by application_id"),
    **refused(CONSUMER, "exclude.internal.topics", why="patterns never match Kafka's own topics"),
    **refused(
        CONSUMER,
        "group.protocol",
        why="the main consumer follows group_protocol, which is classic; the other consumers are in no group",
    ),
    **refused(
        CONSUMER, "internal.throw.on.fetch.stable.offset.unsupported", why="it is internal to the Java client"
    ),
    **refused(
        CONSUMER,
        "share.acknowledgement.mode",
        "share.acquire.mode",
        why="it is for share groups, which do not keep order, so that no task could keep state",
    ),
    **refused(
        CONSUMER,
        "key.deserializer",
        "value.deserializer",
        why="types are given where a topic is read: key=, value=, or default_key_serde and default_value_serde",
    ),
    **refused(
        CONSUMER + PRODUCER,
        "interceptor.classes",
        why="it names Java classes; a step of the topology (peek, map) sees every record",
    ),
}

_PRODUCER: Final[Mapping[str, ClientSetting]] = {
    "acks": passed_on(PRODUCER, _safe, "all", "acks"),
    "batch.size": passed_on(PRODUCER, size(0, maximum=INT_MAX), "1000000", {"batch.size": _at_least_one}),
    "buffer.memory": passed_on(
        PRODUCER, size(1_024, maximum=2**40), "33554432", {"queue.buffering.max.kbytes": _kib}
    ),
    "compression.type": passed_on(
        PRODUCER, choice("none", "gzip", "snappy", "lz4", "zstd"), "none", "compression.type"
    ),
    "compression.gzip.level": own(
        PRODUCER, number(1, besides=-1, maximum=9), None, "librdkafka `compression.level`, with gzip"
    ),
    "compression.lz4.level": own(
        PRODUCER, number(1, maximum=12), None, "librdkafka `compression.level`, with lz4"
    ),
    "compression.zstd.level": own(
        PRODUCER, number(1, maximum=12), None, "librdkafka `compression.level`, with zstd"
    ),
    "delivery.timeout.ms": passed_on(PRODUCER, duration(1, maximum=INT_MAX), "120000", "delivery.timeout.ms"),
    "enable.idempotence": passed_on(PRODUCER, _idempotent, "true", "enable.idempotence"),
    "linger.ms": passed_on(PRODUCER, duration(0, maximum=900_000), "100", "linger.ms"),
    "max.block.ms": own(
        PRODUCER, duration(0), "60000", "how long a write waits for room in the full local queue"
    ),
    "max.in.flight.requests.per.connection": passed_on(
        PRODUCER, _ordered, "5", "max.in.flight.requests.per.connection"
    ),
    "max.request.size": passed_on(
        PRODUCER, size(1_000, maximum=1_000_000_000), "1048576", "message.max.bytes"
    ),
    "transaction.timeout.ms": own(
        PRODUCER,
        duration(1_000, maximum=INT_MAX),
        "10000",
        "librdkafka `transaction.timeout.ms`, with `processing_guarantee=exactly_once_v2`",
    ),
    "retries": passed_on(PRODUCER, number(1, maximum=INT_MAX), str(INT_MAX), "message.send.max.retries"),
    **refused(
        PRODUCER,
        "metadata.max.idle.ms",
        why="librdkafka keeps the metadata of every topic that was written to",
    ),
    **refused(
        PRODUCER,
        "partitioner.class",
        "partitioner.ignore.keys",
        why="the murmur2 hash of the key chooses the partition, as in Java, so that joins are co-partitioned;"
        " a sink chooses otherwise with partitioner=",
    ),
    **refused(
        PRODUCER,
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        why="librdkafka spreads records without keys randomly over the available partitions",
    ),
    **refused(
        PRODUCER,
        "key.serializer",
        "value.serializer",
        why="types are given where a topic is written: key=, value=, or default_key_serde and default_value_serde",
    ),
    **refused(
        PRODUCER,
        "transactional.id",
        why="each thread has its own, which begins with application_id; processing_guarantee=exactly_once_v2 uses it",
    ),
    **refused(
        PRODUCER,
        "transaction.two.phase.commit.enable",
        why="a thread's transactions have no other participant",
    ),
}

#: How pystreams treats each setting, by its Java name.
CLIENT_SETTINGS: Final[Mapping[str, ClientSetting]] = {
    **_CONNECTION,
    **SECURITY_SETTINGS,
    **_CONSUMER,
    **_PRODUCER,
}
