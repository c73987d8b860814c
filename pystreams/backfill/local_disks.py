"""The place of a task's large temporary files, and copies of databases."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

from pystreams.state.disk.directory import LOCK_FILE

log = logging.getLogger(__name__)


def local_folder(task: int) -> str | None:
    """On Spark one of its local folders, which tasks take in turn: there may be one for each disk. None: where the
    machine has its temporary files."""
    folders = [folder for folder in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if folder]
    return folders[task % len(folders)] if folders else None


def linked_copy(directory: Path, to: Path) -> None:
    """Copy a task's directory that is not in use. The tables of its database never change, so they can be links."""
    shutil.copytree(directory, to, copy_function=_link_or_copy, ignore=shutil.ignore_patterns(LOCK_FILE))


def _link_or_copy(source: str, target: str) -> None:
    if source.endswith(".sst"):
        try:
            os.link(source, target)
            return
        except OSError as error:
            # Another disk, or a file system without links.
            log.debug("%s is copied: %s", source, error)
    shutil.copy2(source, target)
