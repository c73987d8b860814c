"""The manual of the language, read by a machine: its sections, its signatures, its examples and what they print."""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass, field
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = (DOCS / "dsl.md", *sorted((DOCS / "dsl").glob("*.md")), DOCS / "concepts.md")

#: What the pages say that all examples begin with.
PRELUDE = """\
from datetime import timedelta

from pystreams import *
from pystreams.testing import play
"""

#: What the fence of an example says.
EXAMPLE = "python"

_FENCE = re.compile(r"^```(.*)$")
_HEADING = re.compile(r"^(#+) (.*)$")
_NAMED = re.compile(r"`(\w+(?:\.\w+)?)[`(]")


@dataclass
class Block:
    """A fenced block; ``line`` is that of its fence, counted from 1."""

    page: Path
    line: int
    info: str
    text: str
    #: The last block before it, if nothing stands between.
    before: Block | None = None

    @property
    def where(self) -> str:
        return f"{self.page.name}:{self.line}"


@dataclass
class Section:
    """A heading, and what stands below it up to the next one."""

    page: Path
    line: int
    level: int
    heading: str
    lines: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """``Class.method`` for each in the heading."""
        return _NAMED.findall(self.heading)

    @property
    def table_names(self) -> list[str]:
        """Those that begin a row of a table."""
        cells = (line.split("|")[1] for line in self.lines if line.startswith("|"))
        return [name for cell in cells for name in _NAMED.findall(cell)]

    @property
    def examples(self) -> list[Block]:
        return [block for block in self.blocks if block.info == EXAMPLE]

    @property
    def signatures(self) -> list[Block]:
        return [block for block in self.blocks if block.info == "python signature"]


def sections(page: Path) -> list[Section]:
    """The sections of a page, in order."""
    found: list[Section] = []
    block: Block | None = None
    last: Block | None = None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence, heading = _FENCE.match(line), _HEADING.match(line)
        if block is not None:
            if fence:
                found[-1].blocks.append(block)
                last, block = block, None
            else:
                block.text += line + "\n"
        elif fence:
            block = Block(page, number, fence[1], "", last)
        elif heading:
            found.append(Section(page, number, len(heading[1]), heading[2]))
            last = None
        elif line.strip():
            found[-1].lines.append(line)
            last = None
    assert block is None, f"{block.where} has no end"
    return found


def examples(page: Path) -> list[Block]:
    return [block for section in sections(page) for block in section.examples]


def expected(page: Path) -> dict[int, Block]:
    """The block that shows what an example prints, by the example's line."""
    blocks = [block for section in sections(page) for block in section.blocks]
    return {b.before.line: b for b in blocks if b.info == "text" and b.before and b.before.info == EXAMPLE}


def run(page: Path) -> list[tuple[Block, str]]:
    """Run the examples of a page: each with what it prints."""
    told: list[tuple[Block, str]] = []
    for block in examples(page):
        # Dataclasses look for the module that their annotations stand in.
        names: dict[str, object] = {"__name__": "builtins"}
        exec(compile(PRELUDE, "prelude", "exec"), names)
        out = io.StringIO()
        padded = "\n" * block.line + block.text
        with contextlib.redirect_stdout(out):
            exec(compile(padded, str(page), "exec", dont_inherit=True), names)
        told.append((block, "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())))
    return told
