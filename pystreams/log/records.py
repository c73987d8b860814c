"""An iterable of the records of a topic, from one place to another."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from types import ModuleType
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from pystreams.broker.port import Broker, TopicDescription
from pystreams.distribution import install_command
from pystreams.engine.input.decoding import Refusal, decoded_column, headers_without
from pystreams.errors import ConfigError, SerializationError, advice, reason, summarize
from pystreams.ids import TopicPartition
from pystreams.log.positions import Place, positions_at, read_batches
from pystreams.record import NO_HEADERS, Headers, RecordBatch
from pystreams.serde.base import AnySerde
from pystreams.serde.recognised import session_of_text, window_of_text
from pystreams.timestamps import ConsumedRecord

log = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")

#: The reaction to a record that cannot be deserialized, as in the setting ``deserialization_exception_handler``.
BadRecords: TypeAlias = Literal["fail", "continue"]

CLIENT_ID: Final = "pystreams-log"

Positions: TypeAlias = dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected records of a topic: see ``Log.consume``."""

    topic: TopicDescription
    partitions: Sequence[TopicPartition]
    start: Place
    until: Place
    follow: bool
    idle_timeout_ms: int | None
    limit: int | None


class Records(Generic[K, V]):
    """Records of a topic. Each iteration reads them again, including records that have arrived since.

    The records of a partition are in order; there is no order among partitions.
    """

    def __init__(
        self,
        broker: Callable[[], Broker],
        selection: Selection,
        key: AnySerde,
        value: AnySerde,
        bad_records: BadRecords,
    ) -> None:
        self._broker = broker
        self._selection = selection
        self._key = key
        self._value = value
        self._bad_records: BadRecords = bad_records

    def __repr__(self) -> str:
        return f"Records({self._selection.topic.name!r}, key={self._key!r}, value={self._value!r})"

    def __iter__(self) -> Iterator[ConsumedRecord[K, V]]:
        """Read the records. The places are resolved now. Raises ``SerializationError`` for a record that cannot be
        deserialized, ``BrokerError``."""
        broker = self._broker()
        return self._read(broker, *self._bounds(broker))

    def to_arrow(self) -> Any:
        """All records as a ``pyarrow.Table``: partition, offset, timestamp, key, value; each field of a model is a
        column of its own. Raises ``ConfigError`` without the extra ``pandas``."""
        return _tables().arrow_table(self, self._key, self._value)

    def to_pandas(self) -> Any:
        """All records as a ``pandas.DataFrame`` with the columns of ``to_arrow``. Raises ``ConfigError`` as there."""
        tables = _tables()
        return tables.data_frame(tables.arrow_table(self, self._key, self._value))

    def _bounds(self, broker: Broker) -> tuple[Positions, Positions | None]:
        chosen, partitions = self._selection, self._selection.partitions
        with closing(broker.admin()) as admin:
            starts = admin.beginning_offsets(partitions)
            starts |= positions_at(admin, partitions, chosen.start)
            if chosen.follow:
                return starts, None
            ends = admin.stable_end_offsets(partitions)
            if chosen.until != "latest":
                until = positions_at(admin, partitions, chosen.until)
                ends |= {partition: min(end, ends[partition]) for partition, end in until.items()}
        return starts, ends

    def _read(
        self, broker: Broker, starts: Positions, ends: Positions | None
    ) -> Iterator[ConsumedRecord[K, V]]:
        decode = _Decoder(self._selection.topic.name, self._key, self._value, self._bad_records)
        # A restore consumer, because it reads only committed records.
        with closing(broker.consumer(CLIENT_ID, "restore")) as consumer:
            batches = read_batches(consumer, starts, ends, self._selection.idle_timeout_ms)
            yield from islice(
                (record for batch in batches for record in decode(batch)), self._selection.limit
            )


def _tables() -> ModuleType:
    try:
        from pystreams.log import tables
    except ImportError as error:
        raise ConfigError(
            "pandas and Arrow are not installed", why=str(error), hint=install_command("pandas")
        ) from None
    return tables


class _Decoder:
    """Deserializes batches like a source with these serdes."""

    def __init__(self, topic: str, key: AnySerde, value: AnySerde, bad_records: BadRecords) -> None:
        self._read_key, self._read_value = key.deserializer(topic), value.deserializer(topic)
        self._key_by_header = key.header_deserializer(topic, "key")
        self._value_by_header = value.header_deserializer(topic, "value")
        self._skips = bad_records == "continue"

    def __call__(self, batch: RecordBatch) -> Iterator[ConsumedRecord[Any, Any]]:
        bad_keys: dict[int, Refusal] = {}
        bad_values: dict[int, Refusal] = {}
        headers = batch.headers
        keys = decoded_column(batch.keys, headers, self._read_key, self._key_by_header, "key", bad_keys)
        values = decoded_column(
            batch.values, headers, self._read_value, self._value_by_header, "value", bad_values
        )
        for by_header in (self._key_by_header, self._value_by_header):
            headers = headers_without(headers, by_header)
        for index, offset in enumerate(batch.offsets):
            if bad_keys and index in bad_keys:
                self._refuse(batch, offset, bad_keys[index], "key", _hint_of_key(batch.keys[index]))
                continue
            if bad_values and index in bad_values:
                self._refuse(batch, offset, bad_values[index], "value")
                continue
            of_record: Headers = NO_HEADERS if headers is None else headers[index]
            yield ConsumedRecord(
                batch.topic,
                batch.partition,
                offset,
                batch.timestamps[index],
                keys[index],
                values[index],
                of_record,
            )

    def _refuse(
        self, batch: RecordBatch, offset: int, refusal: Refusal, part: Literal["key", "value"], hint: str = ""
    ) -> None:
        where, error = f"{batch.topic}-{batch.partition} offset {offset}", refusal.error
        assert error is not None, "a record that cannot be deserialized has an error"
        if self._skips:
            log.warning("left a record out: %s: its %s: %s", where, part, summarize(error))
            return
        leave_out = 'deserialization_exception_handler="continue" leaves such records out and logs them'
        raise SerializationError(
            "A record cannot be deserialized",
            where=where,
            why="; ".join(filter(None, (f"it is the record's {part}: {summarize(error)}", reason(error)))),
            hint="; ".join(filter(None, (hint, advice(error, leave_out)))),
        ) from _root_cause(error)


def _hint_of_key(data: bytes | None) -> str:
    """The serde that the bytes of a key seem to need, for people; empty if they do not look like a windowed key."""
    if data is None:
        return ""
    if window_of_text(data):
        return "the key looks like a windowed one: key=TimeWindowedSerde(str, window_size_ms)"
    return "the key looks like a session's: key=SessionWindowedSerde(str)" if session_of_text(data) else ""


def _root_cause(error: BaseException) -> BaseException:
    """The first error, without the later ones: the message has their texts, and each would be printed with its
    traceback."""
    while error.__cause__ is not None:
        error = error.__cause__
    error.__suppress_context__ = True
    return error
