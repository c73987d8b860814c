"""How far a long run is: a bar on a terminal, a few lines elsewhere, both on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

T = TypeVar("T")

#: So many lines in all where there is no terminal.
_LINES = 5


def shown(things: Iterable[T], total: int, what: str) -> Iterator[T]:
    """The same things; as they are taken, it is told how many of ``total`` were and when it will be all."""
    return _bar(things, total, what) if sys.stderr.isatty() else _lines(things, total, what)


def _bar(things: Iterable[T], total: int, what: str) -> Iterator[T]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        for thing in things:
            yield thing
            progress.advance(task)


def _lines(things: Iterable[T], total: int, what: str) -> Iterator[T]:
    start = time.monotonic()
    for number, thing in enumerate(things, 1):
        yield thing
        if number * _LINES // total > (number - 1) * _LINES // total:
            took_s = time.monotonic() - start
            left_s = took_s * (total - number) / number
            print(f"{what}: {number} of {total}, {left_s:.0f} s to go", file=sys.stderr, flush=True)
