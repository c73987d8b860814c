"""Lines of Python with their indentation, and the step that each belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import NamedTuple


class Work(StrEnum):
    """The work of a line of generated code, as profiles show it."""

    #: Calls a function of the program.
    FUNCTION = "function"
    ENCODE = "encode"
    PRODUCE = "produce"
    #: Everything else.
    ENGINE = "engine"


class LineOwner(NamedTuple):
    """The step that a line of generated code belongs to; empty for lines around all steps."""

    step: str = ""
    work: Work = Work.ENGINE


NOBODY = LineOwner()


class Writer:
    """Collects source text. ``writer(line)`` adds a line at the current indentation."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        #: The owner of each line.
        self.owners: list[LineOwner] = []
        self.level = 0
        self._owner = NOBODY

    def __call__(self, line: str) -> None:
        self.lines.append("    " * self.level + line if line else "")
        self.owners.append(self._owner)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines added inside are indented under ``head``."""
        self(head)
        self.level += 1
        yield
        self.level -= 1

    @contextmanager
    def owned_by(self, step: str, work: Work) -> Iterator[None]:
        """Lines added inside belong to ``step``."""
        before, self._owner = self._owner, LineOwner(step, work)
        yield
        self._owner = before

    def cut(self, start: int) -> None:
        """Remove all lines from the position ``start`` on."""
        del self.lines[start:]
        del self.owners[start:]

    def expects_statement(self) -> bool:
        """True if the current block is still empty, so that it needs a statement."""
        last = self.lines[-1].strip() if self.lines else ""
        return last.startswith("#") or last.partition("  #")[0].endswith(":")

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
