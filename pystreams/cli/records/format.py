"""How ``produce`` and ``consume`` write bytes as text: a format has a name, reads text, and shows bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """``read`` makes bytes of what a person types, ``show`` text of bytes. Both raise ``ValueError``."""

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
