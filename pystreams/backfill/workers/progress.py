"""Reports the progress of running tasks to the driver: one datagram per second, which may be lost.

A task may run for hours, and Spark's own counters reach the driver when it ends. Nothing waits for a datagram or
depends on it: the outcomes of a slice have the final counts. If the driver cannot listen, or workers do not reach it,
there is no live progress.
"""

from __future__ import annotations

import logging
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from struct import Struct
from typing import Any

from pystreams.backfill.compute.executor import Report
from pystreams.clock import Deadline, SystemClock

log = logging.getLogger(__name__)

_INTERVAL_MS = 1_000

#: The listener checks at this interval whether it is to end.
_PAUSE_S = 0.1

#: Token, task, records, whether finished.
_MESSAGE = Struct(">16siq?")


class TaskReport:
    """Reports on one task of a worker."""

    def __init__(self, reporter: Reporter, task: int) -> None:
        self._address = reporter.address
        self._family = reporter.family
        self._token = reporter.token
        self._task = task
        self._records = 0
        self._next = Deadline(SystemClock(), _INTERVAL_MS)

    def processed(self, records: int) -> None:
        """Report the total number of processed records."""
        self._records = records
        if self._address is not None and self._next.expired():
            self._next = Deadline(SystemClock(), _INTERVAL_MS)
            self._send(finished=False)

    def finished(self) -> None:
        self._send(finished=True)

    def _send(self, *, finished: bool) -> None:
        if self._address is None:
            return
        try:
            address = _resolved(*self._address, self._family)[1]
            with closing(socket.socket(self._family, socket.SOCK_DGRAM)) as sender:
                sender.sendto(_MESSAGE.pack(self._token, self._task, self._records, finished), address)
        except OSError:
            # Where the driver cannot be reached like this, there is no live progress: nothing else is lost.
            self._address = None


@dataclass(frozen=True, slots=True)
class Reporter:
    """Makes reports to the driver's address; picklable. ``address`` None: the driver does not listen."""

    address: tuple[str, int] | None
    token: bytes = field(repr=False)
    #: Of the addresses that a name has, the one of this family.
    family: int = socket.AF_INET

    def of(self, task: int) -> TaskReport:
        return TaskReport(self, task)


@contextmanager
def listening(bind: str, host: str, report: Report) -> Iterator[Reporter]:
    """Listen at the driver's address ``bind``, which workers reach as ``host``, and call ``report`` from a thread of
    its own. If that address cannot be listened at, nothing is reported."""
    token = secrets.token_bytes(16)
    try:
        receiver = _bound(bind)
    except OSError as error:
        _warn_once(bind, str(error))
        yield Reporter(None, token)
        return
    with closing(receiver):
        ended = threading.Event()
        thread = threading.Thread(
            target=_listen,
            args=(receiver, token, report, ended),
            name="pystreams-backfill-progress",
            daemon=True,
        )
        try:
            # A signal may end the driver within this call.
            thread.start()
            yield Reporter((host, receiver.getsockname()[1]), token, int(receiver.family))
        finally:
            ended.set()
            if thread.is_alive():
                thread.join()


def _resolved(host: str, port: int, family: int = socket.AF_UNSPEC) -> tuple[int, Any]:
    """Family and address of a host by name or number. Raises ``OSError``."""
    found, _, _, _, address = socket.getaddrinfo(host, port, family, socket.SOCK_DGRAM)[0]
    return found, address


def _bound(host: str) -> socket.socket:
    """A socket at a free port. Raises ``OSError``."""
    family, address = _resolved(host, 0)
    receiver = socket.socket(family, socket.SOCK_DGRAM)
    try:
        receiver.bind(address)
    except OSError:
        receiver.close()
        raise
    receiver.settimeout(_PAUSE_S)
    return receiver


@cache
def _warn_once(bind: str, why: str) -> None:
    log.warning(
        "no live progress: the driver cannot listen at its address %s (%s); records are counted when slices are done",
        bind,
        why,
    )


def _listen(receiver: socket.socket, token: bytes, report: Report, ended: threading.Event) -> None:
    """Receive reports until the end is requested; later ones are not needed."""
    while not ended.is_set():
        try:
            message = receiver.recv(_MESSAGE.size + 1)
        except TimeoutError:
            continue
        if len(message) == _MESSAGE.size and message.startswith(token):
            _, task, records, finished = _MESSAGE.unpack(message)
            report(task, records, finished)
