"""Where a task keeps large temporary files."""

from __future__ import annotations

import os


def local_folder(task: int) -> str | None:
    """On Spark one of its local folders, which tasks take in turn: there may be one for each disk. None: where the
    machine has its temporary files."""
    folders = [folder for folder in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if folder]
    return folders[task % len(folders)] if folders else None
