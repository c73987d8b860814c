"""While tasks run, the driver hears how many records they have processed, of how many."""

from __future__ import annotations

import socket
from pathlib import Path

from pystreams.backfill.run import Planned, Progress, run
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.backfill.spark.progress import listening
from tests.backfill.kit import Backfill, memory
from tests.backfill.programs import history, word_count
from tests.live.support import eventually


def test_the_driver_hears_of_every_task(tmp_path: Path, executor: SparkExecutor) -> None:
    backfill = Backfill(
        word_count(), memory(history("word count", 5, 2)), tmp_path / "spark", executor=executor
    )
    planned = Planned(
        backfill.loaded, backfill.application, backfill.plan, backfill.manifest, backfill.source
    )
    heard: list[Progress] = []
    result = run(planned, executor, str(tmp_path / "spark"), progress=heard.append)
    last = {(one.slice, one.task): one for one in heard if one.finished}
    assert set(last) == {(slice, task) for slice in (0, 1) for task in (0, 1)}
    for (slice, task), one in last.items():
        assert one.records == one.expected == result.outcome(result.plan.slices[slice], task).records


def test_reports_of_others_are_not_heard() -> None:
    heard: list[tuple[int, int, bool]] = []
    with listening("127.0.0.1", lambda *told: heard.append(told)) as reporter:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(bytes(29), reporter.address)
            stranger.sendto(b"", reporter.address)
        task = reporter.of(3)
        task.processed(7)
        task.finished()
        eventually(lambda: heard == [(3, 7, True)])
    assert "token" not in repr(reporter)
