"""How far tasks are, told to the driver while they run: a datagram a second, that may be lost.

Spark's own counters reach the driver when a task ends, and a task may run for hours. Nothing waits for a datagram and
nothing depends on one: what a slice has done is counted by its outcomes.
"""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from struct import Struct

from pystreams.backfill.executor import Report
from pystreams.clock import Deadline, SystemClock

_INTERVAL_MS = 1_000

#: Token, task, records, whether finished.
_TOLD = Struct(">16siq?")


class TaskReport:
    """Reports on one task of a worker."""

    def __init__(self, address: tuple[str, int], token: bytes, task: int) -> None:
        self._address = address
        self._token = token
        self._task = task
        self._records = 0
        self._reachable = True
        self._next = Deadline(SystemClock(), _INTERVAL_MS)

    def processed(self, records: int) -> None:
        """So many records in all so far."""
        self._records = records
        if self._reachable and self._next.expired():
            self._next = Deadline(SystemClock(), _INTERVAL_MS)
            self._tell(finished=False)

    def finished(self) -> None:
        self._tell(finished=True)

    def _tell(self, *, finished: bool) -> None:
        family = socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET
        with closing(socket.socket(family, socket.SOCK_DGRAM)) as sender:
            try:
                sender.sendto(_TOLD.pack(self._token, self._task, self._records, finished), self._address)
            except OSError:
                # Where the driver cannot be reached like this, there is no live progress: nothing else is lost.
                self._reachable = False


@dataclass(frozen=True, slots=True)
class Reporter:
    """Where to report to; picklable."""

    address: tuple[str, int]
    token: bytes = field(repr=False)

    def of(self, task: int) -> TaskReport:
        return TaskReport(self.address, self.token, task)


@contextmanager
def listening(host: str, report: Report) -> Iterator[Reporter]:
    """Listen at an address of the driver, and call ``report`` from a thread of its own."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    token = secrets.token_bytes(16)
    with closing(socket.socket(family, socket.SOCK_DGRAM)) as receiver:
        receiver.bind((host, 0))
        address = (host, receiver.getsockname()[1])
        thread = threading.Thread(
            target=_listen, args=(receiver, token, report), name="pystreams-backfill-progress", daemon=True
        )
        thread.start()
        try:
            yield Reporter(address, token)
        finally:
            with closing(socket.socket(family, socket.SOCK_DGRAM)) as sender:
                sender.sendto(token, address)
            thread.join()


def _listen(receiver: socket.socket, token: bytes, report: Report) -> None:
    """Until the token comes alone."""
    while (message := receiver.recv(_TOLD.size + 1)) != token:
        if len(message) == _TOLD.size and message.startswith(token):
            _, task, records, finished = _TOLD.unpack(message)
            report(task, records, finished)
