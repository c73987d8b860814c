"""From the bytes of a batch to its rows: keys and values deserialized, times extracted, bad records marked.

A column is decoded at once; only a batch that holds a bad record is gone through record by record. What is wrong with
a record comes out when it is its turn, as if it had been read only then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Literal, TypeAlias, cast

from pystreams.functions import locate
from pystreams.record import NO_HEADERS, Headers, RecordBatch
from pystreams.timestamps import ConsumedRecord, RecordTimestamp, TimestampExtractor, WallClockTimestamp

Decode: TypeAlias = Callable[[bytes], Any]

_INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a record cannot be processed: its bytes do not decode (the deserialization handler decides), it has no valid
    time (it is dropped), or its extractor failed (the task stops)."""

    kind: Literal["undecodable", "no_time", "extractor_failed"]
    error: Exception | None = None


@dataclass(slots=True)
class Rows:
    """A batch, decoded. Parallel columns as in ``RecordBatch``, whose bytes stay at hand for dead letters.

    ``refused`` maps positions of bad records to what is wrong with them; their places in the columns hold None and -1.
    """

    raw: RecordBatch
    keys: list[Any]
    values: list[Any]
    timestamps: list[int]
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
        """Key, value, timestamp, offset and headers of each record of a stretch."""
        headers = self.raw.headers
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
        """The place of the record with that offset."""
        return bisect_left(self.raw.offsets, offset)

    def headers(self, position: int) -> Headers:
        return NO_HEADERS if self.raw.headers is None else self.raw.headers[position]


class BatchDecoder:
    """Decodes the batches of one partition. Holds the greatest time extracted so far, which extractors may ask for."""

    def __init__(
        self,
        decode_key: Decode,
        decode_value: Decode,
        extractor: TimestampExtractor | WallClockTimestamp,
        now_ms: Callable[[], int],
        partition_time: int = -1,
    ) -> None:
        self._decode_key = decode_key
        self._decode_value = decode_value
        self._extractor = extractor
        self._now_ms = now_ms
        self.partition_time = partition_time

    def decode(self, batch: RecordBatch) -> Rows:
        """The rows of a batch. Never raises for what the batch holds."""
        refused: dict[int, Refusal] = {}
        keys = _column(batch.keys, self._decode_key, "key", refused)
        values = _column(batch.values, self._decode_value, "value", refused)
        timestamps = self._timestamps(batch, keys, values, refused)
        rows = Rows(batch, keys, values, timestamps, refused)
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
                    error.add_note(f"the extractor is {locate(cast(Callable[..., Any], self._extractor))}")
                    refused[i] = Refusal("extractor_failed", error)
            if i in refused:
                keys[i] = values[i] = None
                extracted = -1
            timestamps.append(extracted)
            time = max(time, extracted)
        return timestamps

    def _extract(self, record: ConsumedRecord, partition_time: int) -> int:
        if isinstance(self._extractor, WallClockTimestamp):
            return self._now_ms()
        time: object = self._extractor(record, partition_time)
        if not isinstance(time, int) or time > _INT64_MAX:
            raise TypeError(f"it returned {time!r}, not milliseconds as an int")
        return time


def _column(raw: list[bytes | None], decode: Decode, what: str, refused: dict[int, Refusal]) -> list[Any]:
    with suppress(Exception):  # serdes raise what they like; the second look tells which record it was
        return [None if item is None else decode(item) for item in raw]
    return [_cell(i, item, decode, what, refused) for i, item in enumerate(raw)]


def _cell(i: int, item: bytes | None, decode: Decode, what: str, refused: dict[int, Refusal]) -> Any:
    try:
        return None if item is None else decode(item)
    except Exception as error:  # noqa: BLE001 - serdes raise what they like
        error.add_note(f"while the {what} was deserialized")
        refused.setdefault(i, Refusal("undecodable", error))
        return None
