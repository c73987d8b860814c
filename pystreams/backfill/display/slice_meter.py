"""The progress of each slice, from the reports of its tasks: the work that is done and left, and the speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pystreams.clock import Clock
from pystreams.meter import Meter
from pystreams.times import show_duration

if TYPE_CHECKING:
    from pystreams.backfill.compute.driver import Progress
    from pystreams.backfill.plan.slices import BackfillPlan

#: The number of characters of a slice's title that are shown: a bar has one line.
_TITLE_CHARACTERS = 34

#: Tasks report progress about once a second, in steps of thousands: a rate over less time than this would jump.
_RATE_WINDOW_MS = 15_000.0

#: Before this share of a slice is done, the remaining time is not estimated.
_ESTIMATED_SHARE = 0.001

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
        if total is None or rate <= 0 or self.done < total * _ESTIMATED_SHARE:
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
            return f"{shown}  {self.done / elapsed_s:,.0f}/s  {show_duration(elapsed_s)}"
        left = "" if self.remaining_s is None else f"  {show_duration(self.remaining_s)} left"
        return f"{shown}  {self.meter.rate():,.0f}/s{left}"


class Slices:
    """The meters of all slices that have begun. A slice's time begins with its first report."""

    def __init__(self, clock: Clock) -> None:
        self.titles: Sequence[tuple[str, int]] = ()
        self.meters: dict[int, SliceMeter] = {}
        self._clock = clock

    def update(self, progress: Progress) -> SliceMeter:
        """Add the report of one task; its slice."""
        number = progress.slice
        if number not in self.meters:
            title, tasks = self.titles[number]
            self.meters[number] = SliceMeter(number, title, Meter(self._clock, _RATE_WINDOW_MS), tasks=tasks)
        meter = self.meters[number]
        meter.update(progress)
        return meter

    def name_of(self, meter: SliceMeter) -> str:
        """``slice 1 of 3``."""
        return f"slice {meter.number + 1} of {len(self.titles)}"


def titles(plan: BackfillPlan) -> list[tuple[str, int]]:
    """The inputs of each slice as a title, and its number of tasks."""
    return [(", ".join(input.topic for input in one.inputs), one.tasks) for one in plan.slices]


def shortened(title: str) -> str:
    """A title that fits beside a bar."""
    return title if len(title) <= _TITLE_CHARACTERS else f"{title[: _TITLE_CHARACTERS - 1]}…"
