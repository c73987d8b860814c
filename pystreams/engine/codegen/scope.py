"""The variables that hold the record at a place in generated code, and the statement that leaves this place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Scope:
    """A place in generated code that processes one record.

    ``variables`` maps key, value, new, old … to the variable's name and the loop it belongs to. Assigning inside a
    nested loop must not touch a variable of an outer loop: the next round needs it.
    """

    leave: str
    loops: int = 0
    #: Whether the record's context is put into the cell only after a failure.
    late_context: bool = False
    variables: dict[str, tuple[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, arguments: Sequence[str], leave: str, loops: int = 0, late_context: bool = False) -> Scope:
        return cls(leave, loops, late_context, {name: (name, loops) for name in arguments})

    def __getitem__(self, part: str) -> str:
        return self.variables[part][0]

    def arguments(self, edge: Sequence[str]) -> str:
        return ", ".join(self[part] for part in edge)

    def loop(self) -> Scope:
        """The scope inside a loop."""
        return replace(self, loops=self.loops + 1, leave="continue")

    def bind(self, *parts: str) -> Scope:
        """The scope in which ``parts`` have variables that may be assigned here."""
        variables = dict(self.variables)
        for part in parts:
            if part not in variables:
                variables[part] = (part, self.loops)
            elif variables[part][1] != self.loops:
                variables[part] = (f"{part}_{self.loops}", self.loops)
        return replace(self, variables=variables)

    def value(self) -> str:
        """The variable to show as the record's value."""
        return self["value"] if "value" in self.variables else self["new"]
