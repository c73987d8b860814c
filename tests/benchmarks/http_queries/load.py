"""Asks an HTTP server at a steady rate, and keeps the time of each answer from the moment at which it was due."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

_CONNECTIONS = 16

#: A connection that cannot be made is tried again after this time.
_PAUSE_S = 0.05


@dataclass
class Answers:
    """How many there were by status (0: none came), and how long they took."""

    statuses: Counter[int] = field(default_factory=Counter)
    latencies_ms: list[float] = field(default_factory=list)

    def percentile_ms(self, share: float) -> float:
        """The time within which this share of the answers came."""
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")


async def ask(host: str, port: int, paths: Sequence[str], rate: float, until: asyncio.Event) -> Answers:
    """So many requests a second, for these paths in turn, until the event is set."""
    answers = Answers()
    turns = itertools.count()
    await _listening(host, port, until)
    start = time.perf_counter()
    requests = [f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in paths]

    async def one_connection() -> None:
        reader: asyncio.StreamReader | None = None
        writer: asyncio.StreamWriter | None = None
        while not until.is_set():
            turn = next(turns)
            due = start + turn / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            try:
                if reader is None or writer is None:
                    reader, writer = await asyncio.open_connection(host, port)
                writer.write(requests[turn % len(requests)])
                status = await _status(reader)
            except (OSError, EOFError):
                answers.statuses[0] += 1
                reader = writer = None
                await asyncio.sleep(_PAUSE_S)
                continue
            answers.statuses[status] += 1
            answers.latencies_ms.append((time.perf_counter() - due) * 1000)
        if writer is not None:
            writer.close()

    await asyncio.gather(*(one_connection() for _ in range(_CONNECTIONS)))
    return answers


async def _listening(host: str, port: int, until: asyncio.Event) -> None:
    """Wait for the server, which comes with the application."""
    while not until.is_set():
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError:
            await asyncio.sleep(_PAUSE_S)
        else:
            writer.close()
            return


async def _status(reader: asyncio.StreamReader) -> int:
    """The status of an answer, of which all has been read."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:"))
    await reader.readexactly(length)
    return int(lines[0].split(b" ")[1])
