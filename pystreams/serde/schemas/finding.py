"""What a change of a schema does to what was written before it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, TypeAlias

#: A schema, or a part of one: what JSON has (dict, list, str, ...).
Schema: TypeAlias = "dict[str, Any]"


class Effect(IntEnum):
    """From the harmless to the grave."""

    #: What was written is read, and nothing of it is gone.
    READS_ON = 0
    #: What was written is read without a part of it, or as something else.
    LOSES = 1
    #: Some of what was written cannot be read any more, or nobody can tell.
    FAILS = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference of two schemas. ``path`` leads to the place (``cents``, ``lines[].sku``; empty for the whole),
    ``why`` is a sentence without its subject (``is gone``), ``rewrites`` tells whether an equal value has other bytes
    from now on, which makes another key of a key."""

    path: str
    effect: Effect
    why: str
    rewrites: bool = True

    def below(self, place: str) -> Finding:
        """The same, seen from further outside: ``place`` is a field's name, ``[]`` elements, ``{}`` values of a
        mapping."""
        joined = f"{place}{self.path}" if not self.path or self.path[0] in "[{" else f"{place}.{self.path}"
        return replace(self, path=joined)

    def told(self, root: str) -> str:
        """A sentence for people, in which the whole is called ``root``."""
        path = self.below(root).path if self.path else root
        return f"{path} {self.why}"


def worst(findings: Iterable[Finding]) -> Effect:
    """The gravest effect of all; ``READS_ON`` if there is none."""
    return max((finding.effect for finding in findings), default=Effect.READS_ON)


def reads_on(why: str, *, rewrites: bool = True) -> list[Finding]:
    """One harmless difference at this place."""
    return [Finding("", Effect.READS_ON, why, rewrites)]


def loses(why: str) -> list[Finding]:
    """One difference at this place that costs content."""
    return [Finding("", Effect.LOSES, why)]


def fails(why: str) -> list[Finding]:
    """One difference at this place that makes values unreadable."""
    return [Finding("", Effect.FAILS, why)]
