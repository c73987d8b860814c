"""The progress of an application's workers: a table on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from pystreams.cli.terminal.console import messages
from pystreams.cli.terminal.logs import LogOptions
from pystreams.cli.terminal.progress import Display, Standbys, display_for, known
from pystreams.clock import Clock, Deadline
from pystreams.meter import Meter
from pystreams.runtime.supervisor.supervision import Supervision, WorkersSummary
from pystreams.runtime.supervisor.worker import Report, Worker

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

_PAINT_INTERVAL_MS = 250.0


class WorkersDisplay(Protocol):
    """Shows progress between ``with`` and its end."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def update(self, supervision: Supervision, pids: Mapping[int, int]) -> None:
        """Show the present state. ``pids`` are the processes that are alive, by worker number."""
        ...


class WorkersLines:
    """One line for all workers together."""

    def __init__(self, lines: Display) -> None:
        self._lines = lines

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to take down."""

    def update(self, supervision: Supervision, pids: Mapping[int, int]) -> None:
        """Print a line if it is time for one."""
        summary = supervision.summary()
        # There is nothing to show before the first report of a worker, and after the request to stop.
        if supervision.has_run and not supervision.stopping:
            standbys = Standbys(summary.standbys, summary.standby_lag)
            self._lines.update(
                summary.state,
                summary.records,
                summary.lag,
                summary.left_out,
                standbys,
                summary.internal_records,
            )


class WorkersTable:
    """A row for each worker and one for all, redrawn a few times a second."""

    def __init__(self, meter: Meter, clock: Clock) -> None:
        self._meter = meter
        self._clock = clock
        self._meters: dict[int, Meter] = {}
        self._pause = Deadline(clock, 0)
        self._live: Live | None = None

    def __enter__(self) -> Self:
        from rich.live import Live

        # The output of workers appears above the table (it passes through this process), unless standard output is a
        # pipe.
        self._live = Live(
            console=messages(), auto_refresh=False, transient=True, redirect_stdout=sys.stdout.isatty()
        )
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, supervision: Supervision, pids: Mapping[int, int]) -> None:
        """Redraw the table if that is due."""
        if self._live is None or not self._pause.expired():
            return
        self._pause = Deadline(self._clock, _PAINT_INTERVAL_MS)
        self._live.update(self.paint(supervision, pids), refresh=True)

    def paint(self, supervision: Supervision, pids: Mapping[int, int]) -> Table:
        """The table with the present values."""
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in ("worker", "process", "state"):
            table.add_column(name)
        for name in ("tasks", "records", "records/s", "lag", "left out", "restarts"):
            table.add_column(name, justify="right")
        summary = supervision.summary()
        for name in _further(summary):
            table.add_column(name, justify="right")
        for worker in supervision.workers.values():
            row = self._row(worker, pids.get(worker.number))
            further = _further_figures(worker.internal_records, worker.report)
            table.add_row(*row, *(further[name] for name in _further(summary)))
        self._meter.update(summary.records)
        left_out = sum(summary.left_out.values())
        totals = _figures(
            summary.tasks, summary.records, self._meter, summary.lag, left_out, summary.restarts
        )
        table.add_section()
        further = _further_figures(summary.internal_records, summary)
        row = "all", "", summary.state, *totals
        table.add_row(*row, *(further[name] for name in _further(summary)))
        return table

    def _row(self, worker: Worker, pid: int | None) -> tuple[str, ...]:
        meter = self._meters.setdefault(worker.number, Meter(self._clock))
        meter.update(worker.records)
        report = worker.report
        lag = report.lag if report.tasks else 0
        return (
            str(worker.number),
            "" if pid is None else str(pid),
            worker.shown_state,
            *_figures(report.tasks, worker.records, meter, lag, worker.left_out.total(), worker.restarts),
        )


def _figures(
    tasks: int, records: int, meter: Meter, lag: int | None, left_out: int, restarts: int
) -> tuple[str, ...]:
    return str(tasks), f"{records:,}", f"{meter.rate():,.0f}", known(lag), f"{left_out:,}", str(restarts)


_INTERNAL, _STANDBYS, _STANDBY_LAG = "internal", "standbys", "their lag"


def _further(summary: WorkersSummary) -> list[str]:
    """The columns that are only shown if they have content."""
    internal = [_INTERNAL] if summary.internal_records else []
    return internal + ([_STANDBYS, _STANDBY_LAG] if summary.standbys else [])


def _further_figures(internal: int, figures: Report | WorkersSummary) -> dict[str, str]:
    """The figures of these columns, by name. ``internal``: the number of records from internal topics."""
    return {
        _INTERNAL: f"{internal:,}",
        _STANDBYS: str(figures.standbys),
        _STANDBY_LAG: known(figures.standby_lag),
    }


def workers_display_for(options: LogOptions, meter: Meter, clock: Clock) -> WorkersDisplay:
    """A table if standard error is a terminal, else lines; nothing with ``--quiet``."""
    if not messages().is_terminal or options.as_json or options.quiet:
        return WorkersLines(display_for(options, meter, clock))
    return WorkersTable(meter, clock)
