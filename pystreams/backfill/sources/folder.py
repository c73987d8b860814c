"""A folder with files, on any file system of Arrow: this machine, s3://, gs://, abfs://, hdfs://."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.locations import absolute, is_url, shown
from pystreams.errors import ConfigError, StateError
from pystreams.folders import make_folder


@dataclass(frozen=True, slots=True)
class Folder:
    """``path`` is a path of this machine, or a URI. Files are named by their paths within it, with slashes."""

    path: str = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", absolute(self.path))

    @property
    def shown(self) -> str:
        """The place, as messages show it."""
        return shown(self.path)

    def files(self, suffixes: Sequence[str]) -> list[str]:
        """The files with one of the suffixes, at any depth, sorted; names that begin with ``_`` or ``.`` are hidden.

        ``path`` may be a file: then it is the only one. Raises ``ConfigError`` if nothing is there.
        """
        system, base = self._resolved()
        kind = system.get_file_info(base).type
        if kind == fs.FileType.File:
            return [""]
        if kind == fs.FileType.NotFound:
            raise ConfigError(f"there is no folder {self.shown}", hint="check the path")
        names = [
            info.path[len(base) :].strip("/")
            for info in system.get_file_info(fs.FileSelector(base, recursive=True))
            if info.type == fs.FileType.File
        ]
        return sorted(name for name in names if name.lower().endswith(tuple(suffixes)) and not _hidden(name))

    def names(self, folder: str) -> list[str]:
        """The names of all files directly in a sub-folder, sorted; none if there is no such folder."""
        return self._names(folder, fs.FileType.File)

    def folders(self, folder: str) -> list[str]:
        """The names of all folders directly in a sub-folder, sorted; none if there is no such folder."""
        return self._names(folder, fs.FileType.Directory)

    def _names(self, folder: str, kind: Any) -> list[str]:
        system, base = self._resolved()
        selector = fs.FileSelector(_within(base, folder), allow_not_found=True)
        return sorted(info.base_name for info in system.get_file_info(selector) if info.type == kind)

    def exists(self, file: str) -> bool:
        system, base = self._resolved()
        return bool(system.get_file_info(_within(base, file)).type != fs.FileType.NotFound)

    def open_file(self, file: str) -> Arrow:
        """A file, opened for reading at any position."""
        system, base = self._resolved()
        return system.open_input_file(_within(base, file))

    def open_stream(self, file: str) -> Arrow:
        """A file, opened for reading from its beginning; it is unpacked if its name says so (``.gz``, ``.zst``,
        ...)."""
        system, base = self._resolved()
        return system.open_input_stream(_within(base, file), compression="detect")

    def read(self, file: str) -> bytes:
        with self.open_file(file) as opened:
            return bytes(opened.read())

    def create(self, file: str) -> Arrow:
        """A new file, opened for writing; its folders are created. Raises ``StateError`` if this is not possible."""
        system, base = self._resolved()
        path = _within(base, file)
        with self.written():
            _make_folder(system, path.rpartition("/")[0])
            return system.open_output_stream(path)

    def written(self) -> AbstractContextManager[None]:
        """While something is written. Raises ``StateError`` if the file system refuses it."""
        return writing_to(self.shown)

    def publish(self, file: str, content: bytes) -> bool:
        """Create a small file atomically; False if there is a file with that name.

        On this machine this also works with concurrent processes. Other file systems have no such operation here: if
        two processes publish at the same moment, the file of one may be lost.
        """
        if self.exists(file):
            return False
        draft = f"{file}.{uuid4().hex}"
        with self.create(draft) as opened:
            opened.write(content)
        system, base = self._resolved()
        source, target = _within(base, draft), _within(base, file)
        if not isinstance(system, fs.LocalFileSystem):
            system.move(source, target)
            return True
        try:
            os.link(source, target)
        except FileExistsError:
            return False
        finally:
            Path(source).unlink()
        return True

    def sync(self, file: str) -> None:
        """Make a written file survive a failure of this machine. Other file systems do this by themselves."""
        system, base = self._resolved()
        if isinstance(system, fs.LocalFileSystem):
            with Path(_within(base, file)).open("rb") as written:
                os.fsync(written.fileno())

    def move(self, file: str, to: str) -> None:
        """Raises ``FileNotFoundError`` if there is no such file."""
        system, base = self._resolved()
        target = _within(base, to)
        _make_folder(system, target.rpartition("/")[0])
        system.move(_within(base, file), target)

    def delete(self, folder: str) -> None:
        """Delete a sub-folder with its content, if it exists."""
        system, base = self._resolved()
        path = _within(base, folder)
        if system.get_file_info(path).type != fs.FileType.NotFound:
            system.delete_dir(path)

    def remove(self, file: str) -> None:
        """Delete a file in this folder, if it exists."""
        system, base = self._resolved()
        if self.exists(file):
            system.delete_file(_within(base, file))

    def _resolved(self) -> tuple[Any, str]:
        """The file system, and the path there."""
        if not is_url(self.path):
            return fs.LocalFileSystem(), self.path
        try:
            system, path = fs.FileSystem.from_uri(self.path.replace("s3a://", "s3://", 1))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            raise ConfigError(
                f"{self.shown} is not on a file system that can be reached",
                why=shown(str(error).splitlines()[0]),
                hint="a path, or a URI that Arrow knows: file://, s3://, gs://, abfs://, hdfs://",
            ) from None
        return system, path.rstrip("/")


@contextmanager
def writing_to(place: str) -> Iterator[None]:
    """While something is written. Raises ``StateError`` if the file system of the place refuses it."""
    try:
        yield
    except OSError as error:
        raise StateError(
            f"nothing can be written to {place}", why=shown((str(error).splitlines() or [""])[0])
        ) from error


def hive_values(file: str) -> dict[str, str]:
    """The values in the folder names of a file's path: ``topic=lines/partition=0/a.parquet``."""
    pairs = (part.partition("=") for part in file.split("/")[:-1])
    return {name: unquote(value) for name, equals, value in pairs if equals}


def hive_folder(**values: object) -> str:
    """The folder names for these values, as Hive and Spark write them."""
    return "/".join(f"{name}={quote(str(value), safe=' ')}" for name, value in values.items())


def _make_folder(system: Any, path: str) -> None:
    if isinstance(system, fs.LocalFileSystem):
        make_folder(Path(path))
    else:
        system.create_dir(path, recursive=True)


def _within(base: str, name: str) -> str:
    return f"{base}/{name}" if name else base


def _hidden(name: str) -> bool:
    return any(part.startswith(("_", ".")) for part in name.split("/"))
