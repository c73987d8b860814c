"""The messages between a supervisor and its workers: lines of JSON over a pair of connected sockets.

The end of the channel is a message, too: a process that dies closes its side, however it dies.
"""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec

from pystreams.cli.terminal.logs import LogOptions
from pystreams.runtime.supervisor.worker import Failure, Measured, Report
from pystreams.serving.address import Endpoint
from pystreams.serving.lag import Lag
from pystreams.serving.live.look import ClientLook, Described
from pystreams.serving.threads import ClientThreads

_READ_BYTES = 65_536


class Job(msgspec.Struct, frozen=True, tag=True):
    """The work of a worker. ``flags`` and ``settings`` are those of the command line. ``watched``: whether an HTTP
    server wants its metrics, and reads its stores; ``endpoint`` is that server's for other instances. ``otel``: whether
    it sends metrics and traces over OpenTelemetry, each worker for itself."""

    application: str
    number: int
    flags: dict[str, Any]
    settings: list[str]
    until_caught_up: bool
    logs: LogOptions
    watched: bool = False
    endpoint: Endpoint | None = None
    otel: bool = False

    @property
    def log_options(self) -> list[str]:
        """The options of the command line that name the log."""
        names = ("bootstrap_servers", "embedded_log")
        return [f"--{name.replace('_', '-')}={self.flags[name]}" for name in names if self.flags.get(name)]


class StopRequest(msgspec.Struct, frozen=True, tag=True):
    """Asks a worker to commit, to leave the group and to end."""


class StacksRequest(msgspec.Struct, frozen=True, tag=True):
    """Asks a worker to log where its threads are."""


class LookRequest(msgspec.Struct, frozen=True, tag=True):
    """Asks a worker what it looks like now: somebody has the live page open. ``with_group``: one worker also says what
    the group knows of all."""

    with_group: bool


class LagRequest(msgspec.Struct, frozen=True, tag=True):
    """Asks a worker how far the application is behind, in all its processes."""


class ThreadsRequest(msgspec.Struct, frozen=True, tag=True):
    """Asks a worker what its threads are at."""


#: Those to a worker, and those from it.
Message: TypeAlias = (
    Job
    | StopRequest
    | StacksRequest
    | LookRequest
    | LagRequest
    | ThreadsRequest
    | Report
    | Measured
    | Described
    | ClientLook
    | Lag
    | ClientThreads
    | Failure
)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Message).decode


class Channel:
    """One end of the channel. One thread reads from it; any thread may call ``send``."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._sending = threading.Lock()
        #: The rest of a message that did not fit into the buffer. The next message begins after it.
        self._unsent = b""
        self._unread = b""

    def send(self, message: Message, *, timeout_s: float | None = 0) -> bool:
        """Send a message. Returns False if the other side is gone, or reads nothing for ``timeout_s`` (None: any time)
        while the buffer is full. Of a message that is too large for the buffer, the rest goes with later ones."""
        try:
            with self._sending:
                if not self._flush(timeout_s):
                    return False
                self._unsent = _encode(message) + b"\n"
                self._flush(timeout_s)
        except (OSError, ValueError):
            return False
        return True

    def send_rest(self) -> None:
        """Send what did not fit of the last message, as far as it fits now."""
        # A reader of the channel notices that the other side is gone.
        with self._sending, suppress(OSError, ValueError):
            self._flush(0)

    def _flush(self, timeout_s: float | None) -> bool:
        """Send the remaining data; returns whether all of it was sent."""
        while self._unsent:
            _, writable, _ = select.select([], [self.socket], [], timeout_s)
            if not writable:
                return False
            with suppress(BlockingIOError):
                sent = self.socket.send(self._unsent, socket.MSG_DONTWAIT)
                self._unsent = self._unsent[sent:]
        return True

    def fileno(self) -> int:
        """The file descriptor, for selectors."""
        return self.socket.fileno()

    def read(self) -> list[Message] | None:
        """The messages that have arrived; waits for one if the socket blocks. None once the other side is gone."""
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
        """All messages, one after the other, until the other side is gone."""
        while (arrived := self.read()) is not None:
            yield from arrived

    def close(self) -> None:
        self.socket.close()
