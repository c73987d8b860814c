"""What a supervisor and its workers tell each other: lines of JSON over a pair of connected sockets.

Its end is news, too: whoever dies, however, closes its side.
"""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from pystreams.cli.terminal.logs import LogOptions
from pystreams.runtime.supervisor.worker import Failure, Report

_READ_BYTES = 65_536


class Job(msgspec.Struct, frozen=True, tag=True):
    """What a worker is to run. ``flags`` and ``settings`` are those of the command line."""

    application: str
    number: int
    flags: dict[str, Any]
    settings: list[str]
    until_caught_up: bool
    logs: LogOptions

    @property
    def log_options(self) -> list[str]:
        """Those of the command line that name the log."""
        names = ("bootstrap_servers", "embedded_log")
        return [f"--{name.replace('_', '-')}={self.flags[name]}" for name in names if self.flags.get(name)]


class StopRequest(msgspec.Struct, frozen=True, tag=True):
    """Commit, leave and end."""


Message: TypeAlias = Job | StopRequest | Report | Failure

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Message).decode


class Channel:
    """One end. Belongs to one reader; ``send`` may be called by any thread."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._sending = threading.Lock()
        self._unread = b""

    def send(self, message: Message, *, wait: bool = False) -> bool:
        """False if nobody will read it, or nobody has read for so long that there is no room; with ``wait`` it waits
        for room, as long as the other side is there."""
        try:
            with self._sending:
                _, writable, _ = select.select([], [self.socket], [], None if wait else 0)
                if not writable:
                    return False
                self.socket.sendall(_encode(message) + b"\n")
        except (OSError, ValueError):
            return False
        return True

    def fileno(self) -> int:
        """For selectors."""
        return self.socket.fileno()

    def read(self) -> list[Message] | None:
        """What has arrived, after waiting for it if the socket blocks; None once the other side is gone."""
        try:
            arrived = self.socket.recv(_READ_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not arrived:
            return None
        *lines, self._unread = (self._unread + arrived).split(b"\n")
        return [_decode(line) for line in lines]

    def messages(self) -> Iterator[Message]:
        """One after the other, until the other side is gone."""
        while (arrived := self.read()) is not None:
            yield from arrived

    def close(self) -> None:
        self.socket.close()
