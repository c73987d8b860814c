"""Compares two keys. Python treats 1, 1.0 and True as equal, although their serialized bytes differ."""

from __future__ import annotations

from typing import Any, Final

#: Types whose equal values are always serialized to the same bytes.
_PLAIN: Final = frozenset({str, bytes, int, bool})


def same_key(one: Any, other: Any) -> bool:
    """True if both keys have the same type, are equal, and have the same ``repr``: ``(1, "a")`` and ``(True, "a")`` are
    not the same, nor are 0.0 and -0.0, or the decimals 1.0 and 1.00. In doubt the answer is False."""
    if one.__class__ is not other.__class__:
        return False
    if one.__class__ in _PLAIN:
        return bool(one == other)
    return one is other or bool(one == other and repr(one) == repr(other))
