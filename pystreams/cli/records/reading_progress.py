"""The progress of reading a long input: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pystreams.cli.records.input_lines import InputLines
from pystreams.cli.terminal.console import messages, note
from pystreams.cli.terminal.progress import LINE_INTERVAL_MS
from pystreams.clock import Clock
from pystreams.meter import Meter

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

#: Work that ends within this time does not need a bar.
QUIET_MS: Final = 1_000.0
_PAINT_MS: Final = 100.0
#: The clock is not read for each record.
_RECORDS: Final = 256


class ReadingProgress:
    """Shows records, their rate, and the share of the input where its size is known."""

    def __init__(self, lines: InputLines, clock: Clock) -> None:
        self._lines = lines
        self._clock = clock
        self._meter = Meter(clock)
        self._on_terminal = messages().is_terminal
        self._next_ms = clock.monotonic_ms() + (QUIET_MS if self._on_terminal else LINE_INTERVAL_MS)
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def update(self, records: int) -> None:
        """Report the number of records read so far; it is shown if an update is due."""
        if records % _RECORDS or self._lines.typed:
            return
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._next_ms:
            return
        self._meter.update(records)
        if self._on_terminal:
            self._next_ms = now_ms + _PAINT_MS
            self._paint()
        else:
            self._next_ms = now_ms + LINE_INTERVAL_MS
            share = self._share()
            note(f"{self._numbers()}{'' if share is None else f'  {share:.0%}'}")

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()

    def _paint(self) -> None:
        if self._bar is None:
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),
                TaskProgressColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[numbers]}"),
                console=messages(),
                transient=True,
                redirect_stdout=False,
                expand=True,
            )
            self._task = self._bar.add_task("writing", total=self._lines.size_bytes, numbers="")
            self._bar.start()
        assert self._task is not None
        done = 0 if self._lines.size_bytes is None else self._lines.position_bytes()
        self._bar.update(self._task, completed=done, numbers=self._numbers(), refresh=True)

    def _share(self) -> float | None:
        size = self._lines.size_bytes
        return self._lines.position_bytes() / size if size else None

    def _numbers(self) -> str:
        return f"{self._meter.processed:>11,} records  {self._meter.rate():>9,.0f}/s"


@contextmanager
def reading_progress(lines: InputLines, clock: Clock) -> Iterator[ReadingProgress]:
    """Progress, which is removed at the end of the ``with`` block."""
    progress = ReadingProgress(lines, clock)
    try:
        yield progress
    finally:
        progress.close()
