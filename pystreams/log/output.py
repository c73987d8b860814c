"""What a program writes to one topic, as the log takes it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from pystreams.broker.port import TopicDescription, check_headers, retention_of
from pystreams.clock import Clock
from pystreams.errors import SerializationError
from pystreams.log.content import ContentWriter
from pystreams.log.topics import chosen_partitions
from pystreams.record import Headers, Record
from pystreams.times import Time, show_time, to_ms
from pystreams.timestamps import ConsumedRecord

log = logging.getLogger(__name__)

#: Headers as users give them.
HeadersGiven: TypeAlias = Iterable[tuple[str, bytes | None]] | Mapping[str, bytes | None]

#: A record, as ``produce_many`` takes it: the tuple has key and value, then perhaps timestamp, then perhaps headers,
#: or is one that ``consume`` has given.
Produced: TypeAlias = Record[Any, Any] | tuple[Any, ...]


class Written(NamedTuple):
    """A record in bytes. ``partition`` None: by the key."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers


class TopicOutput:
    """Makes bytes of what is written to one topic. Warns once of records that the topic deletes soon."""

    def __init__(self, topic: TopicDescription, serde_settings: Mapping[str, str], clock: Clock) -> None:
        self._topic: Final = topic
        self._clock: Final = clock
        self._key: Final = ContentWriter(topic.name, "key", serde_settings)
        self._value: Final = ContentWriter(topic.name, "value", serde_settings)
        self._retention_ms = retention_of(topic.config)

    def written(
        self,
        key: Any,
        value: Any,
        key_type: Any,
        value_type: Any,
        timestamp: Time | None,
        headers: HeadersGiven,
        partition: int | None = None,
    ) -> Written:
        """Raises ``SerializationError``, ``TopologyError`` for a type that is not one, ``ConfigError`` for a partition
        that is not there, ``TypeError`` for a time that is not one."""
        now_ms = self._clock.now_ms()
        time_ms = now_ms if timestamp is None else to_ms(timestamp)
        if time_ms < 0:
            raise SerializationError(
                f"A record cannot have the timestamp {timestamp}",
                where=f"topic {self._topic.name}",
                why="event time counts from 1970 on, in milliseconds",
            )
        if self._retention_ms is not None and time_ms < now_ms - self._retention_ms:
            self._retention_ms = None
            log.warning("%s", deleted_soon(self._topic.name, time_ms))
        if partition is not None:
            chosen_partitions(self._topic, [partition])
        return Written(
            self._topic.name,
            partition,
            self._key.written(key, key_type),
            self._value.written(value, value_type),
            time_ms,
            self._headers(headers),
        )

    def of_record(self, record: Produced, key_type: Any, value_type: Any) -> Written:
        """A record of ``produce_many``. Also raises ``TypeError`` for what is none."""
        key, value, timestamp, headers = _parts(record)
        return self.written(key, value, key_type, value_type, timestamp, headers)

    def _headers(self, given: HeadersGiven) -> Headers:
        if not given:
            return ()
        # A mapping may also be an iterable of pairs, as far as types tell.
        items: Any = given.items() if isinstance(given, Mapping) else given
        headers: Headers = tuple(items)
        check_headers(self._topic.name, headers)
        return headers


def _parts(record: Any) -> tuple[Any, Any, Time | None, HeadersGiven]:
    if isinstance(record, Record | ConsumedRecord):
        return record.key, record.value, record.timestamp, record.headers
    match record:
        case (key, value):
            return key, value, None, ()
        case (key, value, timestamp):
            return key, value, timestamp, ()
        case (key, value, timestamp, headers):
            return key, value, timestamp, headers
    raise TypeError(
        "produce_many takes records, or tuples (key, value), (key, value, timestamp) or"
        f" (key, value, timestamp, headers), not {record!r}"
    )


def deleted_soon(topic: str, time_ms: int) -> str:
    """For people who write what is older than the topic's retention."""
    return (
        f"{topic} deletes records of {show_time(time_ms)} soon; to keep them:"
        f" pystreams topics alter {topic} -c retention.ms=-1"
    )
