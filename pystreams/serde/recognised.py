"""Recognises text, and windowed keys whose key is text, in bytes of an unknown format."""

from __future__ import annotations

import struct


def printable(data: bytes) -> str | None:
    """The bytes as text; None if they are not readable text."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if all(c.isprintable() or c in "\t\n" for c in text) else None


def window_of_text(data: bytes) -> tuple[str, int] | None:
    """Key and start (ms) of a windowed key in Java's format; None if the bytes do not look like one."""
    key = printable(data[:-8]) if len(data) > 8 else None
    if key is None or not _is_time(data[-8:]):
        return None
    (start,) = struct.unpack(">q", data[-8:])
    return key, start


def session_of_text(data: bytes) -> tuple[str, int, int] | None:
    """Key, start and end (ms) of a session key in Java's format, which has the end before the start; None if the bytes
    do not look like one."""
    key = printable(data[:-16]) if len(data) > 16 else None
    if key is None or not (_is_time(data[-16:-8]) and _is_time(data[-8:])):
        return None
    end, start = struct.unpack(">qq", data[-16:])
    return key, start, end


def _is_time(data: bytes) -> bool:
    """Whether 8 bytes are a plausible time of our days in ms since 1970."""
    return data[:3] in (b"\x00\x00\x00", b"\x00\x00\x01")
