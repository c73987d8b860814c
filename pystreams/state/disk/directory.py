"""The state directory: ``<state_dir>/<application_id>/<task_id>/``, its locks, versions and offsets.

<application_id>/process.json          format version and process id, shared by all workers of one run directory
<application_id>/topology.json         format version, and what tells the topology that ran last from others
<application_id>/0_1/.lock             held (flock) while a thread of any process has the task's stores open
<application_id>/0_1/offsets.json      format version, and the changelog offsets of its stores, roughly
<application_id>/0_1/rocksdb/          the stores; their exact offsets are inside
<application_id>/global-1/             the same for the global stores of one client: each process has its own
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from pystreams.clock import Clock, SystemClock
from pystreams.errors import StateCorruptedError, StateError, StateLockedError, reason, summarize
from pystreams.ids import TaskId

#: Version of everything below the state directory. A directory of another version is refused, never guessed at.
FORMAT_VERSION = 1

LOCK_FILE = ".lock"
OFFSETS_FILE = "offsets.json"
ROCKSDB_DIRECTORY = "rocksdb"
PROCESS_FILE = "process.json"
TOPOLOGY_FILE = "topology.json"


class DirectoryLock:
    """Exclusive use of a task's directory, across threads and processes; the kernel releases it if the process dies."""

    def __init__(self, directory: Path) -> None:
        """Take the lock, making the directory if need be. Raises ``StateLockedError`` if somebody holds it."""
        self.directory = directory
        self._descriptor: int | None = None
        while self._descriptor is None:
            self._descriptor = self._take()

    def _take(self) -> int | None:
        path = self.directory / LOCK_FILE
        make_directory(self.directory)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:
            return None  # deleted by a cleaner just after it was made
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
                hint="this is tried again; if it lasts, look for a second instance with the same state_dir",
            ) from None
        except OSError as error:
            os.close(descriptor)
            unusable(self.directory, error)
        # Whoever deletes the directory unlinks the file under its lock: ours must be the one that is there now.
        try:
            if os.fstat(descriptor).st_ino == path.stat().st_ino:
                return descriptor
        except FileNotFoundError:
            pass
        os.close(descriptor)
        return None

    def release(self) -> None:
        """Let others have it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def delete_contents(self) -> None:
        """Delete everything but the lock."""
        try:
            # First: stores without this file are refused, so what an interrupted deletion leaves is never taken for
            # whole.
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
            # Somebody may have begun to use the directory again once the lock's file was gone: then it stays.
            if error.errno != errno.ENOTEMPTY:
                unusable(self.directory, error)
        finally:
            self.release()


def make_directory(path: Path) -> None:
    """Make a directory and its parents. Raises ``StateError`` if that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        unusable(path, error)


def unusable(path: Path, error: OSError) -> NoReturn:
    """Raise what a failed operation on the state directory means for people."""
    hint = "set state_dir to a directory that this user may write to"
    if error.errno == errno.ENOSPC:
        hint = "free some space, or set state_dir to a larger disk"
    raise StateError(
        "the state directory cannot be used", where=str(path), why=str(error), hint=hint
    ) from error


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a small file at once: readers see the old content or the new. One writer at a time."""
    # Always the same name: what a killed writer leaves, the next one overwrites.
    draft = path.with_name(f"{path.name}.new")
    try:
        draft.write_text(json.dumps(content), encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        unusable(path, error)


def read_json(path: Path) -> dict[str, Any] | None:
    """The content of a small file, None if there is none. Raises ``StateCorruptedError`` if it is not a JSON object,
    ``StateError`` if its format is not ours."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        unusable(path, error)
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(content, dict):
        raise _damaged(path, "it holds no JSON object")
    version = content.get("format")
    if version != FORMAT_VERSION:
        raise StateError(
            f"the state directory has format {version}, this version of pystreams reads {FORMAT_VERSION}",
            where=str(path),
            why="it was written by another version of pystreams",
            hint=f"use that version, or delete {path.parent} to have its stores restored from their changelogs",
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
    def process_id(self) -> str:
        """The id (a UUID) of all processes that work in this directory; made at the first use, the same ever after."""
        make_directory(self.path)
        path = self.path / PROCESS_FILE
        if not path.exists():
            draft = self.path / f"{PROCESS_FILE}.{uuid.uuid4()}"
            write_json(draft, {"format": FORMAT_VERSION, "process_id": str(uuid.uuid4())})
            try:
                # A link, unlike a rename, fails where a sibling was quicker: all must see the same id.
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
                hint="delete the file; the process gets a new id and its tasks may move once",
            ) from error

    def topology(self) -> dict[str, Any] | None:
        """What ``remember_topology`` was told last, with the ``application_id``; None: nothing."""
        return read_json(self.path / TOPOLOGY_FILE)

    def remember_topology(self, told: Mapping[str, Any]) -> None:
        """Keep what tells the ``topology`` that runs from others, for the next version to be compared with."""
        make_directory(self.path)
        # Workers of one application write the same, maybe at once: each under a name of its own.
        draft = self.path / f"{TOPOLOGY_FILE}.{uuid.uuid4()}"
        write_json(draft, {"format": FORMAT_VERSION, "application_id": self.path.name, **told})
        try:
            draft.replace(self.path / TOPOLOGY_FILE)
        except OSError as error:
            unusable(self.path, error)

    def task_directory(self, task_id: TaskId) -> Path:
        """Where the task's stores are."""
        return self.path / str(task_id)

    def local_tasks(self) -> dict[TaskId, dict[str, int]]:
        """The tasks that have state here, each with the changelog offsets of its stores as of some commit.

        They may be behind what the stores hold, never ahead. A task whose offsets cannot be read is left out.
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

    def clean_up(self, unused_ms: int, clock: Clock | None = None) -> list[TaskId]:
        """Delete the state of tasks that nobody has open and that did not change for ``unused_ms``; gives their ids."""
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
