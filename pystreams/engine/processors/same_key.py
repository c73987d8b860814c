"""Whether two keys are one. In Python more is equal than in Java: 1, 1.0 and True are, which have other bytes."""

from __future__ import annotations

from typing import Any, Final

#: Of these, equal ones of one type are written the same.
_PLAIN: Final = frozenset({str, bytes, int, bool})


def same_key(one: Any, other: Any) -> bool:
    """True if both are equal, and so is what they say of themselves: ``(1, "a")`` and ``(True, "a")`` are not the same,
    nor are 0.0 and -0.0, or two decimals of other lengths. In doubt they are not."""
    if one.__class__ is not other.__class__:
        return False
    if one.__class__ in _PLAIN:
        return bool(one == other)
    return one is other or bool(one == other and repr(one) == repr(other))
