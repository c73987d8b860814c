"""``pystreams`` in a process that kills itself at a chosen call: ``python -m tests.kills.aim AIM -- run ...``.

AIM is ``POINT:N`` (SIGKILL at the N-th passing of a point) or ``count:FILE`` (kill nothing; leave in FILE, as JSON, how
often each point was passed). The points are wrapped around functions by their names: production code knows nothing of
them. Commits and restores are cut into small slices and the log is cleaned all the time, so that there is a between.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple


class Point(NamedTuple):
    """A moment in a process's life: before or after a call of ``path`` in ``module``.

    Even a short run passes it ``early`` times, or nearly so.
    """

    when: str
    module: str
    path: str
    early: int = 2


_TASKS, _STATE, _LOG = "pystreams.runtime.tasks", "pystreams.state", "pystreams.broker.embedded"

COMMIT = {
    "commit-begins": Point("before", f"{_TASKS}.committer", "Committer.commit", 4),
    "caches-of-a-task-flushed": Point("after", "pystreams.engine.hosted_task", "HostedTask.flush", 12),
    "log-commit-begins": Point("before", f"{_LOG}.producer", "EmbeddedProducer.commit", 4),
    "records-appended": Point("after", f"{_LOG}.log", "append", 20),
    "offsets-written": Point("after", f"{_LOG}.producer", "commit_offsets", 4),
    "log-committed": Point("after", f"{_LOG}.producer", "EmbeddedProducer.commit", 4),
    "store-commit-begins": Point("before", f"{_STATE}.task_stores", "TaskStores.commit", 12),
    "between-slices-of-a-store": Point("before", "rocksdict", "WriteBatch", 60),
    "store-committed": Point("after", f"{_STATE}.task_stores", "TaskStores.commit", 12),
    "commit-ended": Point("after", f"{_TASKS}.committer", "Committer.commit", 4),
}

RESTORE = {
    "restore-begins": Point("before", "pystreams.runtime.restoring.restorer", "Restorer.submit", 4),
    "restore-step-begins": Point("before", "pystreams.runtime.restoring.restorer", "Restorer.step"),
    "restore-batch-begins": Point("before", f"{_STATE}.task_stores", "TaskStores.restore", 6),
    "between-slices-of-a-restore": Point("before", "rocksdict", "WriteBatch", 30),
    "restore-batch-written": Point("after", f"{_STATE}.task_stores", "TaskStores.restore", 6),
    "offsets-file-written": Point("after", f"{_STATE}.task_stores", "TaskStores.restore_checkpoint"),
    "restored-task-starts": Point("before", f"{_TASKS}.active_task", "ActiveTask.start", 4),
}

ELSEWHERE = {
    "internal-topics-created": Point("after", f"{_LOG}.admin", "EmbeddedAdmin.create_topics"),
    "topic-registered": Point("after", f"{_LOG}.database", "Database.write_many", 20),
    "member-locked": Point("after", f"{_LOG}.file_lock", "FileLock.acquire"),
    "member-joined": Point("after", f"{_LOG}.membership", "EmbeddedMember._join"),
    "assignment-written": Point("after", f"{_LOG}.membership", "EmbeddedMember._write_assignment"),
    "assignment-taken": Point("after", f"{_LOG}.membership", "EmbeddedMember._next_assignment"),
    "task-directory-locked": Point("after", f"{_STATE}.disk.directory", "DirectoryLock.__init__", 4),
    "small-file-not-yet-in-place": Point("before", "pathlib", "Path.replace", 5),
    "stores-opened": Point("after", f"{_STATE}.disk.rocksdb", "RocksDatabase.__init__", 4),
    "cleaner-rewrites": Point("before", f"{_LOG}.cleaner", "Cleaner._rewrite_slice"),
    "cleaner-rewrote": Point("after", f"{_LOG}.cleaner", "Cleaner._rewrite_slice"),
    "tasks-close": Point("before", f"{_TASKS}.task_manager", "TaskManager.close"),
    "stores-closed": Point("after", f"{_STATE}.task_stores", "TaskStores.close", 4),
    "member-departs": Point("before", f"{_LOG}.membership", "EmbeddedMember._depart"),
}

POINTS = {**COMMIT, **RESTORE, **ELSEWHERE}

_SLICE_ENTRIES = 16
_COMPACTED_FROM_DIRTY_RATIO = 0.01


class Passing:
    """Counts the passings of every point; the aimed one ends the process."""

    def __init__(self, point: str | None, call: int) -> None:
        self.counts: Counter[str] = Counter()
        self._aim = (point, call)
        self._lock = threading.Lock()

    def at(self, point: str) -> None:
        with self._lock:
            self.counts[point] += 1
            if (point, self.counts[point]) == self._aim:
                os.kill(os.getpid(), signal.SIGKILL)


def _wrapped(function: Callable[..., Any], when: str, passing: Callable[[], None]) -> Callable[..., Any]:
    @functools.wraps(function, updated=())
    def wrapper(*arguments: Any, **named: Any) -> Any:
        if when == "before":
            passing()
        result = function(*arguments, **named)
        if when == "after":
            passing()
        return result

    return wrapper


def watch(points: Mapping[str, Point], passing: Passing) -> None:
    """Have every passing of a point told, and the stores written in small slices."""
    for name, point in points.items():
        owner: Any = importlib.import_module(point.module)
        *path, last = point.path.split(".")
        for part in path:
            owner = getattr(owner, part)
        setattr(owner, last, _wrapped(getattr(owner, last), point.when, functools.partial(passing.at, name)))
    rocksdb: Any = importlib.import_module(f"{_STATE}.disk.rocksdb")
    assert rocksdb.SLICE_ENTRIES > _SLICE_ENTRIES
    rocksdb.SLICE_ENTRIES = _SLICE_ENTRIES


def _clean_all_the_time() -> None:
    cleaner: Any = importlib.import_module(f"{_LOG}.cleaner")
    cleaner.SWEEP_INTERVAL_MS = cleaner.PAUSE_RATIO = 0
    worth_it = cleaner.Cleaner._is_worth_it

    def sooner(self: Any, partition_id: int, dirty_from: int, dirty_to: int, config: Any) -> bool:
        lowered = dataclasses.replace(config, min_dirty_ratio=_COMPACTED_FROM_DIRTY_RATIO)
        return bool(worth_it(self, partition_id, dirty_from, dirty_to, lowered))

    cleaner.Cleaner._is_worth_it = sooner


def main() -> None:
    aim, separator, *arguments = sys.argv[1:]
    assert separator == "--"
    what, _, rest = aim.partition(":")
    assert what == "count" or what in POINTS, what
    passing = Passing(None, 0) if what == "count" else Passing(what, int(rest))
    watch(POINTS, passing)
    _clean_all_the_time()
    from pystreams.cli.main import main as pystreams

    try:
        pystreams(arguments)
    finally:
        if what == "count":
            Path(rest).write_text(json.dumps(passing.counts), encoding="utf-8")


if __name__ == "__main__":
    main()
