"""Takes snapshots of the running tasks.

The thread of a task makes the checkpoint between two commits. Only a commit writes to RocksDB, so the checkpoint
matches the offsets of the last commit exactly. Before that, RocksDB flushes its memory to files in the background, so
that the checkpoint only needs links. A separate thread copies the files, one task at a time; the next checkpoint is
made when that is done.
"""

from __future__ import annotations

import logging
import queue
import shutil
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from pystreams.clock import Clock
from pystreams.errors import StateError
from pystreams.ids import TaskId
from pystreams.metrics import Metrics, names
from pystreams.runtime.snapshots.fitting import Fitting
from pystreams.state.disk.scratch import Scratch
from pystreams.state.snapshots.folder import SnapshotFolder, StoppedError
from pystreams.state.snapshots.manifest import Manifest, task_folder
from pystreams.state.snapshots.writing import SnapshotWriter
from pystreams.state.task_stores import TaskStores

log = logging.getLogger(__name__)

#: Unchanged stores are taken again after this time, because a snapshot is useless when it is older than the time for
#: which a changelog keeps tombstones. This copies hardly any data.
UNCHANGED_MS: Final = 3_600_000
#: How long to wait for the end of the thread, because a storage may not answer.
_END_TIMEOUT_S: Final = 5.0


class Task(Protocol):
    """A task that runs, with open stores."""

    @property
    def task_id(self) -> TaskId: ...

    @property
    def state(self) -> TaskStores: ...


@dataclass(slots=True)
class _Turn:
    """When the next snapshot of a task is due (monotonic, ms); None: not known yet. ``flushing`` are the stores whose
    flush has begun: a task that has left and comes back has others. ``taken`` are the offsets of the last snapshot that
    this client has taken, at ``taken_ms``."""

    due_ms: float | None = None
    flushing: weakref.ref[TaskStores] | None = None
    taken: Mapping[str, int] = field(default_factory=dict)
    taken_ms: float = 0.0


class SnapshotTaker:
    """Takes the snapshots of one client. Its stream threads call ``look``."""

    def __init__(
        self,
        folder: SnapshotFolder,
        fitting: Fitting,
        scratch: Scratch,
        clock: Clock,
        metrics: Metrics,
        interval_ms: int,
        kept: int,
    ) -> None:
        self._folder = folder
        self._fitting = fitting
        self._scratch = scratch
        self._clock = clock
        self._interval_ms = interval_ms
        self._owner = uuid.uuid4().hex[:12]
        self._taken = metrics.counter(names.SNAPSHOTS_TAKEN)
        self._copied_bytes = metrics.counter(names.SNAPSHOT_BYTES_COPIED)
        self._stop = threading.Event()
        self._writer = SnapshotWriter(folder, kept, self._stop.is_set)
        self._mutex = threading.Lock()
        self._turns: dict[TaskId, _Turn] = {}
        #: Whether a checkpoint is being copied.
        self._copying = False
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        name = f"{fitting.application_id}-snapshots"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def look(self, tasks: Iterable[Task]) -> None:
        """Make a checkpoint of the task whose turn it is. The caller owns the tasks, and is between two commits."""
        if self._copying:
            return
        now_ms = self._clock.monotonic_ms()
        for task in tasks:
            turn = self._turn(task.task_id)
            if turn.due_ms is not None and now_ms >= turn.due_ms and self._take(task, turn, now_ms):
                return

    def _turn(self, task_id: TaskId) -> _Turn:
        with self._mutex:
            turn = self._turns.get(task_id)
            if turn is None:
                turn = self._turns[task_id] = _Turn()
                if self._fitting.stores(task_id):
                    self._jobs.put(partial(self._learn, task_id))
            return turn

    def _take(self, task: Task, turn: _Turn, now_ms: float) -> bool:
        """Whether a checkpoint is made now."""
        state = task.state
        try:
            if turn.flushing is None or turn.flushing() is not state:
                offsets = state.durable_offsets
                if not offsets or (offsets == turn.taken and now_ms - turn.taken_ms < UNCHANGED_MS):
                    turn.due_ms = now_ms + self._interval_ms
                    return False
                state.begin_flush()
                turn.flushing = weakref.ref(state)
            return not state.flushing and self._checkpoint(task, turn, now_ms)
        except StateError as error:
            # If the stores are broken, the task will notice it by itself.
            turn.flushing, turn.due_ms = None, now_ms + self._interval_ms
            log.warning("no snapshot of task %s is taken now: %s", task.task_id, error)
            return False

    def _checkpoint(self, task: Task, turn: _Turn, now_ms: float) -> bool:
        with self._mutex:
            if self._copying:
                return False
            self._copying = True
        path = self._scratch.new()
        try:
            task.state.checkpoint(path)
        except BaseException:
            # Links keep files on the disk that RocksDB has deleted.
            shutil.rmtree(path, ignore_errors=True)
            self._copying = False
            raise
        turn.taken, turn.taken_ms = task.state.durable_offsets, now_ms
        turn.flushing, turn.due_ms = None, now_ms + self._interval_ms
        self._jobs.put(partial(self._copy, task.task_id, path, turn.taken, self._clock.now_ms()))
        return True

    def close(self) -> None:
        """Stop. A snapshot that is not finished is left out."""
        self._stop.set()
        self._jobs.put(lambda: None)
        self._thread.join(_END_TIMEOUT_S)
        if self._thread.is_alive():
            log.warning("[%s] still waits for the storage; it is left to itself", self._thread.name)

    # The thread

    def _run(self) -> None:
        while not self._stop.is_set():
            self._jobs.get()()

    def _learn(self, task_id: TaskId) -> None:
        """Set the time of a task's next snapshot: one interval after its last one, even if another process took
        that."""
        wait_ms: float = self._interval_ms
        try:
            last_ms = self._writer.last_taken_ms(task_folder(self._fitting.application_id, task_id))
            if last_ms is not None:
                wait_ms = min(wait_ms, last_ms + self._interval_ms - self._clock.now_ms())
        except Exception as error:  # noqa: BLE001 - file systems raise what they like
            self._failed(f"the snapshots of task {task_id} cannot be listed", error)
        self._turns[task_id].due_ms = self._clock.monotonic_ms() + wait_ms

    def _copy(self, task_id: TaskId, checkpoint: Path, offsets: Mapping[str, int], taken_ms: int) -> None:
        try:
            fitting = self._fitting
            manifest = Manifest(
                application_id=fitting.application_id,
                task=str(task_id),
                owner=self._owner,
                taken_ms=taken_ms,
                origin=fitting.origin,
                beginning=fitting.beginning,
                stores=fitting.contents(task_id, offsets),
                files={},
            )
            written = self._writer.write(checkpoint, manifest)
            self._taken.add()
            self._copied_bytes.add(written.copied_bytes)
            log.info(
                "snapshot of task %s: %d bytes, of which %d were copied",
                task_id,
                written.size_bytes,
                written.copied_bytes,
            )
        except StoppedError:
            log.info("the snapshot of task %s is left out: the client ends", task_id)
        except Exception as error:  # noqa: BLE001 - file systems raise what they like
            self._failed(f"the snapshot of task {task_id} was not written, the next one will be tried", error)
            self._turns[task_id].taken = {}
        finally:
            shutil.rmtree(checkpoint, ignore_errors=True)
            self._copying = False

    def _failed(self, what: str, error: Exception) -> None:
        if not self._stop.is_set():
            log.warning("%s (%s): %s: %s", what, self._folder.place, type(error).__name__, error)
