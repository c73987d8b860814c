"""Finds the snapshots of a task, and copies one to this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pystreams.errors import StateCorruptedError
from pystreams.state.snapshots.folder import SnapshotFolder
from pystreams.state.snapshots.manifest import FILES_FOLDER, Manifest, ManifestName


def find_manifests(folder: SnapshotFolder, of_task: str) -> list[ManifestName]:
    """The manifests of a task (``task_folder``), those with the highest offsets first."""
    found = (ManifestName.parse(name) for name in folder.names(of_task))
    return sorted((name for name in found if name is not None), reverse=True)


def read_manifest(folder: SnapshotFolder, of_task: str, name: ManifestName) -> Manifest:
    """Raises the errors of ``Manifest.from_bytes``, and ``FileNotFoundError``."""
    file = f"{of_task}/{name}"
    return Manifest.from_bytes(folder.read(file), file)


def copy_files(
    folder: SnapshotFolder, of_task: str, manifest: Manifest, target: Path, stopped: Callable[[], bool]
) -> None:
    """Copy the files of a snapshot into ``target``, which must not exist, and verify each by its digest.

    A damaged file is deleted from the folder, because later snapshots would rely on it if they need the same file.
    Raises ``StateCorruptedError``, ``StoppedError``.
    """
    target.mkdir(parents=True)
    for name, file in manifest.files.items():
        stored = f"{of_task}/{FILES_FOLDER}/{file.digest}"
        try:
            found = folder.get(stored, target / name, stopped)
        except FileNotFoundError as error:
            raise _unusable(manifest, name, "the file is missing") from error
        if found != file.digest:
            folder.remove(stored)
            raise _unusable(manifest, name, "the file is damaged: its digest is another one")


def missing_files(folder: SnapshotFolder, of_task: str, manifest: Manifest) -> list[str]:
    """The names of files that are missing, or have another size."""
    sizes = folder.names(f"{of_task}/{FILES_FOLDER}")
    return [name for name, file in manifest.files.items() if sizes.get(file.digest) != file.size_bytes]


def damaged_files(folder: SnapshotFolder, of_task: str, manifest: Manifest, scratch: Path) -> list[str]:
    """The names of files whose content has another digest. Each is copied to ``scratch`` in turn."""
    damaged = []
    for name, file in manifest.files.items():
        try:
            found = folder.get(f"{of_task}/{FILES_FOLDER}/{file.digest}", scratch, lambda: False)
        except FileNotFoundError:
            found = ""
        if found != file.digest:
            damaged.append(name)
    return damaged


def _unusable(manifest: Manifest, file: str, why: str) -> StateCorruptedError:
    return StateCorruptedError(
        "a snapshot cannot be used", where=f"task {manifest.task}, {manifest.name}, file {file}", why=why
    )
