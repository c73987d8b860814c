"""Remembers records that the broker refused after they were sent, so that the next attempt refuses them at once.

A refusal arrives long after the step that wrote the record, and it concerns all records of a batch. So the work since
the last commit is repeated up to three times. First, with checks of the topic's rules (its size limit, whether it needs
keys), which predict most refusals. If the topic still refuses records, with each record in its own batch. Then without
the faulty records. When a faulty record is sent again, ``send`` refuses it, and the production handler is called only
for this record, with its step, its task and its input.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from confluent_kafka import KafkaError

from pystreams.broker.kafka.failures import text
from pystreams.broker.port import TopicDescription
from pystreams.clock import Clock
from pystreams.errors import BrokerError, BrokerUnavailableError
from pystreams.record import Headers

log = logging.getLogger(__name__)

#: Errors caused by one record of the batch; the broker does not reliably say which one.
_FAULTY: Final = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError._INVALID_DIFFERENT_RECORD,
    }
)

#: The size of a batch without its records. Source: DefaultRecordBatch.RECORD_BATCH_OVERHEAD.
_BATCH_OVERHEAD_BYTES: Final = 61

#: Topics may be altered, especially after refusals: rules older than this are read again before they refuse a record.
_RULES_KEPT_MS: Final = 30_000.0


class Sent(NamedTuple):
    """A record with the arguments of ``send``."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules of a topic. ``bytes_max`` None: the limit is not known."""

    bytes_max: int | None
    wants_keys: bool
    asked_ms: float


class RefusedRecords:
    """The refused records of one producer. ``describe`` reads topics from the cluster. With ``compresses`` the final
    size of a record is not known, so no record is refused for its size."""

    def __init__(
        self,
        describe: Callable[[Collection[str]], Mapping[str, TopicDescription]],
        clock: Clock,
        *,
        compresses: bool = False,
    ) -> None:
        self._describe = describe
        self._clock = clock
        self._compresses = compresses
        self._rules: dict[str, _Rules | None] = {}  # None: to be read
        self._faulty: dict[Sent, str] = {}
        self._found: dict[Sent, str] = {}  # faulty records of the current attempt
        self._suspects: set[str] = set()  # topics that refuse records although their rules are met
        #: Whether each record is sent in a batch of its own, to find the faulty ones.
        self.singly = False

    def __bool__(self) -> bool:
        return bool(self._rules or self._faulty)

    def note(self, error: KafkaError, topic: str, record: Sent | None) -> bool:
        """Record a refusal. Returns whether another attempt makes sense, because the refusal was not known before.
        ``record`` is given while records are sent ``singly``."""
        if error.code() not in _FAULTY:
            return False
        if self._rules.setdefault(topic, None) is None:
            return True
        if record is None:
            self._suspects.add(topic)
            return True
        self._found[record] = text(error)
        return record not in self._faulty

    def learn(self) -> None:
        """Before the next attempt, read the rules of topics that have refused records. If this fails now, the refusal
        will occur again."""
        self.singly |= bool(self._suspects)
        self._faulty.update(self._found)
        self._found.clear()
        for topic, rules in list(self._rules.items()):
            if rules is None or topic in self._suspects:
                self._rules[topic] = self._ask(topic) or rules
        self._suspects.clear()

    def after_commit(self) -> bool:
        """Called after a commit without the faulty records. Returns whether records may share batches again."""
        searched, self.singly = self.singly, False
        self._faulty.clear()
        return searched

    @property
    def batch_bytes_max(self) -> int | None:
        """The maximum size of a batch: the smallest limit of a topic that has refused one."""
        limits = (rules.bytes_max for rules in self._rules.values() if rules is not None)
        return min((limit for limit in limits if limit is not None), default=None)

    def reason(self, record: Sent) -> str:
        """Why this record would be refused; empty if there is no known reason."""
        topic = record.topic
        rules = self._rules.get(topic)
        if rules is not None and (why := self._forbidden(rules, record)):
            if self._clock.monotonic_ms() - rules.asked_ms < _RULES_KEPT_MS:
                return why
            rules = self._rules[topic] = self._ask(topic) or rules
            if why := self._forbidden(rules, record):
                return why
        return self._faulty.get(record, "") if self._faulty else ""

    def _forbidden(self, rules: _Rules, record: Sent) -> str:
        topic, key, value, _, headers = record
        if rules.wants_keys and key is None:
            return f"it has no key, and topic {topic} is compacted"
        limit = rules.bytes_max
        if limit is None or self._compresses or (size := batch_bytes(key, value, headers)) <= limit:
            return ""
        return f"it has {size:,} bytes, and max.message.bytes of topic {topic} is {limit:,}"

    def _ask(self, topic: str) -> _Rules | None:
        """The rules of a topic; None if the cluster does not answer now."""
        config: Mapping[str, str] = {}
        try:
            found = self._describe([topic])
            if topic in found:
                config = found[topic].config
        except BrokerError as error:
            log.warning("the rules of topic %s are not known: %s", topic, error)
            if isinstance(error, BrokerUnavailableError):
                return None
        limit = config.get("max.message.bytes")
        return _Rules(
            None if limit is None else int(limit),
            "compact" in config.get("cleanup.policy", ""),
            self._clock.monotonic_ms(),
        )


def batch_bytes(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """The size of a batch with only this record, not compressed. Source: DefaultRecord.sizeInBytes."""
    body = 3 + _field_bytes(key) + _field_bytes(value) + _varint_bytes(len(headers))
    body += sum(_field_bytes(name.encode()) + _field_bytes(content) for name, content in headers)
    return _BATCH_OVERHEAD_BYTES + _varint_bytes(body) + body


def _field_bytes(data: bytes | None) -> int:
    return 1 if data is None else _varint_bytes(len(data)) + len(data)


def _varint_bytes(number: int) -> int:
    """The size of a length as a zigzag varint."""
    return max(1, ((number << 1).bit_length() + 6) // 7)
