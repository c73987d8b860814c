"""The progress of an application while it runs: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, Self, TypeAlias

from pystreams.cli.terminal.console import messages
from pystreams.cli.terminal.logs import LogOptions, command_log
from pystreams.clock import Clock
from pystreams.engine.failures.left_out import totals_text
from pystreams.meter import Meter
from pystreams.plural import counted

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

#: The time between two progress lines without a terminal.
LINE_INTERVAL_MS = 30_000.0


#: States whose beginning gets a line; other states are short.
_WORKING: Final = frozenset({"restoring", "running"})


#: The number of records that were left out, by what became of them.
LeftOut: TypeAlias = Mapping[str, int]
NONE: Final[LeftOut] = MappingProxyType({})


class Standbys(NamedTuple):
    """How many standbys there are, and how many changelog offsets they lack; None while that is unknown."""

    number: int = 0
    lag: int | None = 0


NO_STANDBYS: Final = Standbys()


class Display(Protocol):
    """Shows progress between ``with`` and its end."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def update(
        self,
        state: str,
        processed: int,
        lag: int | None,
        left_out: LeftOut = NONE,
        standbys: Standbys = NO_STANDBYS,
        internal: int = 0,
    ) -> None:
        """``lag``: the number of records that wait to be processed; None while it is unknown. ``processed`` does not
        count the ``internal`` records, which came from internal topics."""
        ...


class BarDisplay:
    """One line that is redrawn."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

        progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<11}"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[numbers]}"),
            console=messages(),
            transient=True,
            # The output of the application appears above the bar, unless standard output is a pipe.
            redirect_stdout=sys.stdout.isatty(),
            expand=True,
        )
        self._task = progress.add_task("starting", total=None, numbers="")
        progress.start()
        self._progress = progress
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def update(
        self,
        state: str,
        processed: int,
        lag: int | None,
        left_out: LeftOut = NONE,
        standbys: Standbys = NO_STANDBYS,
        internal: int = 0,
    ) -> None:
        """Redraw the line."""
        self._meter.update(processed)
        if self._progress is None or self._task is None:
            return
        self._progress.update(
            self._task,
            description=state,
            completed=processed + internal,
            total=None if lag is None else max(processed + internal + lag, 1),
            numbers=_numbers(processed, self._meter.rate(), lag, left_out, standbys, internal),
        )


class NoDisplay:
    """Shows nothing, for ``--quiet``."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to take down."""

    def update(
        self,
        state: str,
        processed: int,
        lag: int | None,
        left_out: LeftOut = NONE,
        standbys: Standbys = NO_STANDBYS,
        internal: int = 0,
    ) -> None:
        """Nothing to show."""


class LineDisplay(NoDisplay):
    """A line when processing or restoring begins, and after that every 30 s if something has changed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._states: set[str] = set()
        self._shown: tuple[str, int, int | None, dict[str, int], Standbys, int]
        self._shown = "", 0, None, {}, NO_STANDBYS, 0
        self._shown_ms = clock.monotonic_ms()

    def update(
        self,
        state: str,
        processed: int,
        lag: int | None,
        left_out: LeftOut = NONE,
        standbys: Standbys = NO_STANDBYS,
        internal: int = 0,
    ) -> None:
        """Print a line if it is time for one."""
        now_ms, now = self._clock.monotonic_ms(), (state, processed, lag, dict(left_out), standbys, internal)
        elapsed_ms = now_ms - self._shown_ms
        # A client does not know its lag yet when it starts.
        begins = state in _WORKING and state not in self._states
        at_once = begins and (lag is not None or processed + internal > 0 or state == "restoring")
        if not at_once and (elapsed_ms < LINE_INTERVAL_MS or now == self._shown):
            return
        rate = 1000 * (processed - self._shown[1]) / elapsed_ms if elapsed_ms > 0 else 0.0
        self._states.add(state)
        self._shown, self._shown_ms = now, now_ms
        fields = {"state": state, "records": processed, "records_per_s": round(rate), "lag": lag}
        fields["internal_records"] = internal
        fields |= {"left_out": dict(left_out), "standbys": standbys.number, "standby_lag": standbys.lag}
        numbers = _numbers(processed, rate, lag, left_out, standbys, internal)
        command_log.info("%-11s %s", state, numbers, extra={"fields": fields})


def _numbers(
    processed: int, rate: float, lag: int | None, left_out: LeftOut, standbys: Standbys, internal: int
) -> str:
    records = "record " if processed == 1 else "records"
    parts = [f"{processed:>11,} {records}  {rate:>9,.0f}/s  lag {known(lag):>9}"]
    if internal:
        parts.append(f"and {internal:,} from internal topics")
    if standbys.number:
        parts.append(f"{counted(standbys.number, 'standby')}, lag {known(standbys.lag)}")
    return "  ".join(filter(None, (*parts, totals_text(left_out))))


def known(number: int | None) -> str:
    """The number; a question mark if it is not known."""
    return "?" if number is None else f"{number:,}"


def display_for(options: LogOptions, meter: Meter, clock: Clock) -> Display:
    """A bar if standard error is a terminal, else lines; nothing with ``--quiet``."""
    if options.quiet:
        return NoDisplay()
    if options.as_json or not messages().is_terminal:
        return LineDisplay(clock)
    return BarDisplay(meter)
