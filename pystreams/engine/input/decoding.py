"""Decodes a batch of bytes to rows: deserializes keys and values, extracts timestamps, marks bad records.

A column is decoded as a whole; it is decoded record by record only if it holds a bad record. The error of a record is
raised when it is the record's turn, as if it had been decoded only then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Literal, TypeAlias, cast

from pystreams.errors import SchemaRegistryError
from pystreams.functions import locate
from pystreams.record import NO_HEADERS, Headers, RecordBatch
from pystreams.timestamps import (
    ConsumedRecord,
    RecordTimestamp,
    TimestampExtractor,
    WallClockTimestamp,
    extracted_ms,
)

Decode: TypeAlias = Callable[[bytes], Any]
#: The name of a header that may determine how to deserialize the bytes, and the function (bytes, header's value) that
#: does so if the record has it; None: there is no such header.
DecodeByHeader: TypeAlias = tuple[str, Callable[[bytes, bytes], Any]] | None

_INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a record cannot be processed: its bytes do not decode (the deserialization handler decides), its time is
    negative (it is dropped), ``RecordTimestamp`` refuses its time (the task stops), or the user's extractor failed (the
    processing handler decides). ``extractor`` is the place of the user's extractor in the source code."""

    kind: Literal["undecodable", "no_time", "invalid_time", "extractor_failed"]
    error: Exception | None = None
    extractor: str = ""


@dataclass(slots=True)
class Rows:
    """A decoded batch, as parallel columns. ``raw`` is the batch of bytes, which dead letters need.

    ``refused`` maps the positions of bad records to the reason; their places in the columns hold None and -1.
    """

    raw: RecordBatch
    keys: list[Any]
    values: list[Any]
    timestamps: list[int]
    #: The headers of the batch, without those that determined how to deserialize the record.
    headers: list[Headers] | None
    refused: dict[int, Refusal] = field(default_factory=dict)
    size: int = field(init=False)
    max_timestamp: int = field(init=False)
    #: The positions of bad records, ascending.
    bad: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.size = len(self.keys)
        self.max_timestamp = max(self.timestamps, default=-1)
        self.bad = sorted(self.refused)

    @property
    def topic(self) -> str:
        return self.raw.topic

    @property
    def partition(self) -> int:
        return self.raw.partition

    @property
    def offsets(self) -> Sequence[int]:
        return self.raw.offsets

    def rows(self, start: int, end: int) -> Iterable[tuple[Any, Any, int, int, Headers]]:
        """Key, value, timestamp, offset and headers of each record from position ``start`` to ``end`` (exclusive)."""
        headers = self.headers
        if end - start == self.size:
            return zip(
                self.keys,
                self.values,
                self.timestamps,
                self.raw.offsets,
                repeat(NO_HEADERS) if headers is None else headers,
                strict=False,
            )
        return zip(
            self.keys[start:end],
            self.values[start:end],
            self.timestamps[start:end],
            self.raw.offsets[start:end],
            repeat(NO_HEADERS) if headers is None else headers[start:end],
            strict=False,
        )

    def position_of(self, offset: int) -> int:
        """The position of the record with that offset."""
        return bisect_left(self.raw.offsets, offset)

    def raw_headers(self, position: int) -> Headers:
        return NO_HEADERS if self.raw.headers is None else self.raw.headers[position]


