"""Names that somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable

_CUTOFF = 0.6


def nearest(name: str, names: Iterable[str], most: int = 3, cutoff: float = _CUTOFF) -> list[str]:
    """Up to ``most`` of ``names`` that look like ``name``, the likeliest first. ``cutoff``: 1 is the name itself."""
    from difflib import get_close_matches

    return get_close_matches(name, list(names), n=most, cutoff=cutoff)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """``did you mean counts, count?``, or nothing if no name is near."""
    near = nearest(name, names)
    return f"did you mean {', '.join(near)}?" if near else ""


def listing(names: Iterable[str], most: int = 8) -> str:
    """``a, b, c``, cut after ``most`` names; ``none`` for none."""
    ordered = sorted(names)
    shown = ", ".join(ordered[:most])
    return f"{shown} and {len(ordered) - most} more" if len(ordered) > most else shown or "none"
