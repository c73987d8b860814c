"""Notes of the processes that share a state directory: the members that each process has in the group.

``<application_id>/members/<client>`` is locked (flock) as long as its process lives, and has a line of JSON for each
member that the process has been, or is going to be. So an unlocked file lists the members of a dead process. The file
is deleted when the client is closed.

Locks do not work between machines that share the directory. So the name of a client begins with the id of its kernel's
boot, and the clients of other machines are ignored.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
import uuid
from pathlib import Path
from typing import Final

from pystreams.ids import MemberName
from pystreams.state.disk.directory import make_directory, unusable

log = logging.getLogger(__name__)

_FOLDER: Final = "members"
#: A file that is not locked yet has this ending, and is ignored.
_DRAFT: Final = ".new"
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class MemberNotes:
    """The notes of one client, and its access to those of the others. Raises ``StateError`` if the directory cannot be
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
        self._mutex = threading.Lock()
        #: Whether the last line is incomplete, because the disk was full.
        self._cut = False

    def add(self, member: MemberName) -> None:
        """Note a member of this client. A line is written at once, so it is complete even if the process dies."""
        with self._mutex:
            if self._descriptor is None:
                return
            # The rest of an incomplete line would make this one unreadable.
            line = (b"\n" if self._cut else b"") + json.dumps(member).encode() + b"\n"
            try:
                while line:
                    # A disk that becomes full takes a part; only the next write fails.
                    line = line[os.write(self._descriptor, line) :]
                    self._cut = bool(line)
            except OSError as error:
                unusable(self._folder / self.client, error)

    def close(self) -> None:
        """Delete the notes, because the client's members have left, or because their sessions are to time out."""
        with self._mutex:
            descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
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
            # A shared lock, so that two processes that look at once do not take each other for the owner.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def members(self, client: str) -> list[MemberName]:
        """The members of a client, as it has noted them; empty if its notes are gone. Lines that a full disk has cut
        off are left out."""
        path = self._folder / client
        try:
            lines = path.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            unusable(path, error)
        found: list[MemberName] = []
        for line in lines:
            try:
                found.append(MemberName(*json.loads(line)))
            except (ValueError, TypeError) as error:
                log.debug("%s: the line %r cannot be read: %s", path, line, error)
        return found

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
