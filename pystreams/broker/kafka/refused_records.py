"""Records that the broker refused after they were sent, remembered so that the next attempt refuses them at once.

A refusal comes when the step that wrote the record has long gone on, and it strikes all records of a batch. So what was
done since the last commit is done again, with batches that the topic takes, or with every record in a batch of its own
to find the faulty one. When that comes by once more, ``send`` refuses it, and the production handler hears of it with
its step, its task and its input, and of no other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from confluent_kafka import KafkaError, Message

from pystreams.broker.kafka.failures import text
from pystreams.errors import BrokerError
from pystreams.record import Headers

log = logging.getLogger(__name__)

#: The fault of one record of the batch; librdkafka does not tell of which one.
_FAULTY: Final = frozenset(
    {KafkaError.INVALID_RECORD, KafkaError.INVALID_TIMESTAMP, KafkaError._INVALID_DIFFERENT_RECORD}
)

#: What a batch costs without its records. Source: DefaultRecordBatch.RECORD_BATCH_OVERHEAD.
_BATCH_OVERHEAD_BYTES: Final = 61

_Record = tuple[str, bytes | None, bytes | None]


class RefusedRecords:
    """What one producer has learnt. ``limit_of`` asks the cluster for a topic's ``max.message.bytes``."""

    def __init__(self, limit_of: Callable[[str], int]) -> None:
        self._limit_of = limit_of
        self._limits: dict[str, int | None] = {}  # None: to be asked for
        self._faulty: dict[_Record, str] = {}
        self._suspects = False
        #: A faulty record is looked for: batches of more than one record would hide it.
        self.singly = False

    def __bool__(self) -> bool:
        return bool(self._limits or self._faulty)

    def note(self, error: KafkaError, message: Message) -> bool:
        """True if another attempt makes sense: what is refused was not known to be so."""
        topic = message.topic() or ""
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return self._limits.setdefault(topic, None) is None
        if error.code() in _FAULTY:
            if not self.singly:
                self._suspects = True
                return True
            record = topic, message.key(), message.value()
            known = record in self._faulty
            self._faulty[record] = text(error)
            return not known
        return False

    def learn(self) -> None:
        """Before the next attempt: ask for the limits of topics that have refused something. What cannot be learnt now
        is refused once more."""
        self.singly |= self._suspects
        self._suspects = False
        for topic in [topic for topic, limit in self._limits.items() if limit is None]:
            try:
                self._limits[topic] = self._limit_of(topic)
            except BrokerError as error:
                log.warning("the limit of topic %s is not known: %s", topic, error)

    @property
    def batch_bytes_max(self) -> int | None:
        """No batch may be larger: the smallest limit of a topic that has refused one."""
        return min((limit for limit in self._limits.values() if limit is not None), default=None)

    def reason(self, topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> str:
        """Why this record would be refused; empty if nothing is known against it. Its size counts before compression:
        what that will save is not known."""
        limit = self._limits.get(topic)
        if limit is not None and (size := batch_bytes(key, value, headers)) > limit:
            return f"it takes {size:,} bytes, and max.message.bytes of topic {topic} is {limit:,}"
        return self._faulty.get((topic, key, value), "") if self._faulty else ""


def batch_bytes(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """The bytes of a batch with nothing but this record. Source: DefaultRecord.sizeInBytes."""
    body = 3 + _field_bytes(key) + _field_bytes(value) + _varint_bytes(len(headers))
    body += sum(_field_bytes(name.encode()) + _field_bytes(content) for name, content in headers)
    return _BATCH_OVERHEAD_BYTES + _varint_bytes(body) + body


def _field_bytes(data: bytes | None) -> int:
    return 1 if data is None else _varint_bytes(len(data)) + len(data)


def _varint_bytes(number: int) -> int:
    """Of a length, written as a zigzag varint."""
    return max(1, ((number << 1).bit_length() + 6) // 7)
