"""Output to the terminal: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console


def output() -> Console:
    """A console on standard output."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


class EnduringStream:
    """Writes to a stream while it has a reader, and discards output after that: work continues when the pipe to a log
    breaks, or the terminal is closed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:
        return self._stream.encoding

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, text: str) -> int:
        try:
            self._stream.write(text)
        except OSError:
            self._silence()
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            self._silence()

    def _silence(self) -> None:
        """Redirect the stream to the null device, so that the interpreter can flush its buffers at exit."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)


def messages() -> Console:
    """A console on standard error: progress, notes and errors, so that results can be piped. While a bar or table is
    shown there, it prints above it."""
    from rich.console import Console

    return Console(file=cast(IO[str], EnduringStream(sys.stderr)), highlight=False, soft_wrap=True)


def note(text: str) -> None:
    """Print a message that is not a result."""
    messages().print(text, markup=False, style="dim")


def print_json(content: object) -> None:
    """Print one JSON object on standard output: on a terminal with indents, elsewhere on a single line, which other
    programs find even behind messages on the same pipe."""
    indent = 1 if sys.stdout.isatty() else None
    print(json.dumps(content, indent=indent, ensure_ascii=False), flush=True)


def text_or_json(value: object) -> str:
    """A value in a cell of a table: a text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on a terminal; elsewhere tab-separated lines without a heading, for other programs to read."""
    console = output()
    if not console.is_terminal:
        for row in rows:
            print("\t".join(row))
        return
    from rich import box
    from rich.table import Column, Table
    from rich.text import Text

    # A name that is too long for its column goes on in the next line: it is never cut.
    table = Table(*(Column(name, overflow="fold") for name in columns), box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)
