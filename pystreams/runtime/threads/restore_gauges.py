"""Metrics of what the stores of a thread's tasks lack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from pystreams.ids import TaskId
from pystreams.metrics import Metrics, names
from pystreams.runtime.threads.progress import RestoreProgress, StandbyProgress


class RestoreGauges:
    """Of one thread. A task that leaves it lacks nothing here."""

    def __init__(self, metrics: Metrics, thread: str) -> None:
        self._metrics = metrics
        self._thread = thread
        #: The tasks whose gauges were set last, by name of the gauge.
        self._shown: dict[str, set[TaskId]] = {}

    def show(self, restoring: Iterable[RestoreProgress], standbys: Iterable[StandbyProgress]) -> None:
        """Set the gauges. A standby whose lag is not known keeps its last one."""
        left: Counter[TaskId] = Counter()
        for restore in restoring:
            left[restore.task_id] += max(0, restore.end_offset - restore.position)
        self._set(names.RESTORE_REMAINING, left)
        self._set(names.STANDBY_LAG, {one.task_id: one.lag for one in standbys})

    def _set(self, name: str, values: Mapping[TaskId, int | None]) -> None:
        gone = self._shown.get(name, set()) - values.keys()
        for task_id, value in (*values.items(), *((task_id, 0) for task_id in gone)):
            if value is not None:
                self._metrics.gauge(name, thread_id=self._thread, task_id=task_id).set(value)
        self._shown[name] = set(values)
