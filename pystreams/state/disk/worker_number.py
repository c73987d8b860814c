"""Numbers for the processes that share a state directory: what makes their names differ.

``<application_id>/worker-2.lock`` is held (flock) as long as a process has the number 2.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from pystreams.errors import StateError
from pystreams.state.disk.directory import make_directory, unusable

#: Far more processes than a machine runs: who finds no number has another problem.
NUMBER_MAX: Final = 10_000


class WorkerNumber:
    """A number that no other client has in this directory; the kernel frees it if the process dies, so that whoever
    comes next has the same names as the one that is gone."""

    def __init__(self, directory: Path, wanted: int = 1) -> None:
        """Take ``wanted`` or the next one above it that is free. Raises ``StateError`` if the directory is unusable."""
        make_directory(directory)
        for number in range(wanted, NUMBER_MAX):
            descriptor = _lock(directory / f"worker-{number}.lock")
            if descriptor is not None:
                self.number = number
                self._descriptor: int | None = descriptor
                return
        raise StateError(
            "the state directory has no number left for this process",
            where=str(directory),
            why=f"{NUMBER_MAX - wanted} processes hold one",
            hint="stop some of them",
        )

    def release(self) -> None:
        """Let others have it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _lock(path: Path) -> int | None:
    """A descriptor that holds the lock, None if somebody else does. The file stays: it holds nothing."""
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
