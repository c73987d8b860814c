"""Decides how far apart in time the tasks of a group may be while it catches up.

The further apart the tasks that read the users' topics are, the more windows the tasks downstream keep open: an hour
between two of them adds all windows of that hour. So tasks that are too far ahead pause until the others come nearer.

The distance is measured between *heads*, the times of the next records, and not between processed records: so all tasks
continue after a gap in time, however long it is.

The distance is limited as follows. Processes with the same pace should hardly ever pause, because they would be idle
meanwhile. Their knowledge of each other is as old as the last commit and the last look at the group. So the limit is
the event time by which the task furthest behind has advanced in its last few steps. A step lasts from one look at the
group to the next one that shows progress of this task. The limit is low for slow work, and high for fast work or sparse
records. It also limits the size of the state: a task that is ahead has processed no more than it could process in the
time of these steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from pystreams.ids import TaskId
from pystreams.runtime.catching_up.stages import Stages
from pystreams.runtime.catching_up.time_steps import time_steps
from pystreams.stream_time import NO_TIME, TIME_MAX
from pystreams.topology.built import BuiltTopology

#: The limit is the sum of this many steps of the task that is furthest behind: one that is not committed yet, one that
#: other processes have not read yet, and one because work is uneven.
STEPS: Final = 3
#: The distance is limited once ``STEPS`` steps are known, and after this time in any case, because the process that is
#: furthest behind may be dead, and then makes no steps.
PACE_KNOWN_AFTER_MS: Final = 1_000.0
#: A lower limit would not make the state much smaller.
_DISTANCE_MS_MIN: Final = 60_000


@dataclass(frozen=True, slots=True)
class Spread:
    """The consequences of one look at the group."""

    #: The times (ms) of the next records of lagging tasks, if their commits have them.
    heads: Mapping[TaskId, int] = field(default_factory=dict)
    #: The tasks that pause if they are too far ahead. A task that has caught up does not.
    may_pause: frozenset[TaskId] = frozenset()
    #: None: there is no limit (ms).
    distance_ms: int | None = None

    def least(self, but: Collection[TaskId] = ()) -> tuple[int, TaskId] | None:
        """The lowest head of other tasks than ``but``, and its task."""
        return min(((head, task) for task, head in self.heads.items() if task not in but), default=None)

    def limit_ms(self, running: Collection[TaskId] = ()) -> int:
        """The time (ms) up to which a thread that runs these tasks may process. Their own heads do not count, because
        the thread knows their progress better, and keeps them in the order of time."""
        least = self.least(running)
        return TIME_MAX if least is None or self.distance_ms is None else least[0] + self.distance_ms

    def pausing(self) -> frozenset[TaskId]:
        """The tasks that should pause, as of their last commits."""
        limit_ms = self.limit_ms()
        return frozenset(task for task in self.may_pause if self.heads.get(task, NO_TIME) > limit_ms)


class Pace:
    """The pace in event time of the tasks that are furthest behind."""

    def __init__(self, distance_ms_min: int) -> None:
        self._min_ms = distance_ms_min
        self._since_ms: float | None = None
        self._least_ms = 0
        self._steps_ms: deque[int] = deque(maxlen=STEPS)

    def distance_ms(self, at_ms: float, least_ms: int | None) -> int | None:
        """The limit of the distance, given the lowest head (ms) at a moment; None: not known yet."""
        if least_ms is None:
            self._since_ms = None
            self._steps_ms.clear()
            return None
        if self._since_ms is None:
            self._since_ms = at_ms
        elif least_ms > self._least_ms:
            self._steps_ms.append(least_ms - self._least_ms)
        self._least_ms = least_ms
        if len(self._steps_ms) < STEPS and at_ms - self._since_ms < PACE_KNOWN_AFTER_MS:
            return None
        return self._min_ms + sum(self._steps_ms)


def least_distance_ms(built: BuiltTopology, stages: Stages) -> int:
    """The lowest limit (ms) of the distance: a task that is ahead by less never pauses. It is at least the longest
    grace, because windows are open for that time in any case. The time for which steps hold back records is added,
    because these records reach the tasks downstream later by that time."""
    graces = [step.grace_ms or 0 for sub in built.subtopologies for step in time_steps(sub)]
    held_back = [
        stages.hold_back_until(first, last) for last in stages.in_order for first in stages.before[last]
    ]
    return max(_DISTANCE_MS_MIN, max(graces, default=0) + max(held_back, default=0))
