"""The progress of a backfill: a bar for each slice on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from pystreams.backfill.display.slice_meter import Slices, shortened
from pystreams.backfill.display.terminal import BarDisplay
from pystreams.cli.terminal.console import messages
from pystreams.cli.terminal.progress import LINE_INTERVAL_MS
from pystreams.clock import Clock, Deadline

if TYPE_CHECKING:
    from pystreams.backfill.compute.driver import Progress


class Display(Protocol):
    """Shows progress between ``with`` and its end; ``update`` may be called from any thread."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def expect(self, titles: Sequence[tuple[str, int]]) -> None:
        """Set the title and the number of tasks of each slice, before the first ``update``."""
        ...

    def step(self, text: str) -> None:
        """Show a step of the work outside of slices."""
        ...

    def update(self, progress: Progress) -> None:
        """Add the report of one task."""
        ...


class LineDisplay:
    """A line at each step, at the beginning and end of each slice, and every few seconds in between."""

    def __init__(self, clock: Clock) -> None:
        self._slices = Slices(clock)
        self._clock = clock
        self._pauses: dict[int, Deadline] = {}
        self._shown_end: set[int] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to take down."""

    def expect(self, titles: Sequence[tuple[str, int]]) -> None:
        """Lines come with the records."""
        self._slices.titles = titles

    def step(self, text: str) -> None:
        """Print it."""
        messages().print(text, markup=False)

    def update(self, progress: Progress) -> None:
        """Print a line if one is due."""
        with self._lock:
            found = self._slices.update(progress)
            pause = self._pauses.get(found.number)
            ends = found.over and found.number not in self._shown_end
            if pause is not None and not pause.expired() and not ends:
                return
            if found.over:
                if not ends:
                    return
                self._shown_end.add(found.number)
            self._pauses[found.number] = Deadline(self._clock, LINE_INTERVAL_MS)
        name = self._slices.name_of(found)
        messages().print(f"{name}  {shortened(found.title)}  {found.numbers()}", markup=False)


def display_for_terminal(clock: Clock) -> Display:
    """Bars if standard error is a terminal, else lines."""
    console = messages()
    return BarDisplay(clock, console) if console.is_terminal else LineDisplay(clock)
