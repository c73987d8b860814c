"""An application with many partitions and stores starts, works and starts again with bounded means: see ``make
bench-large`` for larger ones."""

from __future__ import annotations

import pytest

from tests.benchmarks.large.measured import Measured, Size
from tests.live.support import Log

SIZE = Size(partitions=24, stores=10)
TASKS_STORES = SIZE.partitions * SIZE.stores

pytestmark = [pytest.mark.both_logs, pytest.mark.slow]


def test_many_tasks_with_many_stores_take_bounded_means(log: Log) -> None:
    measured = Measured(log, SIZE)
    measured.run()
    first, last = measured.steps[0], measured.steps[-1]
    print(*measured.steps, sep="\n")
    # Twice what an idle machine needs, and more: this is to notice what grows with the square of the size.
    assert sum(step.cpu_seconds for step in measured.steps) < 36
    assert max(step.memory_mib for step in measured.steps) - first.memory_mib < 50 + TASKS_STORES // 2
    assert max(step.open_files for step in measured.steps) < 200 + 20 * SIZE.partitions + 3 * TASKS_STORES
    assert last.open_files <= first.open_files + 50
