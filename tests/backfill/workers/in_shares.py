"""An executor that computes each task in three shares, a history for two processes, and what the result of shares has
in common with that of whole tasks."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pystreams.backfill.compute.executor import Report, SliceJob
from pystreams.backfill.compute.inline import InlineExecutor
from pystreams.backfill.compute.shares import Cut, NotCutError, Share, cut_by
from pystreams.backfill.exchange.task_outcome import TaskOutcome
from pystreams.backfill.sources import BATCH_ROWS
from tests.backfill.kit import lines
from tests.live.support import eventually

THREE = 3

#: A partition with most of the records, and another.
HOT = {
    "in": [
        lines([(f"a{n % 70}", n, n // 10) for n in range(9_000)]),
        lines([("b", n, n) for n in range(300)]),
    ]
}


class TwoProcesses:
    """What a function of a program does while two processes share ``HOT``, so that both compute a share, and one of
    them dies once."""

    def __init__(self, folder: Path) -> None:
        self.killed = folder / "killed"
        self._pids = folder / "pids"
        self._pids.mkdir()
        self._driver = os.getpid()
        self._here: set[int] = set()

    def pids(self) -> list[int]:
        """The processes in which the function was called."""
        return [int(path.name) for path in self._pids.iterdir()]

    def seen(self, value: int) -> None:
        """Called with each value."""
        pid = os.getpid()
        if pid not in self._here:
            self._here.add(pid)
            (self._pids / str(pid)).touch()
            # A process that is up early would otherwise compute both shares.
            eventually(lambda: pid == self._driver or len(self.pids()) >= 3, "both compute a share")
        if pid != self._driver and value == 8_500 and not self.killed.exists():
            self.killed.touch()
            os.kill(pid, signal.SIGKILL)


class InShares(InlineExecutor):
    """Computes each task that reads a topic from outside in three shares, if it can be cut. ``cut`` are those that
    were, each with its slice."""

    def __init__(self, batch_rows: int = BATCH_ROWS) -> None:
        super().__init__(batch_rows=batch_rows)
        self.cut: set[tuple[int, int]] = set()

    def compute(self, job: SliceJob, report: Report) -> list[TaskOutcome]:
        with self._computing(job):
            return [self._task(job, task, report) for task in range(job.work.slice.tasks)]

    def _task(self, job: SliceJob, task: int, report: Report) -> TaskOutcome:
        work = job.work
        by = cut_by(work.application.load(), work.slice, work.folded, work.combined)
        if by is None or any(input.internal for input in work.slice.inputs):
            return self.compute_task(job, task, report)
        cut = Cut(THREE, by)
        try:
            for number in range(THREE):
                self.compute_task(job, task, report, Share(number, cut))
        except NotCutError:
            return self.compute_task(job, task, report)
        self.cut.add((work.slice.index, task))
        return self.join_shares(job, task, cut)


def by_key(sinks: Mapping[str, Any]) -> dict[Any, list[Any]]:
    """The records of each key in each partition of ``everything``'s sinks."""
    found = defaultdict(list)
    for topic, partitions in sinks.items():
        for partition, records in partitions.items():
            for record in records:
                found[topic, partition, record.key].append(record)
    return found


def compare(cut: Mapping[str, Any], whole: Mapping[str, Any]) -> None:
    """What both have, but for the order of different keys in a sink."""
    assert cut["changelogs"] == whole["changelogs"]
    assert cut["offsets"] == whole["offsets"]
    assert cut["slices"] == whole["slices"]
    assert by_key(cut["sinks"]) == by_key(whole["sinks"])
