"""The part of a staging folder that does not depend on how slices are stored: its manifest, and the folders in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from copy import copy
from typing import Final, Self
from uuid import uuid4

from pystreams.backfill.exchange.task_outcome import TaskOutcome
from pystreams.backfill.locations import shown
from pystreams.backfill.plan.manifest import Manifest
from pystreams.backfill.staging.manifest_files import Folder, ManifestFiles
from pystreams.errors import StateCorruptedError, StateError

#: Folders of slices; everything else in a staging folder is foreign.
_SLICE: Final = re.compile(r"slice-\d{2,}-[0-9a-f]{32}")


class StagingFolder:
    """Implements what every ``port.Staging`` has; subclasses write and read slices."""

    def __init__(self, location: str, folder: Folder) -> None:
        self._location = location
        self._folder = folder
        self._manifests = ManifestFiles(folder)
        self._folders: Mapping[int, str] = {}

    @property
    def location(self) -> str:
        return self._location

    @property
    def folders(self) -> Mapping[int, str]:
        return self._folders

    def with_slices(self, folders: Mapping[int, str]) -> Self:
        other = copy(self)
        other._folders = folders
        return other

    def read_manifest(self) -> Manifest | None:
        return self._manifests.read()

    def write_manifest(self, manifest: Manifest) -> None:
        self._manifests.write(manifest)

    def require_own(self) -> None:
        self._manifests.require_own()

    def clear(self) -> None:
        for name in self._folder.names():
            if _SLICE.fullmatch(name) and name not in self._folders.values():
                self._folder.delete(name)
        self._manifests.delete_older()


def new_folder(slice: int) -> str:
    """A new name for the folder of an attempt of a slice."""
    return f"slice-{slice:02}-{uuid4().hex}"


def one_of_each(
    found: Collection[tuple[int, TaskOutcome]], slice: int, tasks: int, location: str
) -> list[TaskOutcome]:
    """Outcomes of (task, outcome) by task. Raises ``StateError`` unless each task from 0 to ``tasks`` - 1 has one."""
    if not found:
        raise not_staged(slice, location)
    numbers = sorted(task for task, _ in found)
    if numbers != list(range(tasks)):
        raise StateCorruptedError(
            f"the result of slice {slice} of the backfill is incomplete",
            where=shown(location),
            why=f"it has outcomes of the tasks {', '.join(map(str, numbers))}, but should have those of the tasks 0 to "
            f"{tasks - 1}",
            hint="begin the backfill again (overwrite)",
        )
    by_task = dict(found)
    return [by_task[task] for task in range(tasks)]


def not_staged(slice: int, location: str) -> StateError:
    """The error for a slice that the manifest names, and that does not exist."""
    return StateError(
        f"the result of slice {slice} of the backfill cannot be found",
        where=shown(location),
        why="it was removed, or staged by another executor: only Spark can read slices that Spark has staged",
        hint="resume with the executor that began the backfill, or begin again (overwrite)",
    )
