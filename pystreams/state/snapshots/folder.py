"""The folder of snapshots: a path of this machine, or a URL that fsspec knows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from pystreams.errors import ConfigError
from pystreams.folders import make_folder

_CHUNK_BYTES: Final = 4 * 1024 * 1024


class StoppedError(Exception):
    """Copying was stopped on purpose."""


class SnapshotFolder:
    """Files by their names within the folder, with slashes. Threads may share it. Its methods raise the errors of the
    file system: ``OSError`` on this machine; other file systems may have their own classes of errors."""

    def __init__(self, place: str) -> None:
        """Raises ``ConfigError`` for a URL of an unknown file system, and for one whose package is not installed."""
        # Imported here, so that only programs with snapshots wait for it.
        import fsspec  # pyright: ignore[reportMissingImports]

        self.place = place
        try:
            self._system, self._base = fsspec.core.url_to_fs(str(Path(place)) if is_local(place) else place)
        except (ImportError, ValueError) as error:
            raise ConfigError(
                "state_snapshot_dir is not on a file system that can be reached",
                where=place,
                why=str(error),
                hint="give a folder, or a URL that fsspec knows: s3:// needs the package s3fs, gs:// needs gcsfs",
            ) from None

    def names(self, folder: str) -> dict[str, int]:
        """The files directly in a sub-folder, with their sizes; none if there is no such folder."""
        path = self._path(folder)
        self._system.invalidate_cache(path)
        try:
            entries = self._system.ls(path, detail=True)
        except FileNotFoundError:
            return {}
        return {
            str(entry["name"]).rstrip("/").rpartition("/")[2]: int(entry["size"] or 0)
            for entry in entries
            if entry["type"] == "file"
        }

    def folders(self, folder: str) -> list[str]:
        """The names of the folders directly in a sub-folder, sorted."""
        path = self._path(folder)
        self._system.invalidate_cache(path)
        try:
            entries = self._system.ls(path, detail=True)
        except FileNotFoundError:
            return []
        names = (str(e["name"]).rstrip("/").rpartition("/")[2] for e in entries if e["type"] == "directory")
        return sorted(names)

    def read(self, file: str) -> bytes:
        """The content of a small file. Raises ``FileNotFoundError``."""
        content: bytes = self._system.cat_file(self._path(file))
        return content

    def write(self, file: str, content: bytes) -> None:
        """Write a small file. On a file system without atomic writes, readers may see a part of it."""
        with self._create(file) as target:
            target.write(content)

    def put(self, source: Path, file: str, stopped: Callable[[], bool]) -> None:
        """Copy a file of this machine into the folder. Raises ``StoppedError``; a part of the file may stay then."""
        with source.open("rb") as read, self._create(file) as target:
            while chunk := read.read(_CHUNK_BYTES):
                if stopped():
                    raise StoppedError
                target.write(chunk)

    def get(self, file: str, target: Path, stopped: Callable[[], bool]) -> str:
        """Copy a file to this machine; returns the digest of the copy. Raises ``StoppedError``,
        ``FileNotFoundError``."""
        digest = hashlib.sha256()
        with self._system.open(self._path(file), "rb") as source, target.open("wb") as written:
            while chunk := source.read(_CHUNK_BYTES):
                if stopped():
                    raise StoppedError
                digest.update(chunk)
                written.write(chunk)
        return digest.hexdigest()

    def remove(self, file: str) -> None:
        """Delete a file, if it exists."""
        with suppress(FileNotFoundError):
            self._system.rm_file(self._path(file))

    def _create(self, file: str) -> Any:
        path = self._path(file)
        try:
            return self._system.open(path, "wb")
        except FileNotFoundError:
            # Object stores have no folders; on other file systems they must be created.
            self._make_folder(path.rpartition("/")[0])
            return self._system.open(path, "wb")

    def _make_folder(self, path: str) -> None:
        from fsspec.implementations.local import LocalFileSystem  # pyright: ignore[reportMissingImports]

        if isinstance(self._system, LocalFileSystem):
            make_folder(Path(path))
        else:
            self._system.makedirs(path, exist_ok=True)

    def _path(self, name: str) -> str:
        return f"{self._base.rstrip('/')}/{name}" if name else str(self._base)


def is_local(place: str) -> bool:
    """Whether a place is a path of this machine."""
    return "://" not in place and "::" not in place


def digest_of(file: Path, stopped: Callable[[], bool]) -> str:
    """The digest of a file of this machine. Raises ``StoppedError``."""
    digest = hashlib.sha256()
    read: BinaryIO
    with file.open("rb") as read:
        while chunk := read.read(_CHUNK_BYTES):
            if stopped():
                raise StoppedError
            digest.update(chunk)
    return digest.hexdigest()
