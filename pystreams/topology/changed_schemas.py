"""Describes, for people, how changed schemas of keys and values affect existing records and rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pystreams.serde.schemas import Effect, Finding, Schema

_SHOWN_MAX = 4


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """``effect`` is the worst one; ``why`` describes the findings with this effect, or all if none is harmful;
    ``fields`` are the places of the harmful ones (``value.cents``); ``renamed`` maps those of fields that are gone to
    the new fields that they probably are now (``euros``)."""

    effect: Effect
    why: str = ""
    fields: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)


def change_of_keys(was: Schema, now: Schema) -> SchemaChange:
    """The effect on keys. Keys are compared by their bytes: if the bytes change, rows of the old key are not found."""
    from pystreams.serde.schemas.comparison import changes_keys

    found = _compared(was, now)
    if changes_keys(found):
        grave = [one for one in found if one.rewrites or one.effect is not Effect.READS_ON]
        return SchemaChange(Effect.FAILS, in_words(grave, "key"), places(grave, "key"))
    return SchemaChange(Effect.READS_ON, in_words(found, "key"))


def change_of_values(was: Schema, now: Schema) -> SchemaChange:
    """The effect on values that were written as ``was`` when they are read as ``now``."""
    found = _compared(was, now)
    effect = max((finding.effect for finding in found), default=Effect.READS_ON)
    gravest = [finding for finding in found if finding.effect is effect]
    grave = [finding for finding in found if finding.effect is not Effect.READS_ON]
    renamed = {one.below("value").path: one.successor for one in grave if one.successor is not None}
    return SchemaChange(effect, in_words(gravest, "value"), places(grave, "value"), renamed)


def is_schema(part: object) -> bool:
    """Whether a part of a shape is the schema of keys or values."""
    return isinstance(part, dict) and "format" in part


def difference(was: Sequence[Schema], now: Sequence[Schema]) -> str:
    """All differences between the (key, value) schemas of a topic, for people; empty if there are none."""
    roots = ("key", "value")
    pairs = zip(roots, was, now, strict=True)
    return "; ".join(text for root, one, other in pairs if (text := in_words(_compared(one, other), root)))


def _compared(was: Schema, now: Schema) -> list[Finding]:
    from pystreams.serde.schemas.comparison import compare

    found = compare(was, now)
    if found or was == now:
        return found
    return [
        Finding("", Effect.READS_ON, "is described in another way, and is read as before", rewrites=False)
    ]


def in_words(findings: Sequence[Finding], root: str) -> str:
    """Findings as one line: the first few in words, the others as a number."""
    sentences = [finding.in_words(root) for finding in findings]
    more = len(sentences) - _SHOWN_MAX
    return "; ".join([*sentences[:_SHOWN_MAX], *([f"and {more} more"] if more > 0 else [])])


def places(findings: Iterable[Finding], root: str) -> tuple[str, ...]:
    """The places of the findings, without duplicates."""
    return tuple(dict.fromkeys(finding.below(root).path if finding.path else root for finding in findings))