class BatchDecoder:
    """Decodes the batches of one partition. Passes the greatest timestamp so far to the extractor."""

    def __init__(
        self,
        decode_key: Decode,
        decode_value: Decode,
        extractor: TimestampExtractor | WallClockTimestamp,
        now_ms: Callable[[], int],
        partition_time: int = -1,
        *,
        by_header: tuple[DecodeByHeader, DecodeByHeader] = (None, None),
    ) -> None:
        self._decode_key = decode_key
        self._decode_value = decode_value
        self._key_by_header, self._value_by_header = by_header
        self._extractor = extractor
        self._now_ms = now_ms
        self.partition_time = partition_time

    def decode(self, batch: RecordBatch) -> Rows:
        """The rows of a batch. Bad records never raise; only a schema registry that does not answer does."""
        refused: dict[int, Refusal] = {}
        headers = batch.headers
        keys = decoded_column(batch.keys, headers, self._decode_key, self._key_by_header, "key", refused)
        values = decoded_column(
            batch.values, headers, self._decode_value, self._value_by_header, "value", refused
        )
        timestamps = self._timestamps(batch, keys, values, refused)
        for by_header in (self._key_by_header, self._value_by_header):
            headers = headers_without(headers, by_header)
        rows = Rows(batch, keys, values, timestamps, headers, refused)
        self.partition_time = max(self.partition_time, rows.max_timestamp)
        return rows

    def _timestamps(
        self, batch: RecordBatch, keys: list[Any], values: list[Any], refused: dict[int, Refusal]
    ) -> list[int]:
        extractor = self._extractor
        if not refused:
            if isinstance(extractor, WallClockTimestamp):
                return [self._now_ms()] * len(batch)
            if isinstance(extractor, RecordTimestamp) and min(batch.timestamps, default=0) >= 0:
                return batch.timestamps
        return self._extract_each(batch, keys, values, refused)

    def _extract_each(
        self, batch: RecordBatch, keys: list[Any], values: list[Any], refused: dict[int, Refusal]
    ) -> list[int]:
        time = self.partition_time
        timestamps: list[int] = []
        for i, timestamp in enumerate(batch.timestamps):
            extracted = -1
            if i not in refused:
                headers = NO_HEADERS if batch.headers is None else batch.headers[i]
                record = ConsumedRecord(
                    batch.topic, batch.partition, batch.offsets[i], timestamp, keys[i], values[i], headers
                )
                try:
                    extracted = self._extract(record, time)
                    if extracted < 0:
                        refused[i] = Refusal("no_time")
                except Exception as error:  # noqa: BLE001 - users' functions raise what they like
                    refused[i] = self._failed(error)
            if i in refused:
                keys[i] = values[i] = None
                extracted = -1
            timestamps.append(extracted)
            time = max(time, extracted)
        return timestamps

    def _extract(self, record: ConsumedRecord, partition_time: int) -> int:
        if isinstance(self._extractor, WallClockTimestamp):
            return self._now_ms()
        time = self._extractor(record, partition_time)
        if type(time) is int and time <= _INT64_MAX:
            return time
        return extracted_ms(time)

    def _failed(self, error: Exception) -> Refusal:
        if isinstance(self._extractor, RecordTimestamp):
            return Refusal("invalid_time", error)
        return Refusal("extractor_failed", error, locate(cast(Callable[..., Any], self._extractor)))


def decoded_column(
    raw: list[bytes | None],
    headers: list[Headers] | None,
    decode: Decode,
    by_header: DecodeByHeader,
    what: str,
    refused: dict[int, Refusal],
) -> list[Any]:
    """A column of keys or values (``what``), deserialized. A record that cannot be is None, with the reason in
    ``refused``."""
    if by_header is None or headers is None:
        return _column(raw, decode, what, refused)
    name, decode_with_schema = by_header
    schemas = [next((value for header, value in of if header == name and value), None) for of in headers]

    def decode_pair(pair: tuple[bytes, bytes | None]) -> Any:
        data, schema = pair
        return decode(data) if schema is None else decode_with_schema(data, schema)

    pairs = [None if item is None else (item, schema) for item, schema in zip(raw, schemas, strict=True)]
    return _column(pairs, decode_pair, what, refused)


def headers_without(headers: list[Headers] | None, by_header: DecodeByHeader) -> list[Headers] | None:
    """The headers without those that determined how to deserialize the record."""
    if headers is None or by_header is None:
        return headers
    name = by_header[0]
    return [of if not of else tuple(header for header in of if header[0] != name) for of in headers]


def _column(
    raw: Sequence[Any], decode: Callable[[Any], Any], what: str, refused: dict[int, Refusal]
) -> list[Any]:
    try:
        return [None if item is None else decode(item) for item in raw]
    except SchemaRegistryError:
        raise
    except Exception:  # noqa: BLE001 - serdes raise what they like; ``_cell`` finds the record
        return [_cell(i, item, decode, what, refused) for i, item in enumerate(raw)]


def _cell(i: int, item: Any, decode: Callable[[Any], Any], what: str, refused: dict[int, Refusal]) -> Any:
    try:
        return None if item is None else decode(item)
    except SchemaRegistryError:
        raise
    except Exception as error:  # noqa: BLE001 - serdes raise what they like
        error.add_note(f"it is the record's {what} that cannot be read")
        refused.setdefault(i, Refusal("undecodable", error))
        return None
