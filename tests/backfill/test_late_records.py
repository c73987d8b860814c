"""A backfill counts late records as a run over the same history does: how many, how late, and with which grace none."""

from __future__ import annotations

from pathlib import Path

from pystreams import App, TimeWindows
from pystreams.engine.failures.lateness import LateRecords
from pystreams.testing import TopologyTestDriver
from tests.backfill.kit import Backfill, History, lines, memory, merged

#: Out of order within the partition, where a window of 10 with a grace of 5 drops two records.
PAST: History = {
    "in": [lines([("a", 1, 3), ("a", 2, 40), ("b", 3, 31), ("b", 4, 7), ("a", 5, 22), ("a", 6, 41)])]
}


def program() -> App:
    app = App("late-in-the-past")
    windows = TimeWindows.tumbling(10, grace=5)
    app.stream("in", key=str, value=int).group_by_key().windowed_by(windows).count(
        name="counts", step="count"
    )
    return app


def test_late_records_of_a_backfill_are_those_of_a_run(tmp_path: Path) -> None:
    result = Backfill(program(), memory(PAST), tmp_path / "staging", batch_rows=2).run()
    (done,) = result.manifest.slices.values()
    with TopologyTestDriver(program()) as driver:
        for topic, line in merged(PAST):
            driver.pipe_bytes(topic, *line)
        assert list(done.late) == driver.late_records
    assert done.late == (LateRecords("count", "counts", records=2, late_ms=33, grace_ms=31, read=6),)
    assert done.left_out == {"dropped": 2}


def test_late_records_of_all_tasks_are_added_up(tmp_path: Path) -> None:
    past = {"in": [*PAST["in"], lines([("c", 1, 100), ("c", 2, 1)])]}
    (done,) = Backfill(program(), memory(past), tmp_path / "staging").run().manifest.slices.values()
    assert done.late == (LateRecords("count", "counts", records=3, late_ms=99, grace_ms=91, read=8),)
