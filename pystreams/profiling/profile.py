"""Adds up the stacks that a sampler has seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pystreams.profiling.places import WorkKind, work_of
from pystreams.profiling.sampler import Stack


class Row(NamedTuple):
    """A row of a profile. ``step`` is empty for work outside of steps. ``part`` None: all parts of the step. ``share``
    is the share of the working time, None for idle time."""

    step: str
    part: WorkKind | None
    ms: float
    share: float | None


@dataclass(frozen=True)
class Profile:
    """The time of all stream threads together, in milliseconds."""

    total_ms: float
    idle_ms: float
    #: By step and part.
    ms: Mapping[str, Mapping[WorkKind, float]]

    @classmethod
    def of(cls, stacks_ms: Mapping[Stack, float]) -> Profile:
        """The profile of stacks, given with the time at which each was seen."""
        ms: defaultdict[str, defaultdict[WorkKind, float]] = defaultdict(lambda: defaultdict(float))
        for stack, seen_ms in stacks_ms.items():
            step, part = work_of(stack)
            ms[step][part] += seen_ms
        return cls(sum(stacks_ms.values()), ms[""].get(WorkKind.IDLE, 0.0), ms)

    def rows(self) -> list[Row]:
        """The steps with their parts, then work outside of steps; the longest times come first."""
        rows: list[Row] = []
        work_ms = self.total_ms - self.idle_ms
        steps = {step: sum(parts.values()) for step, parts in self.ms.items() if step}
        for step in sorted(steps, key=lambda step: -steps[step]):
            rows.append(Row(step, None, steps[step], steps[step] / work_ms))
            rows += self._parts(step, work_ms)
        return rows + self._parts("", work_ms)

    def _parts(self, step: str, work_ms: float) -> list[Row]:
        parts = sorted(self.ms[step].items(), key=lambda item: -item[1])
        return [
            Row(step, part, ms, None if part is WorkKind.IDLE else ms / work_ms)
            for part, ms in parts
            if ms > 0
        ]
