"""The state directory: ``<state_dir>/<application_id>/<task_id>/``, its locks, versions and offsets.

<application_id>/process.json          format version and process id, shared by all workers of one run directory
<application_id>/topology.json         format version, and the shape of the topology that ran last
<application_id>/members/              notes of the processes that work in this directory (``member_notes``)
<application_id>/scratch/              unfinished files, by client (``scratch``)
<application_id>/0_1/.lock             locked (flock) while a thread of any process has the task's stores open
<application_id>/0_1/offsets.json      format version, and roughly the changelog offsets of its stores
<application_id>/0_1/rocksdb/          the stores, with their exact offsets
<application_id>/global-1/             the same for the global stores of one client: each process has its own
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from pystreams.clock import Clock, SystemClock
from pystreams.errors import StateCorruptedError, StateError, StateLockedError, reason, summarize
from pystreams.folders import make_folder
from pystreams.ids import TaskId

log = logging.getLogger(__name__)

#: The format version of all files in the state directory. A directory with another version is refused.
FORMAT_VERSION = 1

LOCK_FILE = ".lock"
OFFSETS_FILE = "offsets.json"
ROCKSDB_DIRECTORY = "rocksdb"
PROCESS_FILE = "process.json"
TOPOLOGY_FILE = "topology.json"


class HeldLock:
    """A lock on a file (flock), across threads and processes; the kernel releases it if the process dies."""

    _descriptor: int | None

    def release(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class DirectoryLock(HeldLock):
    """Exclusive use of a task's directory."""

    def __init__(self, directory: Path) -> None:
        """Take the lock; creates the directory if necessary. Raises ``StateLockedError`` if another holder exists."""
        self.directory = directory
        self._descriptor = None
        while self._descriptor is None:
            self._descriptor = self._take()

    def _take(self) -> int | None:
        path = self.directory / LOCK_FILE
        make_directory(self.directory)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:
            return None  # A cleaner deleted it just after it was created.
        except OSError as error:
            unusable(self.directory, error)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise StateLockedError(
                f"the state of task {self.directory.name} is in use",
                where=str(self.directory),
                why="another thread or process has not closed the task yet",
                hint="if it lasts, look for a second instance with the same state_dir",
            ) from None
        except OSError as error:
            os.close(descriptor)
            unusable(self.directory, error)
        # A process that deletes the directory unlinks the file while it holds the lock. So check that this file is
        # still the current one.
        try:
            if os.fstat(descriptor).st_ino == path.stat().st_ino:
                return descriptor
        except FileNotFoundError:
            pass
        os.close(descriptor)
        return None

    def delete_contents(self) -> None:
        """Delete everything but the lock."""
        try:
            # First, because stores without this file are refused: so an interrupted deletion is never taken for
            # complete state.
            (self.directory / OFFSETS_FILE).unlink(missing_ok=True)
            for entry in self.directory.iterdir():
                if entry.name == LOCK_FILE:
                    continue
                if entry.is_dir():
                    shutil.rmtree(entry)
                else:
                    entry.unlink()
        except OSError as error:
            unusable(self.directory, error)

    def delete(self) -> None:
        """Delete the directory, and release the lock."""
        try:
            self.delete_contents()
            (self.directory / LOCK_FILE).unlink()
            self.directory.rmdir()
        except OSError as error:
            # If another process has created files there since the lock's file was deleted, the directory stays.
            if error.errno != errno.ENOTEMPTY:
                unusable(self.directory, error)
        finally:
            self.release()


def make_directory(path: Path) -> None:
    """Create a directory and its parents. Raises ``StateError`` if this fails."""
    try:
        make_folder(path)
    except OSError as error:
        unusable(path, error)


def unusable(path: Path, error: OSError) -> NoReturn:
    """Raise a ``StateError`` for a failed operation on the state directory."""
    hint = "set state_dir to a directory that this user may write to"
    if error.errno == errno.ENOSPC:
        hint = "free some space, or set state_dir to a larger disk"
    raise StateError(
        "the state directory cannot be used", where=str(path), why=str(error), hint=hint
    ) from error


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a small file atomically: readers see the old or the new content. Only one writer at a time may do so."""
    # The draft always has the same name, so that the next writer overwrites the draft of a killed one.
    draft = path.with_name(f"{path.name}.new")
    try:
        draft.write_text(json.dumps(content), encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        unusable(path, error)


def read_json(path: Path) -> dict[str, Any] | None:
    """The content of a small file, None if it does not exist. Raises ``StateCorruptedError`` if it is not a JSON
    object, ``StateError`` if it has another format version."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        unusable(path, error)
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(content, dict):
        raise _damaged(path, "it does not contain a JSON object")
    version = content.get("format")
    if version != FORMAT_VERSION:
        raise StateError(
            f"the state directory has format {version}, but this version of pystreams reads format {FORMAT_VERSION}",
            where=str(path),
            why="another version of pystreams wrote it",
            hint=f"use that version, or delete {path.parent}: its stores are then restored from their changelogs",
        )
    return content


