"""Answers of queries, and the demands of callers on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from pystreams.errors import StateError
from pystreams.nearest import not_among
from pystreams.runtime.queries.placing import Found
from pystreams.runtime.queries.position import Position

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

#: ``latest``: the stream thread reads between two steps, and sees all records that it has processed.
#: ``committed``: the calling thread reads the last commit without waiting.
Freshness: TypeAlias = Literal["latest", "committed"]


@dataclass(frozen=True, slots=True)
class Demands:
    """The demands of a caller on answers. ``at_least``: answers must include the input up to this position; a read
    waits for it for up to ``timeout_ms``. ``standbys``: standbys may answer for partitions without a running task
    here."""

    freshness: Freshness = "latest"
    standbys: bool = False
    at_least: Position = field(default_factory=Position)
    timeout_ms: float = 30_000.0

    @classmethod
    def of(
        cls, freshness: Freshness, at_least: Position | None, timeout_ms: float, *, standbys: bool
    ) -> Demands:
        """The demands, checked. Raises ``StateError`` for an unknown freshness, and for standbys with ``latest``."""
        if freshness not in get_args(Freshness):
            raise StateError(
                f"{freshness!r} is not a freshness of answers",
                **not_among(freshness, list(get_args(Freshness)), "there are"),
            )
        if standbys and freshness == "latest":
            raise StateError(
                "standbys cannot be asked for the latest state",
                why="they follow what the task has written to its changelogs",
                hint="ask with freshness='committed'",
            )
        return cls(freshness, standbys, Position() if at_least is None else at_least, timeout_ms)


@dataclass(frozen=True, slots=True)
class Answer(Generic[R_co]):
    """A result from one partition of a store. If a key is in none of several partitions, it is the result from all of
    them (``partition`` None).

    ``position`` is the input that the store contains; a standby does not know it. ``standby``: a standby has answered;
    its stores are ``lag`` records behind the changelog (None: not known yet).
    """

    result: R_co
    partition: int | None
    position: Position
    standby: bool = False
    lag: int | None = 0


class Answers(NamedTuple, Generic[R]):
    """The answers by partition, and the places of the store's partitions."""

    by_partition: dict[int, Answer[R]]
    found: Found


def nothing(answers: Iterable[Answer[Any]]) -> Answer[None]:
    """The answer for a key that is in none of these partitions."""
    position, lags, standby = Position(), [0], False
    answers = list(answers)
    for answer in answers:
        position.update(answer.position)
        lags.append(answer.lag or 0)
        standby = standby or answer.standby
    partition = answers[0].partition if len(answers) == 1 else None
    unknown = any(answer.lag is None for answer in answers)
    return Answer(None, partition, position, standby, None if unknown else max(lags))
