"""The manifest's files in a staging folder: numbered, each written once; the newest complete one is valid.

    <staging>/manifest-00001.json, manifest-00002.json, …

No file is ever replaced or renamed, because file systems differ in what that does: Hadoop's rename over a file that
is there is unknown to Google's storage and a copy on S3. It only needs that a file is either newly created or not at
all, and that a list of the folder has all files that were closed before. A file that its writer did not finish is not
JSON, and is passed over.

Guarantees: on every file system, a driver that finds a manifest of another driver does not write one, because the other
one has taken over. That two drivers write the same number, so that neither finds the other's, cannot happen on local
disks, HDFS, Azure's and Google's storage, and on S3 with Hadoop 3.4.2 or later, which make a file once. An older
Hadoop looks whether there is a file on S3 before it makes one: two drivers that do this within the same moment both go
on until the next slice, where one of them finds out. Each one has written its slices to folders of its own, so nothing
is mixed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Final, Protocol

from pystreams.backfill.plan.manifest import Manifest
from pystreams.errors import StateError
from pystreams.folders import make_folder

_NAME: Final = re.compile(r"manifest-(\d{5,})\.json")


class Folder(Protocol):
    """A folder on some file system; made when it is first written to."""

    @property
    def url(self) -> str:
        """For people."""
        ...

    def names(self) -> list[str]:
        """Files and folders in it; none if there is no such folder."""
        ...

    def read(self, name: str) -> bytes | None:
        """A file's content, None if there is none."""
        ...

    def create(self, name: str, content: bytes) -> None:
        """Raises ``FileExistsError`` if there is such a file."""
        ...

    def delete(self, name: str) -> None:
        """A file, or a folder with all that is in it; nothing if there is none."""
        ...


class LocalFolder:
    """Implements ``Folder`` for this machine's disks."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def url(self) -> str:
        return str(self._path)

    def names(self) -> list[str]:
        return [path.name for path in self._path.iterdir()] if self._path.exists() else []

    def read(self, name: str) -> bytes | None:
        try:
            return (self._path / name).read_bytes()
        except FileNotFoundError:
            return None

    def create(self, name: str, content: bytes) -> None:
        make_folder(self._path)
        with (self._path / name).open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def delete(self, name: str) -> None:
        path = self._path / name
        if path.is_dir():
            # A task that still runs may create files during the deletion. They do no harm, because they are not used.
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


class ManifestFiles:
    """The manifest of one staging folder, as one driver reads and writes it."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        #: The number that this driver has read or written last; 0: there was none.
        self._own = 0

    def read(self) -> Manifest | None:
        """The valid manifest; None if nothing was begun here."""
        self._own, content = self._newest()
        return None if content is None else Manifest.from_json(content.decode(), self._place(self._own))

    def write(self, manifest: Manifest) -> None:
        """Write a manifest, which becomes the valid one. Raises ``StateError`` if another driver has written one
        since."""
        self.require_own()
        number = max(self._numbers(), default=0) + 1
        try:
            self._folder.create(_name(number), manifest.to_json().encode())
        except FileExistsError:
            raise self._taken_over(number) from None
        self._own = number

    def require_own(self) -> None:
        """Raises ``StateError`` if the manifest that counts is not the one that was read or written last."""
        newest, _ = self._newest()
        if newest != self._own:
            raise self._taken_over(newest)

    def delete_older(self) -> None:
        """Delete the files that are not valid any more."""
        for number in self._numbers():
            if number < self._own:
                self._folder.delete(_name(number))

    def _newest(self) -> tuple[int, bytes | None]:
        for number in sorted(self._numbers(), reverse=True):
            content = self._folder.read(_name(number))
            if content is not None and _whole(content):
                return number, content
        return 0, None

    def _numbers(self) -> list[int]:
        return [int(found[1]) for name in self._folder.names() if (found := _NAME.fullmatch(name))]

    def _place(self, number: int) -> str:
        return f"{self._folder.url}/{_name(number)}"

    def _taken_over(self, number: int) -> StateError:
        return StateError(
            "another process continues this backfill, or has begun another one in its place",
            where=self._folder.url,
            why=f"{_name(number)} is not of this run" if number else "the manifest of this run was deleted",
            hint="let one of them finish: the slices that this one has computed since are not used",
        )


def _name(number: int) -> str:
    return f"manifest-{number:05}.json"


def _whole(content: bytes) -> bool:
    """Whether the file is complete: a truncated file is not JSON."""
    try:
        return isinstance(json.loads(content), dict)
    except ValueError:
        return False
