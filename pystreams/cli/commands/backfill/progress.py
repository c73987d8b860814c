"""The progress of a backfill: a bar for each slice on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from pystreams.cli.terminal.console import messages
from pystreams.cli.terminal.progress import LINE_INTERVAL_MS, Meter
from pystreams.clock import Clock, Deadline

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from pystreams.backfill.compute.driver import Progress

#: The number of characters of a slice's title that are shown: a bar has one line.
_TITLE_CHARACTERS = 34

#: Tasks report progress about once a second, in steps of thousands: a rate over less time than this would jump.
_RATE_WINDOW_MS = 15_000.0

#: Before this share of a slice is done, the remaining time is not estimated.
_TELLING_SHARE = 0.001

#: A rate over fewer seconds than this is not meaningful.
_RATE_MIN_S = 0.5


@dataclass
class SliceMeter:
    """One slice: the sums over its tasks, and how fast they grow."""

    number: int
    title: str
    meter: Meter
    records: dict[int, int] = field(default_factory=dict)
    expected: dict[int, int] = field(default_factory=dict)
    finished: set[int] = field(default_factory=set)
    tasks: int = 1
    worked: int = 0

    def update(self, progress: Progress) -> None:
        """Add the report of one task. A task whose number of records falls was started again; its repeated work counts,
        too."""
        self.worked += max(progress.records - self.records.get(progress.task, 0), 0)
        self.records[progress.task] = progress.records
        self.expected[progress.task] = progress.expected
        if progress.finished:
            self.finished.add(progress.task)
        self.meter.update(self.worked)

    @property
    def done(self) -> int:
        """Records so far."""
        return sum(self.records.values())

    @property
    def total(self) -> int | None:
        """The estimated total number of records; None until all tasks have reported."""
        return sum(self.expected.values()) if len(self.expected) == self.tasks else None

    @property
    def over(self) -> bool:
        """Whether all tasks are done."""
        return len(self.finished) == self.tasks

    @property
    def remaining_s(self) -> float | None:
        """Seconds to the end at the present rate; None while it cannot be estimated."""
        rate, total = self.meter.rate(), self.total
        if total is None or rate <= 0 or self.done < total * _TELLING_SHARE:
            return None
        return max(total - self.done, 0) / rate

    def numbers(self) -> str:
        """Records, rate and time that is left, as a bar or a line shows them."""
        elapsed_s, total = self.meter.elapsed_s(), self.total
        of = "" if total is None or self.over else f" of {total:,}"
        shown = f"{self.done:,}{of} {'record' if self.done == 1 and not of else 'records'}"
        if elapsed_s < _RATE_MIN_S:
            return shown
        if self.over:
            return f"{shown}  {self.done / elapsed_s:,.0f}/s  {duration(elapsed_s)}"
        left = "" if self.remaining_s is None else f"  {duration(self.remaining_s)} left"
        return f"{shown}  {self.meter.rate():,.0f}/s{left}"


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


class _Slices:
    """The meters of all slices. A slice's time begins with its first report."""

    def __init__(self, clock: Clock) -> None:
        self.titles: Sequence[tuple[str, int]] = ()
        self._clock = clock
        self._meters: dict[int, SliceMeter] = {}

    def update(self, progress: Progress) -> SliceMeter:
        number = progress.slice
        if number not in self._meters:
            title, tasks = self.titles[number]
            self._meters[number] = SliceMeter(number, title, Meter(self._clock, _RATE_WINDOW_MS), tasks=tasks)
        meter = self._meters[number]
        meter.update(progress)
        return meter


class BarDisplay:
    """A bar for each slice, redrawn as records are processed."""

    def __init__(self, clock: Clock) -> None:
        self._slices = _Slices(clock)
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
            console=messages(),
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
        """A bar comes with the first record of its slice."""
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
            name = f"slice {found.number + 1} of {len(self._slices.titles)}  {shortened(found.title)}"
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


class LineDisplay:
    """A line at each step, at the beginning and end of each slice, and every few seconds in between."""

    def __init__(self, clock: Clock) -> None:
        self._slices = _Slices(clock)
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
        name = f"slice {found.number + 1} of {len(self._slices.titles)}"
        messages().print(f"{name}  {shortened(found.title)}  {found.numbers()}", markup=False)


def shortened(title: str) -> str:
    """A title that fits beside a bar."""
    return title if len(title) <= _TITLE_CHARACTERS else f"{title[: _TITLE_CHARACTERS - 1]}…"


def duration(seconds: float) -> str:
    """``7 s``, ``2 min 05 s`` or ``3 h 20 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def display_for_terminal(clock: Clock) -> Display:
    """Bars if standard error is a terminal, else lines."""
    return BarDisplay(clock) if messages().is_terminal else LineDisplay(clock)
