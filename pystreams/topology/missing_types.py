"""The types that a program does not give where they are needed: all are reported in one error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pystreams.errors import TopologyError
from pystreams.topology.deferred import Origin
from pystreams.user_code import CodeLine


class MissingType(NamedTuple):
    """A type that nothing gives: ``argument`` is "key" or "value", ``needed_by`` the first step or store that needs it,
    and ``needed_at`` the line that declared that one."""

    origin: Origin
    argument: str
    needed_by: str
    needed_at: CodeLine | None

    @property
    def sentence(self) -> str:
        call = self.origin.call
        return f"{self.needed_by if call is None else call.function} has no {self.argument} type"

    @property
    def place(self) -> CodeLine | None:
        call = self.origin.call
        return self.needed_at if call is None else call.place

    @property
    def where(self) -> str:
        """The user's line and call, and only then the names of the steps, which may be generated."""
        call, place = self.origin.call, self.place
        elsewhere = f" in {self.needed_at}" if self.needed_at not in (None, place) else ""
        line = "" if place is None else f"{place}, " if call is None else f"{place}, {call.function}: "
        return f"{line}{self.origin.data}, needed by {self.needed_by}{elsewhere}"


class MissingTypes:
    """Collects missing types while a topology is built."""

    def __init__(self) -> None:
        self._found: dict[tuple[Origin, str], MissingType] = {}

    def add(self, missing: MissingType) -> None:
        """A type that several steps need is reported once."""
        self._found.setdefault((missing.origin, missing.argument), missing)

    def check(self) -> None:
        """Raises ``TopologyError`` if a type is missing."""
        every = list(self._found.values())
        if not every:
            return
        error = TopologyError(
            _listed(one.sentence for one in every),
            where="\n".join(one.where for one in every),
            why="; ".join(dict.fromkeys(one.origin.reason for one in every)),
            hint=_hint(every),
        )
        error.declared_at(every[0].place)
        raise error


def _hint(every: list[MissingType]) -> str:
    arguments: dict[str, dict[str, None]] = {}
    for one in every:
        arguments.setdefault(one.origin.remedy, {})[f"{one.argument}="] = None
    remedies = [remedy.format(" or ".join(given)) for remedy, given in arguments.items()]
    defaults = " and ".join(dict.fromkeys(f"default_{one.argument}_serde" for one in every))
    return f"{'; '.join(remedies)}; {defaults} would be for all that have no type"


def _listed(sentences: Iterable[str]) -> str:
    """Each sentence once, as there may be several steps in which the same is missing."""
    return ", ".join(dict.fromkeys(sentences))