def _damaged(path: Path, why: str) -> StateCorruptedError:
    return StateCorruptedError(
        "a file of the state directory is damaged",
        where=str(path),
        why=why,
        hint="the task's stores will be deleted and restored from their changelogs",
    )


class StateDirectory:
    """The state of one application on this machine."""

    def __init__(self, state_dir: Path, application_id: str) -> None:
        self.path = Path(state_dir) / application_id

    @property
    def process_file(self) -> Path:
        """The file with the process id."""
        return self.path / PROCESS_FILE

    @property
    def process_id(self) -> str:
        """The id (a UUID) of all processes that work in this directory; created at the first use, then unchanged."""
        make_directory(self.path)
        path = self.process_file
        if not path.exists():
            draft = self.path / f"{PROCESS_FILE}.{uuid.uuid4()}"
            write_json(draft, {"format": FORMAT_VERSION, "process_id": str(uuid.uuid4())})
            try:
                # All processes must get the same id. Unlike a rename, a link fails if another process was faster.
                os.link(draft, path)
            except FileExistsError:
                pass
            except OSError as error:
                unusable(path, error)
            finally:
                draft.unlink(missing_ok=True)
        try:
            content = read_json(path) or {}
            return str(uuid.UUID(str(content["process_id"])))
        except (KeyError, ValueError, StateCorruptedError) as error:
            raise StateError(
                "the process id of the state directory is damaged",
                where=str(path),
                why=reason(error) or summarize(error),
                hint="delete the file; the process then gets a new id, and its tasks may move once",
            ) from error

    def topology(self) -> dict[str, Any] | None:
        """The argument of the last ``remember_topology``, with the ``application_id``; None if there is none."""
        return read_json(self.path / TOPOLOGY_FILE)

    def remember_topology(self, description: Mapping[str, Any]) -> None:
        """Store the shape of the running ``topology``, with which the next version will be compared."""
        make_directory(self.path)
        # Workers of one application write the same content, perhaps at the same time: each uses its own draft file.
        draft = self.path / f"{TOPOLOGY_FILE}.{uuid.uuid4()}"
        write_json(draft, {"format": FORMAT_VERSION, "application_id": self.path.name, **description})
        try:
            draft.replace(self.path / TOPOLOGY_FILE)
        except OSError as error:
            unusable(self.path, error)

    def task_directory(self, task_id: TaskId) -> Path:
        """The directory of the task's stores."""
        return self.path / str(task_id)

    def local_tasks(self) -> dict[TaskId, dict[str, int]]:
        """The tasks that have state here, each with the changelog offsets of its stores at some commit.

        The offsets may be lower than the stores' real ones, never higher. Tasks without readable offsets are left out.
        """
        tasks: dict[TaskId, dict[str, int]] = {}
        if not self.path.is_dir():
            return tasks
        for directory in sorted(self.path.iterdir()):
            try:
                task_id = TaskId.parse(directory.name)
            except ValueError:
                continue
            try:
                content = read_json(directory / OFFSETS_FILE)
            except StateCorruptedError:
                continue
            offsets = content.get("offsets") if content is not None else None
            if isinstance(offsets, dict):
                tasks[task_id] = {str(store): int(offset) for store, offset in offsets.items()}
        return tasks

    def wipe(self, task_id: TaskId) -> None:
        """Delete a task's local state. Raises ``StateLockedError`` if the task is open."""
        DirectoryLock(self.task_directory(task_id)).delete()

    def wipe_global(self, name: str) -> None:
        """Delete the global stores of one client. Raises ``StateLockedError`` if they are open."""
        DirectoryLock(self.path / name).delete()

    def wipe_globals(self) -> None:
        """Delete the global stores of all clients that do not have them open. Stores that cannot be deleted stay."""
        for path in sorted(self.path.glob("global-*")):
            try:
                DirectoryLock(path).delete()
                log.info("the global stores that have left the topology are deleted: %s", path)
            except StateLockedError:
                log.debug("%s is in use", path)
            except StateError as error:
                log.warning("global stores that have left the topology stay on the disk: %s", error)

    def clean_up(self, unused_ms: int, clock: Clock | None = None) -> list[TaskId]:
        """Delete the state of tasks that are not open and did not change for ``unused_ms``. Returns their ids."""
        deleted = []
        now_ms = (clock or SystemClock()).now_ms()
        for task_id in self.local_tasks():
            path = self.task_directory(task_id)
            if now_ms - _changed_ms(path) < unused_ms:
                continue
            try:
                lock = DirectoryLock(path)
            except StateLockedError:
                continue
            lock.delete()
            deleted.append(task_id)
        return deleted


def _changed_ms(path: Path) -> float:
    try:
        return max(path.stat().st_mtime, (path / OFFSETS_FILE).stat().st_mtime) * 1000
    except FileNotFoundError:
        return 0.0
