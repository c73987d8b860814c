"""Timestamp extractors: a record's time is the log's timestamp, or a function takes it from the content.

Source: org.apache.kafka.streams.processor.TimestampExtractor and its implementations.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeAlias

from pystreams.errors import ConfigError, ProcessingError
from pystreams.functions import UserFunction
from pystreams.record import Headers

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    #: A caller that does not name the types of key and value gets Any.
    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")


class ConsumedRecord(NamedTuple, Generic[K, V]):
    """A record as it was read, deserialized. ``timestamp`` (ms) is the log's; it is negative (-1) if the log has
    none."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: K
    value: V
    headers: Headers


#: The types that an extractor may return: see ``extracted_ms``.
Time: TypeAlias = int | float | datetime

#: ``extract(record, partition_time)`` returns the record's time; a negative one drops the record (counted).
#: ``partition_time`` is the greatest time (ms) seen so far in the partition, -1 before the first record. If it raises,
#: the processing exception handler decides.
TimestampExtractor: TypeAlias = Callable[[ConsumedRecord, int], Time]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_INT64_MAX = (1 << 63) - 1


def extracted_ms(time: object) -> int:
    """The result of an extractor, in ms since 1970: an int, a float without a fraction, or a ``datetime`` with a time
    zone, whose microseconds are cut off. Raises ``ProcessingError`` for anything else.

    A ``datetime`` without a zone is refused: Python takes it for local time, so the record's time would depend on the
    machine.
    """
    if isinstance(time, datetime):
        if time.utcoffset() is None:
            raise _no_time(
                time,
                "it has no time zone, so its time would depend on the machine",
                "set the zone: time.replace(tzinfo=UTC), with UTC from datetime, if the time is in UTC",
            )
        return int((time - _EPOCH) // _MS)
    if isinstance(time, float) and time.is_integer():
        time = int(time)
    if not isinstance(time, int) or isinstance(time, bool):
        raise _no_time(
            time,
            "a time is a whole number of milliseconds since 1970, or a datetime with a time zone",
            "correct the extractor; to drop a record, let it return -1",
        )
    if time > _INT64_MAX:
        raise _no_time(time, "it does not fit into 64 bits", "correct the extractor")
    return int(time)


def _no_time(time: object, why: str, hint: str) -> ProcessingError:
    return ProcessingError(f"the timestamp extractor returned {time!r}", why=why, hint=hint)


class RecordTimestamp:
    """Base of the extractors that use the log's timestamp: they are called only for records without one."""

    name: ClassVar[str]

    def __call__(self, record: ConsumedRecord, partition_time: int) -> int:
        return record.timestamp if record.timestamp >= 0 else self.invalid(record, partition_time)

    def invalid(self, record: ConsumedRecord, partition_time: int) -> int:
        """The time of a record whose own timestamp is negative."""
        raise NotImplementedError


class FailOnInvalidTimestamp(RecordTimestamp):
    """A record without a timestamp stops the task. The default."""

    name = "fail"

    def invalid(self, record: ConsumedRecord, partition_time: int) -> int:
        raise _invalid(
            record, "choose another timestamp_extractor: log_and_skip, partition_time, or a function"
        )


class LogAndSkipOnInvalidTimestamp(RecordTimestamp):
    """A record without a timestamp is dropped and counted."""

    name = "log_and_skip"

    def invalid(self, record: ConsumedRecord, partition_time: int) -> int:
        return record.timestamp


class UsePartitionTimeOnInvalidTimestamp(RecordTimestamp):
    """A record without a timestamp gets its partition's time; it stops the task if the partition has none yet."""

    name = "partition_time"

    def invalid(self, record: ConsumedRecord, partition_time: int) -> int:
        if partition_time < 0:
            raise _invalid(record, "no earlier record has a timestamp; choose log_and_skip, or a function")
        return partition_time


class GlobalRecordTimestamp(RecordTimestamp):
    """The record's own time, for global stores. A record without one is kept: global stores depend only on the order
    within a partition. Java does not call an extractor there either."""

    name = "global_table"

    def invalid(self, record: ConsumedRecord, partition_time: int) -> int:
        return 0


class WallClockTimestamp:
    """A record's time is the time at which it is read; the log's timestamp is ignored."""

    name: ClassVar[str] = "wall_clock"


#: The values of ``timestamp_extractor=``: see ``resolve_extractor``. Not generic over the stream's types: pyright could
#: then no longer infer those of a bare ``dict``.
Extractor: TypeAlias = (
    str
    | Callable[[ConsumedRecord[Any, Any]], Time]
    | Callable[[ConsumedRecord[Any, Any], int], Time]
    | WallClockTimestamp
    | type[RecordTimestamp]
    | type[WallClockTimestamp]
)

BUILT_IN: dict[str, Any] = {
    extractor.name: extractor
    for extractor in (
        FailOnInvalidTimestamp,
        LogAndSkipOnInvalidTimestamp,
        UsePartitionTimeOnInvalidTimestamp,
        WallClockTimestamp,
    )
}


def resolve_extractor(setting: Any) -> TimestampExtractor | WallClockTimestamp:
    """The extractor for a setting or ``timestamp_extractor=``: a name (``fail``, ``log_and_skip``, ``partition_time``,
    ``wall_clock``), one of this module's classes or an instance, a function of (record) or of (record, partition_time),
    or None (``fail``). Raises ``ConfigError`` for an unknown name and ``TopologyError`` for another arity."""
    if setting is None:
        return FailOnInvalidTimestamp()
    if isinstance(setting, str):
        if setting not in BUILT_IN:
            raise ConfigError(
                f"timestamp extractor {setting!r} is unknown",
                hint=f"choose one of {', '.join(BUILT_IN)}, or give a function",
            )
        extractor: TimestampExtractor = BUILT_IN[setting]()
        return extractor
    for name, kind in BUILT_IN.items():
        if setting is kind:
            return resolve_extractor(name)
    if isinstance(setting, RecordTimestamp | WallClockTimestamp | _OfRecord):
        return setting
    function = UserFunction.of(setting, "extract", "timestamp_extractor")
    if function.takes_key:
        return function.call
    return _OfRecord(function.call)


class _OfRecord:
    """Makes an extractor of a function of the record alone. Two of the same function are equal."""

    def __init__(self, extract: Callable[[ConsumedRecord], Time]) -> None:
        self.__wrapped__ = extract

    def __call__(self, record: ConsumedRecord, partition_time: int) -> Time:
        return self.__wrapped__(record)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _OfRecord) and self.__wrapped__ == other.__wrapped__

    def __hash__(self) -> int:
        return hash(self.__wrapped__)


def _invalid(record: ConsumedRecord, hint: str) -> ProcessingError:
    return ProcessingError(
        f"a record has the invalid timestamp {record.timestamp}",
        where=f"{record.topic}-{record.partition} offset {record.offset}",
        why="event time must not be negative; a producer older than Kafka 0.10 or a wrong clock may have written it",
        hint=hint,
    )
