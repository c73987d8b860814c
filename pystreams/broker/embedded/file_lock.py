"""A lock file. The kernel releases the lock when the process ends in any way."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from pystreams.errors import BrokerError


class FileLock:
    """An exclusive ``flock``: between processes, and between objects in one process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Take the lock if it is free; creates the file. Never waits."""
        try:
            descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise _unusable(self._path, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError as error:
            os.close(descriptor)
            raise _unusable(self._path, error) from error
        self._descriptor = descriptor
        return True

    def release(self, *, remove: bool = False) -> None:
        """Release the lock, and delete the file if ``remove``."""
        if self._descriptor is None:
            return
        if remove:
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = None


def is_locked(path: Path) -> bool:
    """Whether a living process holds the lock. A missing file is not locked."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        # A shared lock, so that two checks at once do not take each other for the holder.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _unusable(path: Path, error: OSError) -> BrokerError:
    return BrokerError(
        "A lock file of the embedded log cannot be used",
        where=str(path),
        why=str(error),
        hint="check the permissions of its directory, the free space, and that the file system supports flock",
    )
