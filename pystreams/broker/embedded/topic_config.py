"""Kafka's topic settings: those that the embedded log supports, and those that have no effect in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pystreams.errors import ConfigError
from pystreams.nearest import did_you_mean

N = TypeVar("N", int, float)

#: Settings that the embedded log supports, with Kafka's defaults. This includes ``max.message.bytes``, so that an
#: application learns about too large records before it moves to Kafka.
DEFAULTS: Mapping[str, str] = {
    "cleanup.policy": "delete",
    "delete.retention.ms": "86400000",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
}

#: Settings of Kafka that are stored but have no effect: this log has no replicas, segments or codecs.
WITHOUT_EFFECT = frozenset(
    {
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "file.delete.delay.ms",
        "flush.messages",
        "flush.ms",
        "follower.replication.throttled.replicas",
        "index.interval.bytes",
        "leader.replication.throttled.replicas",
        "local.retention.bytes",
        "local.retention.ms",
        "max.compaction.lag.ms",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "min.insync.replicas",
        "preallocate",
        "remote.storage.enable",
        "segment.bytes",
        "segment.index.bytes",
        "segment.jitter.ms",
        "segment.ms",
        "unclean.leader.election.enable",
    }
)


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """A topic's parsed settings. -1 in ``retention_ms`` and ``retention_bytes``: no limit."""

    deletes: bool
    compacts: bool
    retention_ms: int
    retention_bytes: int
    delete_retention_ms: int
    max_message_bytes: int
    min_compaction_lag_ms: int
    min_dirty_ratio: float
    log_append_time: bool


def effective(config: Mapping[str, str]) -> dict[str, str]:
    """All settings of a topic: the given ones, and Kafka's defaults for the others."""
    return {**DEFAULTS, **config}


def parse(topic: str, config: Mapping[str, str]) -> TopicConfig:
    """The parsed settings. Raises ``ConfigError`` for a setting that Kafka does not have, or an invalid value."""
    for name in config:
        if name not in DEFAULTS and name not in WITHOUT_EFFECT:
            raise ConfigError(
                f"Kafka has no topic setting {name!r}",
                where=f"topic {topic}",
                hint=did_you_mean(name, [*DEFAULTS, *WITHOUT_EFFECT])
                or "see Kafka's topic configs for what there is",
            )
    reader = _Reader(topic, effective(config))
    policies = reader.choice("cleanup.policy", ("delete", "compact", "compact,delete", "delete,compact"))
    return TopicConfig(
        deletes="delete" in policies,
        compacts="compact" in policies,
        retention_ms=reader.number("retention.ms", int, -1),
        retention_bytes=reader.number("retention.bytes", int, -1),
        delete_retention_ms=reader.number("delete.retention.ms", int, 0),
        max_message_bytes=reader.number("max.message.bytes", int, 0),
        min_compaction_lag_ms=reader.number("min.compaction.lag.ms", int, 0),
        min_dirty_ratio=reader.number("min.cleanable.dirty.ratio", float, 0),
        log_append_time=reader.choice("message.timestamp.type", ("CreateTime", "LogAppendTime"))
        == "LogAppendTime",
    )


class _Reader:
    """Parses the values of a topic's settings. Its errors name the topic."""

    def __init__(self, topic: str, config: Mapping[str, str]) -> None:
        self._topic = topic
        self._config = config

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        value = self._config[name].replace(" ", "")
        if value not in allowed:
            raise self._wrong(name, f"one of {', '.join(allowed)}")
        return value

    def number(self, name: str, kind: Callable[[str], N], minimum: int) -> N:
        try:
            value = kind(self._config[name])
        except ValueError:
            raise self._wrong(name, "a number") from None
        if value < minimum:
            raise self._wrong(name, f"at least {minimum}")
        return value

    def _wrong(self, name: str, expected: str) -> ConfigError:
        return ConfigError(
            f"{name} is {self._config[name]!r}, expected {expected}",
            where=f"topic {self._topic}",
            hint="correct the topic's settings",
        )
