"""What people see: results on standard output, everything else on standard error."""

from __future__ import annotations

import logging
import os
import re
import shlex
import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Final, TextIO, cast

from pystreams.cli.user_lines import user_lines
from pystreams.errors import StreamsError

if TYPE_CHECKING:
    from rich.console import Console


def output() -> Console:
    """A console on standard output."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


_LOG_OPTIONS: Final = ("--bootstrap-servers", "--embedded-log")


class EnduringStream:
    """Writes to a stream as long as somebody takes it, and to nowhere after that: work goes on when the pipe to a log
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
        """What waits in buffers goes there, too, when the interpreter ends."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)


def messages() -> Console:
    """A console on standard error: progress, notes and errors, so that results can be piped. While a bar or table is
    shown there, it prints above it."""
    from rich.console import Console

    return Console(file=cast(IO[str], EnduringStream(sys.stderr)), highlight=False, soft_wrap=True)


def note(text: str) -> None:
    """Say something that is not a result."""
    messages().print(text, markup=False, style="dim")


def log_to_stderr(verbose: bool) -> None:
    """Have what the library logs printed: warnings, or with ``verbose`` what threads and tasks do."""
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(message)s",
        datefmt="%H:%M:%S",
    )


def on_the_same_log(hint: str, arguments: Sequence[str]) -> str:
    """A hint whose commands name the log that ``arguments``, those of the command that failed, name."""
    told: list[str] = []
    for index, argument in enumerate(arguments):
        if argument in _LOG_OPTIONS:
            told += arguments[index : index + 2]
        elif argument.partition("=")[0] in _LOG_OPTIONS:
            told.append(argument)
    return re.sub(r"pystreams topics \w+", lambda found: shlex.join([*found[0].split(), *told]), hint)


def show_error(error: StreamsError, arguments: Sequence[str] = ()) -> None:
    """What happened, where, why, and what to do next: a line each. ``arguments`` are those of the command."""
    show_parts(
        error.what,
        where=error.place,
        line=user_lines(error.__cause__),
        why=error.why,
        next=on_the_same_log(error.hint, arguments),
    )


def show_parts(what: str, **parts: str) -> None:
    """An error by its parts; those that are empty, or say what another has said, are left out."""
    from rich.text import Text

    text = Text("Error: ", style="bold red")
    text.append(what, style="bold")
    said = {""}
    for label, part in parts.items():
        if part not in said:
            said.add(part)
            indented = part.replace("\n", "\n" + " " * 9)
            text.append(f"\n  {label + ':':<6} ", style="dim").append(indented, style="default")
    messages().print(text)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on a terminal; elsewhere tab-separated lines without a heading, for other programs to read."""
    console = output()
    if not console.is_terminal:
        for row in rows:
            print("\t".join(row))
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)
