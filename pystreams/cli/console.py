"""What people see: results on standard output, everything else on standard error."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pystreams.cli.user_lines import user_lines
from pystreams.errors import StreamsError

if TYPE_CHECKING:
    from rich.console import Console


def output() -> Console:
    """A console on standard output."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


def messages() -> Console:
    """A console on standard error: progress, notes and errors, so that results can be piped."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def note(text: str) -> None:
    """Say something that is no result."""
    messages().print(text, markup=False, style="dim")


def log_to_stderr(verbose: bool) -> None:
    """Have what the library logs printed: warnings, or with ``verbose`` what threads and tasks do."""
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(message)s",
        datefmt="%H:%M:%S",
    )


def show_error(error: StreamsError) -> None:
    """What happened, where, why, and what to do next: a line each."""
    show_parts(
        error.what,
        where=error.where,
        line=user_lines(error.__cause__),
        why=error.why,
        next=error.hint,
    )


def show_parts(what: str, **parts: str) -> None:
    """An error by its parts; those that are empty are left out."""
    from rich.text import Text

    text = Text("Error: ", style="bold red")
    text.append(what, style="bold")
    for label, part in parts.items():
        if part:
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
