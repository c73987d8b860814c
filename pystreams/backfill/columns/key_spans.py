"""The end of the keys of a windowed store or topic: a window, a session, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa

from pystreams.backfill.columns.typed import MOMENT, moments
from pystreams.backfill.exchange.rows import Arrow
from pystreams.errors import SerializationError
from pystreams.serde import AnySerde
from pystreams.serde.windowed import SessionWindowedSerde, TimeWindowedSerde
from pystreams.state.formats import WINDOW_SUFFIX_BYTES, split_window_key, unpack_int64
from pystreams.state.layers.session_layer import SESSION_SUFFIX_BYTES, split_session_key
from pystreams.state.spec import WINDOWED_KINDS, StoreKind
from pystreams.stream_time import TIME_MAX

Kind = Literal["", "windows", "sessions"]

_START_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Spans:
    """The spans of time in keys. ``size_ms`` is the windows' size (None: it is not known, and neither is their end).
    ``numbered``: behind the window's start there is a number, as in a store."""

    kind: Kind = ""
    size_ms: int | None = None
    numbered: bool = True

    @property
    def fields(self) -> list[Arrow]:
        """The columns for the bounds of the spans. All are moments."""
        if self.kind == "sessions":
            return [pa.field("session_start", MOMENT), pa.field("session_end", MOMENT)]
        if not self.kind:
            return []
        start = pa.field("window_start", MOMENT)
        return [start] if self.size_ms is None else [start, pa.field("window_end", MOMENT)]

    def split(self, key: bytes, where: str) -> tuple[bytes, tuple[int, ...]]:
        """The record's key, and the times (ms) of ``fields``. Raises ``SerializationError`` for a key without any."""
        if not self.kind:
            return key, ()
        if len(key) < self._suffix_bytes:
            raise SerializationError(
                f"a key is too short to end with the times of a {self.kind.removesuffix('s')}",
                where=where,
                hint=f"check that these are keys of {self.kind}",
            )
        if self.kind == "sessions":
            record_key, start, end = split_session_key(key)
            return record_key, (start, end)
        if self.numbered:
            record_key, start, _ = split_window_key(key)
        else:
            record_key, start = key[:-_START_BYTES], int(unpack_int64(key[-_START_BYTES:])[0])
        return record_key, (start,) if self.size_ms is None else (start, min(start + self.size_ms, TIME_MAX))

    def expires_at(self, key: bytes, where: str) -> int:
        """The time (ms) by which an entry of a store expires: the start of a window, the end of a session."""
        times = self.split(key, where)[1]
        return times[0] if self.kind == "windows" else times[-1]

    def columns(self, keys: Arrow, where: str) -> tuple[Arrow, list[Arrow]]:
        """The record's keys, and the columns of ``fields``; a missing key has no times."""
        if not self.kind:
            return keys, []
        absent = (None, (None,) * len(self.fields))
        split = [absent if key is None else self.split(key, where) for key in keys.to_pylist()]
        times = [
            moments(pa.array([of_key[number] for _, of_key in split], pa.int64()))
            for number in range(len(self.fields))
        ]
        return pa.array([key for key, _ in split], pa.binary()), times

    @property
    def _suffix_bytes(self) -> int:
        if self.kind == "sessions":
            return SESSION_SUFFIX_BYTES
        return WINDOW_SUFFIX_BYTES if self.numbered else _START_BYTES


def spans_of(kind: StoreKind, window_size_ms: int | None = None) -> Spans:
    """The spans in the keys of a kind of store."""
    if kind == "join_window":
        # Each record is in a window of its own, of which only the start is a time of the data.
        return Spans("windows")
    if kind in WINDOWED_KINDS:
        return Spans("windows", window_size_ms)
    return Spans("sessions" if kind == "session" else "")


def spans_of_serde(serde: AnySerde) -> tuple[Spans, AnySerde]:
    """The spans in keys that a serde has written to a topic, and the serde of the record's keys."""
    if isinstance(serde, TimeWindowedSerde) and not serde._changelog:
        return Spans("windows", serde.window_size_ms, numbered=False), serde.inner
    if isinstance(serde, SessionWindowedSerde):
        return Spans("sessions"), serde.inner
    return Spans(), serde
