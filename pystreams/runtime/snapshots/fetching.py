"""Fetches snapshots for tasks that have no state on this machine.

A task waits for its snapshot as it waits for a locked directory: it is not opened yet, and its thread continues with
other tasks. Separate threads look for the snapshot with the highest offsets that fits and is complete, and put it into
the task's state directory. If there is none, the stores are restored from their changelogs alone.
"""

from __future__ import annotations

import logging
import queue
import shutil
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pystreams.clock import Clock
from pystreams.errors import BrokerUnavailableError, StateError, StateLockedError
from pystreams.ids import TaskId
from pystreams.metrics import Metrics
from pystreams.metrics.names import SNAPSHOTS_USED
from pystreams.runtime.snapshots.fitting import Fitting
from pystreams.state.disk.directory import StateDirectory
from pystreams.state.disk.rocksdb_memory import RocksResources
from pystreams.state.disk.scratch import Scratch
from pystreams.state.snapshots.folder import SnapshotFolder, StoppedError
from pystreams.state.snapshots.installing import has_state, install, prepare
from pystreams.state.snapshots.manifest import ManifestName, OtherFormatError, task_folder
from pystreams.state.snapshots.reading import copy_files, find_manifests, read_manifest

log = logging.getLogger(__name__)

_THREADS: Final = 2
#: If no data arrives for this time, tasks begin without snapshots.
PATIENCE_MS: Final = 60_000
_RETRY_PAUSE_S: Final = 0.5
#: How long to wait for the end of a thread, because a storage may not answer.
_END_TIMEOUT_S: Final = 5.0


@dataclass(slots=True)
class _Fetch:
    task_id: TaskId
    done: bool = False
    given_up: threading.Event = field(default_factory=threading.Event)


