"""Lines of Python with their indentation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Writer:
    """Collects source text. ``writer(line)`` adds a line at the current indentation."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.level = 0

    def __call__(self, line: str) -> None:
        self.lines.append("    " * self.level + line if line else "")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines added inside are indented under ``head``."""
        self(head)
        self.level += 1
        yield
        self.level -= 1

    def expects_statement(self) -> bool:
        """True if the current block is still empty, so that it needs a statement."""
        last = self.lines[-1].strip() if self.lines else ""
        return last.startswith("#") or last.partition("  #")[0].endswith(":")

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
