"""Notes of the processes that share a state directory: of which members each consists.

``<application_id>/members/<client>`` is locked (flock) as long as its process lives, and has a line of JSON for each
member that the process has been, or is to be. So whoever finds a file that is not locked knows which members have died.
The file is deleted when the client is closed.

A lock says nothing about the processes of another machine that shares the directory. So the name of a client begins
with the id of its kernel's boot, and clients of others are not seen.
"""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from pathlib import Path
from typing import Final

from pystreams.ids import MemberName
from pystreams.state.disk.directory import make_directory, unusable

_FOLDER: Final = "members"
#: A file that is not locked yet has this ending, and counts for nobody.
_DRAFT: Final = ".new"
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class MemberNotes:
    """The notes of one client, and its view of those of the others. Raises ``StateError`` if the directory cannot be
    used."""

    def __init__(self, directory: Path) -> None:
        self._folder = directory / _FOLDER
        self._kernel = _kernel()
        #: Distinguishes the clients that share the directory.
        self.client = f"{self._kernel}-{uuid.uuid4().hex}"
        make_directory(self._folder)
        draft = self._folder / f"{self.client}{_DRAFT}"
        try:
            descriptor = os.open(
                draft, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644
            )
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.rename(self._folder / self.client)
        except OSError as error:
            unusable(draft, error)
        self._descriptor: int | None = descriptor

    def add(self, member: MemberName) -> None:
        """Note a member of this client. One line is one write, so it is there as a whole if the process dies."""
        if self._descriptor is None:
            return
        try:
            os.write(self._descriptor, json.dumps(member).encode() + b"\n")
        except OSError as error:
            unusable(self._folder / self.client, error)

    def close(self) -> None:
        """Delete the notes: the client's members have left, or their sessions are to end by themselves."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            try:
                self.forget(self.client)
            finally:
                os.close(descriptor)

    # The others

    def others(self) -> list[str]:
        """All other clients of this machine with notes, dead or alive, in an order that is the same for all."""
        try:
            names = [path.name for path in self._folder.iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            unusable(self._folder, error)
        return sorted(
            name
            for name in names
            if name.startswith(f"{self._kernel}-") and name != self.client and not name.endswith(_DRAFT)
        )

    def lives(self, client: str) -> bool:
        """Whether the process of a client lives."""
        try:
            descriptor = os.open(self._folder / client, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError as error:
            unusable(self._folder / client, error)
        try:
            # A shared lock, so that two who look at once do not take each other for the owner.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def members(self, client: str) -> list[MemberName]:
        """The members of a client, as it has noted them; empty if its notes are gone."""
        try:
            lines = (self._folder / client).read_text(encoding="utf-8").splitlines(keepends=True)
        except FileNotFoundError:
            return []
        except OSError as error:
            unusable(self._folder / client, error)
        # A full disk may have cut the last line off.
        return [MemberName(*json.loads(line)) for line in lines if line.endswith("\n")]

    def forget(self, client: str) -> None:
        """Delete the notes of a client."""
        try:
            (self._folder / client).unlink(missing_ok=True)
        except OSError as error:
            unusable(self._folder / client, error)


def _kernel() -> str:
    """The id of the running kernel's boot; one for all where the system does not have it (macOS)."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip().replace("-", "")
    except OSError:
        return "local"
