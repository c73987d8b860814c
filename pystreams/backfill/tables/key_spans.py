"""The end of the keys in a store's changelog: a window, a session, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pystreams.errors import SerializationError
from pystreams.state.formats import WINDOW_SUFFIX_BYTES, split_window_key
from pystreams.state.layers.session_layer import SESSION_SUFFIX_BYTES, split_session_key
from pystreams.state.spec import WINDOWED_KINDS, StoreKind

Spans = Literal["", "windows", "sessions"]

#: The columns that contain the bounds of the spans. All are timestamps.
COLUMNS: Final[Mapping[Spans, tuple[str, ...]]] = {
    "": (),
    "windows": ("window_start",),
    "sessions": ("session_start", "session_end"),
}


def spans_of(kind: StoreKind) -> Spans:
    """The spans in the keys of a kind of store."""
    if kind in WINDOWED_KINDS:
        return "windows"
    return "sessions" if kind == "session" else ""


def split(key: bytes, spans: Spans, where: str) -> tuple[bytes, tuple[int, ...]]:
    """The record's key, and the times (ms) of ``COLUMNS``. Raises ``SerializationError`` for a key without any."""
    if not spans:
        return key, ()
    if len(key) < (WINDOW_SUFFIX_BYTES if spans == "windows" else SESSION_SUFFIX_BYTES):
        raise SerializationError(
            f"there is a key that does not end with one of the {spans}",
            where=where,
            hint=f"check that this is a store of {spans}",
        )
    if spans == "windows":
        record_key, start, _ = split_window_key(key)
        return record_key, (start,)
    record_key, start, end = split_session_key(key)
    return record_key, (start, end)
