"""Copies checkpoints of tasks into the folder of snapshots, and deletes files that are not needed any more."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

import msgspec

from pystreams.errors import StateCorruptedError, StateError
from pystreams.state.snapshots.folder import SnapshotFolder, digest_of
from pystreams.state.snapshots.manifest import (
    FILES_FOLDER,
    Manifest,
    ManifestName,
    StoredFile,
    task_folder,
)
from pystreams.state.snapshots.reading import find_manifests, missing_files, read_manifest

log = logging.getLogger(__name__)


class Written(NamedTuple):
    """The bytes of a snapshot, and how many of them were not in the folder before."""

    size_bytes: int
    copied_bytes: int


class _Identity(NamedTuple):
    """Identifies a file of this machine. A checkpoint links the files of the database, so a file keeps its identity."""

    inode: int
    size_bytes: int
    changed_ns: int


class SnapshotWriter:
    """Writes the snapshots of one client. Only one thread at a time may use it."""

    def __init__(self, folder: SnapshotFolder, kept: int, stopped: Callable[[], bool]) -> None:
        """``kept`` snapshots of each task stay. ``stopped`` is set when copying is to end."""
        self._folder = folder
        self._kept = kept
        self._stopped = stopped
        #: By task, the digests of the files of its last checkpoint, so that each file is read only once.
        self._digests: dict[str, dict[_Identity, str]] = {}
        #: By task, the files that no snapshot needed at the last look.
        self._unneeded: dict[str, frozenset[str]] = {}
        #: The manifests that were read. They never change.
        self._read: dict[str, dict[ManifestName, Manifest]] = {}

    def write(self, checkpoint: Path, manifest: Manifest) -> Written:
        """Copy the files of a checkpoint that the folder does not have, then write its manifest. ``manifest.files`` is
        filled in here.

        Raises ``StoppedError``, ``StateError`` if files do not stay in the folder, and the errors of the file system.
        """
        of_task = task_folder(manifest.application_id, manifest.task)
        manifest = msgspec.structs.replace(manifest, files=self._files(checkpoint, of_task))
        # Files that no manifest names are copied again: they may be incomplete, or another owner may delete them.
        known = self._referenced(of_task)
        sizes = self._folder.names(f"{of_task}/{FILES_FOLDER}")
        lacking = [
            name
            for name, file in manifest.files.items()
            if file.digest not in known or sizes.get(file.digest) != file.size_bytes
        ]
        copied = self._put(checkpoint, of_task, manifest, lacking)
        self._folder.write(f"{of_task}/{manifest.name}", manifest.to_bytes())
        # Another owner may have deleted files before it saw this manifest.
        again = missing_files(self._folder, of_task, manifest)
        copied += self._put(checkpoint, of_task, manifest, again)
        if missing := missing_files(self._folder, of_task, manifest):
            raise StateError(
                "files of a snapshot are gone as soon as they are written",
                where=f"{self._folder.place}, {of_task}",
                why=f"{', '.join(missing)}; another process, or a rule of the storage, deletes them",
            )
        self._delete_old(of_task, manifest.name)
        return Written(manifest.size_bytes, copied)

    def last_taken_ms(self, of_task: str) -> int | None:
        """When the last snapshot of a task was taken (wall clock), by any owner; None: there is none."""
        return max((name.taken_ms for name in find_manifests(self._folder, of_task)), default=None)

    def _files(self, checkpoint: Path, of_task: str) -> dict[str, StoredFile]:
        before = self._digests.get(of_task, {})
        digests: dict[_Identity, str] = {}
        files = {}
        for path in sorted(checkpoint.iterdir()):
            stat = path.stat()
            identity = _Identity(stat.st_ino, stat.st_size, stat.st_mtime_ns)
            digest = before.get(identity) or digest_of(path, self._stopped)
            digests[identity] = digest
            files[path.name] = StoredFile(stat.st_size, digest)
        self._digests[of_task] = digests
        return files

    def _put(self, checkpoint: Path, of_task: str, manifest: Manifest, names: Collection[str]) -> int:
        for name in names:
            digest = manifest.files[name].digest
            self._folder.put(checkpoint / name, f"{of_task}/{FILES_FOLDER}/{digest}", self._stopped)
        return sum(manifest.files[name].size_bytes for name in names)

    def _referenced(self, of_task: str) -> set[str]:
        """The digests that manifests name. Damaged manifests are ignored."""
        known = self._manifests(of_task, find_manifests(self._folder, of_task))
        return {file.digest for manifest in known.values() for file in manifest.files.values()}

    def _manifests(self, of_task: str, names: Collection[ManifestName]) -> dict[ManifestName, Manifest]:
        before = self._read.get(of_task, {})
        found = {}
        for name in names:
            try:
                found[name] = before.get(name) or read_manifest(self._folder, of_task, name)
            except (StateCorruptedError, FileNotFoundError) as error:
                log.debug("snapshot %s of %s is left out: %s", name, of_task, error)
        self._read[of_task] = found
        return found

    def _delete_old(self, of_task: str, own: ManifestName) -> None:
        """Keep the last snapshots, by their time: an offset may go back, if a changelog has lost its end.

        A file is deleted when no snapshot has needed it at two looks in a row: so a snapshot that another owner of the
        task is writing has its manifest by then.
        """
        names = sorted(find_manifests(self._folder, of_task), key=lambda name: name.taken_ms, reverse=True)
        kept = [own, *(name for name in names if name != own)][: self._kept]
        for name in names:
            if name not in kept:
                self._folder.remove(f"{of_task}/{name}")
        manifests = self._manifests(of_task, kept)
        if len(manifests) < len(kept):
            # It is not known which files the other manifests need.
            return
        needed = {file.digest for manifest in manifests.values() for file in manifest.files.values()}
        unneeded = frozenset(self._folder.names(f"{of_task}/{FILES_FOLDER}")) - needed
        for digest in unneeded & self._unneeded.get(of_task, frozenset()):
            self._folder.remove(f"{of_task}/{FILES_FOLDER}/{digest}")
        self._unneeded[of_task] = unneeded
