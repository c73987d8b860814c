"""Converts a program's records for one topic to bytes."""

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
from pystreams.times import AHEAD_MAX_MS, LAST_MS, Time, show_time, to_ms, unit_remark
from pystreams.timestamps import ConsumedRecord

log = logging.getLogger(__name__)

#: Headers in the forms that users may give.
HeadersGiven: TypeAlias = Iterable[tuple[str, bytes | None]] | Mapping[str, bytes | None]

#: A record for ``produce_many``: a tuple of key and value, then optionally timestamp, then optionally headers; or a
#: record of ``consume``.
Produced: TypeAlias = Record[Any, Any] | tuple[Any, ...]


class Written(NamedTuple):
    """A record in bytes. ``partition`` None: chosen by the key."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers


class DoubtfulTimes:
    """Warns, once each, of records that are older than their topic's retention, and of records far ahead of the
    clock."""

    def __init__(self, topic: TopicDescription, clock: Clock) -> None:
        self._name = topic.name
        self._clock = clock
        limit_ms = retention_of(topic.config)
        self._deleted_before_ms = -1 if limit_ms is None else clock.now_ms() - limit_ms
        self._ahead_after_ms = clock.now_ms() + AHEAD_MAX_MS

    def warning(self, time_ms: int) -> str:
        """The warning, for people; empty if there is none, or it was given before."""
        if time_ms < self._deleted_before_ms:
            self._deleted_before_ms = -1
            return self._old(time_ms)
        if time_ms > self._ahead_after_ms:
            # The clock has gone on since it was last asked.
            self._ahead_after_ms = self._clock.now_ms() + AHEAD_MAX_MS
            if time_ms > self._ahead_after_ms:
                self._ahead_after_ms = LAST_MS
                return self._ahead(time_ms)
        return ""

    def _old(self, time_ms: int) -> str:
        deletes = f"{self._name} will soon delete records of {show_time(time_ms)}"
        remark = unit_remark(time_ms)
        if remark:
            return f"{deletes} ({remark})"
        return f"{deletes}; to keep them: pystreams topics alter {self._name} -c retention.ms=-1"

    def _ahead(self, time_ms: int) -> str:
        remark = unit_remark(time_ms)
        return (
            f"{self._name} has a record of {show_time(time_ms)}{f' ({remark})' if remark else ''}, more than a day"
            " ahead of the clock: it closes all earlier windows of the applications that read it"
        )


class TopicOutput:
    """Serializes records for one topic. Warns once of doubtful times."""

    def __init__(self, topic: TopicDescription, serde_settings: Mapping[str, str], clock: Clock) -> None:
        self._topic: Final = topic
        self._clock: Final = clock
        self._key: Final = ContentWriter(topic.name, "key", serde_settings)
        self._value: Final = ContentWriter(topic.name, "value", serde_settings)
        self._doubtful_times: Final = DoubtfulTimes(topic, clock)

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
        """Raises ``SerializationError``, ``TopologyError`` for an invalid type, ``ConfigError`` for a partition that
        does not exist, ``TypeError`` for an invalid time."""
        time_ms = self._clock.now_ms() if timestamp is None else to_ms(timestamp)
        if not 0 <= time_ms <= LAST_MS:
            raise SerializationError(
                f"A record cannot have the timestamp {timestamp}",
                where=f"topic {self._topic.name}",
                why=f"event time is in milliseconds since 1970, up to {LAST_MS}",
            )
        warning = self._doubtful_times.warning(time_ms)
        if warning:
            log.warning("%s", warning)
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
        """A record of ``produce_many`` in bytes. Also raises ``TypeError`` if it is not a record."""
        key, value, timestamp, headers = _parts(record)
        return self.written(key, value, key_type, value_type, timestamp, headers)

    def _headers(self, given: HeadersGiven) -> Headers:
        if not given:
            return ()
        # For type checkers, a mapping may also be an iterable of pairs.
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
