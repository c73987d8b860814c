"""The progress of a backfill on a terminal: a bar for each slice."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pystreams.backfill.display.slice_meter import Slices, shortened
from pystreams.clock import Clock

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from pystreams.backfill.compute.driver import Progress


class BarDisplay:
    """A bar for each slice, redrawn as records are processed. ``update`` may be called from any thread."""

    def __init__(self, clock: Clock, console: Console) -> None:
        self._slices = Slices(clock)
        self._console = console
        self._bars: dict[int, TaskID] = {}
        self._progress: RichProgress | None = None
        self._step: TaskID | None = None

    def __enter__(self) -> Self:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓[/]"),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[numbers]}", markup=False),
            console=self._console,
            redirect_stdout=sys.stdout.isatty(),
            expand=True,
        )
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._end_step()
            self._progress.stop()

    def expect(self, titles: Sequence[tuple[str, int]]) -> None:
        """Set the title and the number of tasks of each slice. A bar comes with the first record of its slice."""
        self._slices.titles = titles

    def step(self, text: str) -> None:
        """Show a line without a total below the bars; it replaces the previous one."""
        if self._progress is not None:
            self._end_step()
            self._step = self._progress.add_task(text, total=None, numbers="")

    def update(self, progress: Progress) -> None:
        """Redraw the slice's bar."""
        found = self._slices.update(progress)
        painter = self._progress
        if painter is None:
            return
        self._end_step()
        if found.number not in self._bars:
            name = f"{self._slices.name_of(found)}  {shortened(found.title)}"
            self._bars[found.number] = painter.add_task(name, total=None, numbers="")
        total = found.done if found.over else found.total
        painter.update(
            self._bars[found.number],
            completed=found.done if total or not found.over else 1,
            total=1 if found.over and not total else total,
            numbers=found.numbers(),
        )

    def _end_step(self) -> None:
        if self._progress is not None and self._step is not None:
            self._progress.remove_task(self._step)
            self._step = None
