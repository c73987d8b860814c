"""The progress of a backfill in a notebook: a bar for each slice, below the cell.

IPython's own displays show it, so that neither widgets nor other packages are needed. Jupyter, VS Code, Colab and
Databricks draw the HTML; front ends without HTML show the lines of text.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pystreams.backfill.display.slice_meter import SliceMeter, Slices, shortened
from pystreams.clock import Clock, Deadline
from pystreams.times import show_duration

if TYPE_CHECKING:
    from pystreams.backfill.compute.driver import Progress

#: The least time between two drawings; each of them is a message to the front end.
_PAUSE_MS = 500.0

_CELL = '<td style="text-align: left; white-space: nowrap">{}</td>'


class NotebookDisplay:
    """A bar for each slice, drawn again as records are processed. ``update`` may be called from any thread.

    Nothing appears before the first report. After an exception the last line says that the backfill has stopped, and
    ``left``, what is left of it.
    """

    def __init__(self, clock: Clock, titles: Sequence[tuple[str, int]], left: str) -> None:
        self._clock = clock
        self._left = left
        self._slices = Slices(clock)
        self._slices.titles = titles
        self._began_ms = clock.monotonic_ms()
        self._pause = Deadline(clock, 0)
        self._lock = threading.Lock()
        #: IPython's handle of what is shown; None before the first report.
        self._shown: Any = None
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._ended = True
            if self._shown is not None:
                self._draw(self._ending(kind))

    def update(self, progress: Progress) -> None:
        """Add the report of one task, and draw the bars if it is time for that."""
        with self._lock:
            found = self._slices.update(progress)
            if self._ended or not (found.over or self._pause.expired()):
                return
            self._pause = Deadline(self._clock, _PAUSE_MS)
            self._draw("")

    def _draw(self, ending: str) -> None:
        content = {"text/plain": self._text(ending), "text/html": self._html(ending)}
        if self._shown is None:
            from IPython.display import display

            self._shown = display(content, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._shown.update(content, raw=True)

    def _ending(self, kind: type[BaseException] | None) -> str:
        elapsed = show_duration((self._clock.monotonic_ms() - self._began_ms) / 1000)
        if kind is None:
            return f"Computed in {elapsed}."
        stopped = "Stopped" if issubclass(kind, KeyboardInterrupt) else "Failed"
        return f"{stopped} after {elapsed}. {self._left}"

    def _text(self, ending: str) -> str:
        rows = ["  ".join(self._cells(meter)) for meter in self._slices.meters.values()]
        return "\n".join([*rows, *filter(None, [ending])])

    def _html(self, ending: str) -> str:
        rows = [_row(_bar(meter), *map(escape, self._cells(meter))) for meter in self._slices.meters.values()]
        return f"<table>{''.join(rows)}</table>{escape(ending)}"

    def _cells(self, meter: SliceMeter) -> tuple[str, str, str, str]:
        tasks = f"{len(meter.finished):,} of {meter.tasks:,} tasks"
        return self._slices.name_of(meter), shortened(meter.title), tasks, meter.numbers()


def _row(*cells: str) -> str:
    return f"<tr>{''.join(map(_CELL.format, cells))}</tr>"


def _bar(meter: SliceMeter) -> str:
    """HTML's own bar. Without a value it shows that something is going on."""
    if meter.over:
        return '<progress max="1" value="1"></progress>'
    if not meter.total:
        return "<progress></progress>"
    return f'<progress max="{meter.total}" value="{min(meter.done, meter.total)}"></progress>'
