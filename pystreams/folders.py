"""Makes the folders that hold records and stores: closed to users who are neither their owner nor in their group."""

from __future__ import annotations

from pathlib import Path
from typing import Final

#: The permissions of a new folder before the umask of the process is applied: with umask 022 the group may read, with
#: 002 it may also write, with 077 neither.
_MODE: Final = 0o770


def make_folder(path: Path) -> None:
    """Create a folder, and those above it, where they are missing. Those that exist keep their permissions.

    Source: org.apache.kafka.streams.processor.internals.StateDirectory, which closes its directories in the same way.
    Raises ``OSError``.
    """
    try:
        path.mkdir(mode=_MODE, exist_ok=True)
    except FileNotFoundError:
        if path.parent == path:
            raise
        make_folder(path.parent)
        path.mkdir(mode=_MODE, exist_ok=True)
