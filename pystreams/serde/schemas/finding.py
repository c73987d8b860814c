"""The effect of a changed schema on existing data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, TypeAlias

#: A schema or a part of one, as JSON data (dict, list, str, ...).
Schema: TypeAlias = "dict[str, Any]"


class Effect(IntEnum):
    """The effects, from harmless to severe."""

    #: Existing data is read completely.
    READS_ON = 0
    #: Existing data is read without a part of it, or as something else.
    LOSES = 1
    #: Some existing data cannot be read any more, or this cannot be determined.
    FAILS = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference between two schemas. ``path`` is its place (``cents``, ``lines[].sku``; empty for the whole),
    ``why`` is a sentence without its subject (``is gone``), ``rewrites`` says whether equal values now have other
    bytes, so that a key would become a different key. ``successor`` is the new field that probably is this field, which
    is gone, under another name."""

    path: str
    effect: Effect
    why: str
    rewrites: bool = True
    successor: str | None = None

    def below(self, place: str) -> Finding:
        """The same finding in the schema that contains this one: ``place`` is a field's name, ``[]`` for elements,
        ``{}`` for values of a mapping."""
        joined = f"{place}{self.path}" if not self.path or self.path[0] in "[{" else f"{place}.{self.path}"
        return replace(self, path=joined)

    def in_words(self, root: str) -> str:
        """A sentence for people, in which ``root`` is the name of the whole."""
        path = self.below(root).path if self.path else root
        return f"{path} {self.why}"


def gone_field(name: str, effect: Effect, why: str, successor: str | None) -> Finding:
    """A field that does not exist any more, and its probable ``successor``."""
    perhaps = f" (perhaps it is now {successor})" if successor else ""
    return Finding(name, effect, f"{why}{perhaps}", successor=successor)


def worst(findings: Iterable[Finding]) -> Effect:
    """The most severe effect; ``READS_ON`` if there are no findings."""
    return max((finding.effect for finding in findings), default=Effect.READS_ON)


def reads_on(why: str, *, rewrites: bool = True) -> list[Finding]:
    """One harmless difference at this place."""
    return [Finding("", Effect.READS_ON, why, rewrites)]


def loses(why: str) -> list[Finding]:
    """One difference at this place that loses content."""
    return [Finding("", Effect.LOSES, why)]


def fails(why: str) -> list[Finding]:
    """One difference at this place that makes values unreadable."""
    return [Finding("", Effect.FAILS, why)]
