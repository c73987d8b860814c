"""Asks an HTTP server at a steady rate, and keeps the time of each answer from the moment at which it was due. It
takes little of the machine, because the server needs the rest."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

_CONNECTIONS = 16

#: A connection that cannot be made is tried again after this time.
_PAUSE_S = 0.05


@dataclass
class Answers:
    """How many there were by status (0: none came), and how long they took: those to questions that were due between
    the first and the last answer with status 200. Before and after these the application starts and ends, and what is
    asked meanwhile waits for that. ``cpu_s`` is the processor time that asking took, of ``took_s`` seconds."""

    statuses: Counter[int] = field(default_factory=Counter)
    latencies_ms: list[float] = field(default_factory=list)
    cpu_s: float = 0.0
    took_s: float = 0.0
    #: By the performance counter: when the first answer with status 200 came.
    _begun: float | None = None
    #: Answers since the last one with status 200, by status, and how long they took.
    _since: list[tuple[int, float]] = field(default_factory=list)

    def add(self, status: int, due: float) -> None:
        """An answer has come to the question that was due then, by the performance counter."""
        now = time.perf_counter()
        if self._begun is None and status == 200:
            self._begun = now
        if self._begun is None or due < self._begun:
            return
        self._since.append((status, (now - due) * 1000))
        if status == 200:
            self.statuses.update(status for status, _ in self._since)
            self.latencies_ms += [took_ms for _, took_ms in self._since]
            self._since.clear()

    def lost(self, due: float) -> None:
        """The connection has ended before the answer to the question that was due then."""
        if self._begun is not None and due >= self._begun:
            self._since.append((0, float("inf")))

    def percentile_ms(self, share: float) -> float:
        """The time within which this share of the answers came."""
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")


async def ask(host: str, port: int, *, paths: Sequence[str], rate: float, until: asyncio.Event) -> Answers:
    """So many requests a second, for these paths in turn, until the event is set."""
    answers, free, listening = Answers(), deque[_Connection](), asyncio.Event()

    def connection() -> _Connection:
        listening.set()
        return _Connection(answers, free)

    connections = [asyncio.create_task(_kept(host, port, connection, until)) for _ in range(_CONNECTIONS)]
    requests = [f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in paths]
    await _first(listening, until)
    start, cpu, turn = time.perf_counter(), time.process_time(), 0
    while not until.is_set():
        while free and start + turn / rate <= time.perf_counter():
            free.popleft().ask(requests[turn % len(requests)], start + turn / rate)
            turn += 1
        # Answers that come meanwhile free their connections.
        await asyncio.sleep(max(0.0005, start + turn / rate - time.perf_counter()))
    answers.cpu_s, answers.took_s = time.process_time() - cpu, time.perf_counter() - start
    await asyncio.gather(*connections)
    return answers


async def watch(host: str, port: int, *, pages: int, until: asyncio.Event) -> Answers:
    """Keep live pages open, each on a connection of its own, until the event is set: how many events came (200)."""
    answers = Answers()
    watching = [asyncio.create_task(_page(host, port, answers)) for _ in range(pages)]
    await until.wait()
    for one in watching:
        one.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    return answers


async def _page(host: str, port: int, answers: Answers) -> None:
    while True:
        # The server comes with the application, which ends it, too.
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while line := await reader.readline():
                answers.statuses[200] += line.startswith(b"data:")
        await asyncio.sleep(_PAUSE_S)


class _Connection(asyncio.Protocol):
    """Asks for one thing at a time, and is ``free`` between an answer and the next question."""

    def __init__(self, answers: Answers, free: deque[_Connection]) -> None:
        self._answers = answers
        self._free = free
        self._due: float | None = None
        self._data = b""
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._free.append(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._due is None:
            self._free.remove(self)
        else:
            self._answers.lost(self._due)
        self.ended.set()

    def ask(self, request: bytes, due: float) -> None:
        self._due, self._data = due, b""
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, end, body = self._data.partition(b"\r\n\r\n")
        if not end or len(body) < int(head.partition(b"content-length: ")[2].split(b"\r\n", 1)[0]):
            return
        assert self._due is not None
        self._answers.add(int(head[9:12]), self._due)
        self._due = None
        self._free.append(self)


async def _kept(host: str, port: int, new: Callable[[], _Connection], until: asyncio.Event) -> None:
    """A connection, made again whenever it ends. The server comes with the application, which ends it, too."""
    loop = asyncio.get_running_loop()
    while not until.is_set():
        try:
            transport, connection = await loop.create_connection(new, host, port)
        except OSError:
            await asyncio.sleep(_PAUSE_S)
            continue
        await _first(connection.ended, until)
        transport.close()
        if not until.is_set():
            await asyncio.sleep(_PAUSE_S)


async def _first(*events: asyncio.Event) -> None:
    """Wait until one of them is set."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for one in waiting:
        one.cancel()
