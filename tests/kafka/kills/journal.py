"""What a process has processed, record by record, in a file that outlives it: ``kill -9`` does not undo what is in
shared memory.

A life of a task takes one line: where it began to read, how much of its changelog it had restored by then, and the
last record that it has begun. It is written by wrapping a few calls of the runtime; the application is as it is.
"""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_LINE = struct.Struct("<6q")
_COLUMN_BYTES = 8
_LINES_MAX = 512
_LAST, _PHASE = 4 * _COLUMN_BYTES, 5 * _COLUMN_BYTES
_NUMBER = struct.Struct("<q")

#: A life that was given up while it restored has never begun to read.
RESTORING, RUNNING, CLOSED, GIVEN_UP = 1, 2, 3, 4


class Life(NamedTuple):
    """One life of a task, from its opening to its end. ``last_offset`` is -1 below ``first_offset`` at first.

    ``changelog_offset`` is how far the windows' store was restored (exclusive).
    """

    began_ns: int
    partition: int
    first_offset: int
    changelog_offset: int
    last_offset: int
    phase: int


def read_lives(path: Path) -> list[Life]:
    """The lives in a journal, which may still be written; none if it does not exist."""
    data = path.read_bytes() if path.exists() else b""
    lines = (Life(*line) for line in _LINE.iter_unpack(data[: len(data) - len(data) % _LINE.size]))
    return [life for life in lines if life.began_ns]


class Journal:
    """Writes the lives of one process."""

    def __init__(self, path: Path) -> None:
        with path.open("wb+") as file:
            file.truncate(_LINES_MAX * _LINE.size)
            self._memory = mmap.mmap(file.fileno(), _LINES_MAX * _LINE.size)
        self._lines: Iterator[int] = iter(range(0, _LINES_MAX * _LINE.size, _LINE.size))

    def opens(self, partition: int) -> int:
        """A task begins to restore; gives its line."""
        line = next(self._lines)
        _LINE.pack_into(self._memory, line, time.monotonic_ns(), partition, 0, 0, -1, RESTORING)
        return line

    def starts(self, line: int, partition: int, first_offset: int, changelog_offset: int) -> None:
        """It is restored, and begins to read."""
        now = time.monotonic_ns()
        _LINE.pack_into(
            self._memory, line, now, partition, first_offset, changelog_offset, first_offset - 1, RUNNING
        )

    def processes(self, line: int, offset: int) -> None:
        _NUMBER.pack_into(self._memory, line + _LAST, offset)

    def closes(self, line: int) -> None:
        (phase,) = _NUMBER.unpack_from(self._memory, line + _PHASE)
        _NUMBER.pack_into(self._memory, line + _PHASE, CLOSED if phase == RUNNING else GIVEN_UP)


def keep(path: Path, topic: str, store: str) -> None:
    """Have this process keep a journal of the records of ``topic`` and the changelog of ``store``."""
    from pystreams.engine import new_task
    from pystreams.record import ContextCell
    from pystreams.runtime.restoring.restorer import Restorer
    from pystreams.runtime.tasks.active_task import ActiveTask

    journal = Journal(path)

    class JournalingCell(ContextCell):
        """Each record's context is put in here before the record is processed; and, once more, while a dirty entry is
        forwarded, which is older."""

        def __init__(self) -> None:
            self._line, self._last = -1, -1
            super().__init__()

        @property
        def record(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
            return self._record

        @record.setter
        def record(self, record: Any) -> None:
            self._record = record
            offset = record[2]
            if offset > self._last and record[0] == topic:
                self._last = offset
                journal.processes(self._line, offset)

    submit, start, close = Restorer.submit, ActiveTask.start, ActiveTask.close

    def submitted(restorer: Restorer, task: Any) -> None:
        task.stream.cell._line = journal.opens(task.task_id.partition)
        submit(restorer, task)

    def started(task: Any, cache: Any, positions: Any, beginnings: Any) -> None:
        (offset,) = (at for partition, at in positions.items() if partition.topic == topic)
        cell = task.stream.cell
        cell._last = offset - 1
        restored = task.state.changelog_offset(store) or 0
        journal.starts(cell._line, task.task_id.partition, offset, restored)
        start(task, cache, positions, beginnings)

    def closed(task: Any) -> None:
        close(task)
        journal.closes(task.stream.cell._line)

    new_task.ContextCell = JournalingCell  # type: ignore[misc,assignment]
    Restorer.submit, ActiveTask.start, ActiveTask.close = submitted, started, closed  # type: ignore[method-assign]