class SnapshotFetcher:
    """Fetches the snapshots of one client. Its stream threads call all methods except ``close``."""

    def __init__(
        self,
        folder: SnapshotFolder,
        fitting: Fitting,
        scratch: Scratch,
        directory: StateDirectory,
        resources: RocksResources,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._folder = folder
        self._fitting = fitting
        self._scratch = scratch
        self._directory = directory
        self._resources = resources
        self._clock = clock
        self._used = metrics.counter(SNAPSHOTS_USED)
        self._stop = threading.Event()
        #: Guards the fields below.
        self._mutex = threading.Lock()
        self._fetches: dict[TaskId, _Fetch] = {}
        #: When data last arrived (monotonic, ms).
        self._moved_ms = 0.0
        #: Tasks for which no snapshot needs to be looked for any more.
        self._looked: set[TaskId] = set()
        #: The snapshot with which a task's state began, and below it the snapshots that turned out to be unusable.
        self._installed: dict[TaskId, ManifestName] = {}
        self._spoilt: set[tuple[TaskId, ManifestName]] = set()
        self._jobs: queue.SimpleQueue[_Fetch | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    # For stream threads

    def is_here(self, task_id: TaskId) -> bool:
        """Whether a task can be opened; False while a snapshot is looked for or fetched. If the task has no state here,
        this call begins to do so."""
        with self._mutex:
            fetch = self._fetches.get(task_id)
            if fetch is not None:
                if not fetch.done and not self._stuck(fetch):
                    return False
                del self._fetches[task_id]
                self._looked.add(task_id)
                return True
            directory = self._directory.task_directory(task_id)
            if task_id in self._looked or has_state(directory) or not self._fitting.stores(task_id):
                return True
            if not self._fetches:
                self._moved()
            self._fetches[task_id] = fetch = _Fetch(task_id)
            self._jobs.put(fetch)
            if len(self._threads) < _THREADS:
                self._start_thread()
            return False

    def _stuck(self, fetch: _Fetch) -> bool:
        """Whether to stop waiting, because the storage does not answer."""
        if self._clock.monotonic_ms() - self._moved_ms < PATIENCE_MS:
            return False
        fetch.given_up.set()
        log.warning(
            "task %s is restored without a snapshot: nothing has come from %s for %d s",
            fetch.task_id,
            self._folder.place,
            PATIENCE_MS // 1000,
        )
        return True

    def opened(self, task_id: TaskId) -> None:
        """The task's stores are open. If they are deleted later, a snapshot is looked for again."""
        with self._mutex:
            self._looked.discard(task_id)

    def comes_from_snapshot(self, task_id: TaskId) -> bool:
        """Whether the local state of a task began with a snapshot."""
        with self._mutex:
            return task_id in self._installed

    def spoilt(self, task_id: TaskId) -> None:
        """The local state of a task is unusable, and so is the snapshot with which it began."""
        with self._mutex:
            self._looked.discard(task_id)
            name = self._installed.pop(task_id, None)
            if name is not None:
                self._spoilt.add((task_id, name))

    def give_up(self, task_id: TaskId) -> None:
        """The task belongs to another member now."""
        with self._mutex:
            fetch = self._fetches.pop(task_id, None)
            # If the task comes back, its local state may be gone, and there may be newer snapshots.
            self._looked.discard(task_id)
        if fetch is not None:
            fetch.given_up.set()

    def close(self) -> None:
        """Stop everything."""
        self._stop.set()
        with self._mutex:
            fetches, threads = list(self._fetches.values()), list(self._threads)
        for fetch in fetches:
            fetch.given_up.set()
        for _ in threads:
            self._jobs.put(None)
        for thread in threads:
            thread.join(_END_TIMEOUT_S)
            if thread.is_alive():
                log.warning("[%s] still waits for the storage; it is left to itself", thread.name)

    # The threads

    def _start_thread(self) -> None:
        name = f"{self._fitting.application_id}-snapshot-fetch-{len(self._threads) + 1}"
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self) -> None:
        while not self._stop.is_set() and (fetch := self._jobs.get()) is not None:
            try:
                self._fetch(fetch)
                self._moved()
            except StoppedError:
                log.debug("the snapshot of task %s is not needed any more", fetch.task_id)
            except Exception as error:  # noqa: BLE001 - file systems raise what they like
                log.warning(
                    "task %s is restored without a snapshot: %s cannot be read: %s: %s",
                    fetch.task_id,
                    self._folder.place,
                    type(error).__name__,
                    error,
                )
            finally:
                with self._mutex:
                    fetch.done = True

    def _fetch(self, fetch: _Fetch) -> None:
        of_task = task_folder(self._fitting.application_id, fetch.task_id)
        names = self._without_spoilt(fetch.task_id, find_manifests(self._folder, of_task))
        if not names:
            log.info("task %s: there is no snapshot of it in %s", fetch.task_id, self._folder.place)
            return
        for name in names:
            while not fetch.given_up.is_set():
                try:
                    self._use(fetch, of_task, name)
                except BrokerUnavailableError as error:
                    log.debug("whether %s fits is not known yet: %s", name, error)
                    fetch.given_up.wait(_RETRY_PAUSE_S)
                    continue
                except StateLockedError as error:
                    log.info("task %s needs no snapshot: %s", fetch.task_id, error)
                except OtherFormatError as error:
                    log.info("task %s: %s", fetch.task_id, error)
                    break
                except (StateError, FileNotFoundError) as error:
                    log.warning("task %s: snapshot %s is not used: %s", fetch.task_id, name, error)
                    break
                return
        log.warning("task %s: no snapshot in %s can be used", fetch.task_id, self._folder.place)

    def _moved(self) -> None:
        self._moved_ms = self._clock.monotonic_ms()

    def _arrives(self, fetch: _Fetch) -> bool:
        """Note that data has arrived. Returns True if the fetch was given up."""
        self._moved()
        return fetch.given_up.is_set()

    def _without_spoilt(self, task_id: TaskId, found: Iterable[ManifestName]) -> list[ManifestName]:
        with self._mutex:
            return [name for name in found if (task_id, name) not in self._spoilt]

    def _use(self, fetch: _Fetch, of_task: str, name: ManifestName) -> None:
        manifest = read_manifest(self._folder, of_task, name)
        offsets = self._fitting.usable(fetch.task_id, manifest)
        started_ms = self._clock.monotonic_ms()
        files = self._scratch.new()
        try:
            copy_files(self._folder, of_task, manifest, files, partial(self._arrives, fetch))
            prepare(files, offsets, self._resources)
            with self._mutex:
                if fetch.given_up.is_set():
                    raise StoppedError
                if not install(files, self._directory.task_directory(fetch.task_id), offsets):
                    return
                self._installed[fetch.task_id] = name
                self._used.add()
        finally:
            shutil.rmtree(files, ignore_errors=True)
        log.info(
            "task %s begins with a snapshot of %d bytes, %.0f s old, fetched in %.1f s; offsets %s",
            fetch.task_id,
            manifest.size_bytes,
            (self._clock.now_ms() - manifest.taken_ms) / 1000,
            (self._clock.monotonic_ms() - started_ms) / 1000,
            ", ".join(f"{store} {offset}" for store, offset in sorted(offsets.items())),
        )
