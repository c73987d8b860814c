"""Numbers for the processes that share a state directory, so that their names differ.

``<application_id>/worker-2.lock`` is locked (flock) as long as a process has the number 2.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from pystreams.errors import StateError
from pystreams.state.disk.directory import HeldLock, make_directory, unusable

#: Far more processes than a machine runs.
NUMBER_MAX: Final = 10_000


class WorkerNumber(HeldLock):
    """A number that no other client in this directory has, until it is released. The kernel frees it if the process
    dies, so that the next process gets the same names."""

    def __init__(self, directory: Path, wanted: int = 1) -> None:
        """Take ``wanted`` or the next free number above it. Raises ``StateError`` if the directory cannot be used."""
        make_directory(directory)
        for number in range(wanted, NUMBER_MAX):
            descriptor = _lock(directory / f"worker-{number}.lock")
            if descriptor is not None:
                self.number = number
                self._descriptor = descriptor
                return
        raise StateError(
            "the state directory has no number left for this process",
            where=str(directory),
            why=f"{NUMBER_MAX - wanted} processes use all numbers",
            hint="stop some of them",
        )


def _lock(path: Path) -> int | None:
    """A file descriptor that holds the lock; None if another process does. The file is empty, and is not deleted."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        unusable(path, error)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError as error:
        os.close(descriptor)
        unusable(path, error)
    return descriptor
