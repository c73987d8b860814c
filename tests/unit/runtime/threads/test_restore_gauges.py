"""Metrics say what stores lack, and nothing of tasks that have gone."""

from __future__ import annotations

from pystreams.ids import TaskId
from pystreams.metrics import Metrics, names
from pystreams.runtime.threads.progress import RestoreProgress, StandbyProgress
from pystreams.runtime.threads.restore_gauges import RestoreGauges

ONE, TWO = TaskId(0, 1), TaskId(0, 2)


def restore(task: TaskId, position: int, end: int, store: str = "counts") -> RestoreProgress:
    return RestoreProgress(task, store, 0, position, end, position)


def shown(metrics: Metrics, name: str) -> dict[str, float]:
    samples = [sample for sample in metrics.snapshot() if sample.name == name]
    assert all(dict(sample.tags)["thread_id"] == "t" for sample in samples)
    return {dict(sample.tags)["task_id"]: sample.value for sample in samples}


def test_what_is_left_of_all_stores_of_a_task_counts_together() -> None:
    metrics = Metrics()
    gauges = RestoreGauges(metrics, "t")
    gauges.show([restore(ONE, 10, 25), restore(ONE, 0, 5, "rows"), restore(TWO, 7, 7)], [])
    assert shown(metrics, names.RESTORE_REMAINING) == {"0_1": 20, "0_2": 0}
    gauges.show([restore(TWO, 7, 9)], [])
    assert shown(metrics, names.RESTORE_REMAINING) == {"0_1": 0, "0_2": 2}


def test_a_standby_has_its_lag_as_soon_as_it_is_known_until_it_goes() -> None:
    metrics = Metrics()
    gauges = RestoreGauges(metrics, "t")
    gauges.show([], [StandbyProgress(ONE), StandbyProgress(TWO, 8)])
    assert shown(metrics, names.STANDBY_LAG) == {"0_2": 8}
    gauges.show([], [StandbyProgress(ONE, 3), StandbyProgress(TWO)])
    assert shown(metrics, names.STANDBY_LAG) == {"0_1": 3, "0_2": 8}
    gauges.show([], [StandbyProgress(ONE, 0)])
    assert shown(metrics, names.STANDBY_LAG) == {"0_1": 0, "0_2": 0}
