"""The text form of bytes in ``produce`` and ``consume``: a format has a name, reads text, and shows bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """``read`` turns text into bytes, ``show`` turns bytes into text. Both raise ``ValueError``."""

    name: str
    read: Callable[[str], bytes]
    show: Callable[[bytes], str]


def show_bytes(format_: Format, data: bytes | None) -> str:
    """Text for bytes, ``null`` for none; bytes that are not of the format are shown in hex with a mark."""
    if data is None:
        return "null"
    try:
        return format_.show(data)
    except ValueError:
        return f"<not {format_.name}: 0x{data.hex()}>"
