"""Folders for unfinished files of a client, on the same file system as the tasks' directories.

``<application_id>/scratch/<client>/`` is locked (flock) while the client lives. The next client that starts deletes the
folders of clients that were killed.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Final

from pystreams.errors import StateLockedError
from pystreams.state.disk.directory import DirectoryLock

SCRATCH_DIRECTORY: Final = "scratch"


class Scratch:
    """The folder of one client."""

    def __init__(self, directory: Path) -> None:
        """``directory`` is that of the application. Raises ``StateError`` if it cannot be used."""
        self.path = directory / SCRATCH_DIRECTORY / uuid.uuid4().hex
        self._lock = DirectoryLock(self.path)
        for other in sorted(self.path.parent.iterdir()):
            if other != self.path:
                _delete_left(other)

    def new(self) -> Path:
        """A path in this folder that does not exist yet."""
        return self.path / uuid.uuid4().hex

    def close(self) -> None:
        """Delete everything."""
        self._lock.delete()


def _delete_left(folder: Path) -> None:
    try:
        lock = DirectoryLock(folder)
    except StateLockedError:
        return
    lock.delete()
