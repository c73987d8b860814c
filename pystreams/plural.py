"""Nouns beside numbers, as messages show them."""

from __future__ import annotations


def plural(number: int, one: str, many: str = "") -> str:
    """The noun for a number of things: ``record`` or ``records``. ``many`` is a plural that does not end in one more
    s."""
    return one if number == 1 else many or f"{one}s"


def counted(number: int, one: str, many: str = "") -> str:
    """A number of things: ``1 record``, ``2,000 records``."""
    return f"{number:,} {plural(number, one, many)}"
