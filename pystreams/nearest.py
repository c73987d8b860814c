"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypedDict

_CUTOFF = 0.6


class WhyAndHint(TypedDict):
    """Two arguments of a ``StreamsError``."""

    why: str
    hint: str


def not_among(name: str, names: Iterable[str], lead: str, otherwise: str = "") -> WhyAndHint:
    """Why and hint of the error for a name that is not one of ``names``: ``lead: a, b, c``, and the nearest of them;
    ``otherwise`` is the hint if no name is similar."""
    known = list(names)
    return {"why": f"{lead}: {listing(known)}", "hint": did_you_mean(name, known) or otherwise}


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """``did you mean counts, count?``, or an empty string if no name is similar."""
    near = nearest(name, names)
    return did_you_mean_this(", ".join(near)) if near else ""


def did_you_mean_this(name: str) -> str:
    """The suggestion of ``name``."""
    return f"did you mean {name}?"


def check_keywords(function: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raises ``TypeError`` for a keyword argument that ``function`` does not take, as a call would."""
    for argument in given:
        if argument not in known:
            message = f"{function}() got an unexpected keyword argument {argument!r}"
            meant = did_you_mean(argument, known)
            raise TypeError(f"{message}: {meant}" if meant else message)


def nearest(name: str, names: Iterable[str], most: int = 3, cutoff: float = _CUTOFF) -> list[str]:
    """Up to ``most`` of ``names`` that resemble ``name``, the closest first. With ``cutoff`` 1 only ``name`` itself
    fits."""
    from difflib import get_close_matches

    return get_close_matches(name, list(names), n=most, cutoff=cutoff)


def listing(names: Iterable[str], most: int = 8) -> str:
    """``a, b, c`` and the number of names left out after ``most``; ``none`` if there are no names."""
    ordered = sorted(names)
    shown = ", ".join(ordered[:most])
    return f"{shown} and {len(ordered) - most} more" if len(ordered) > most else shown or "none"
