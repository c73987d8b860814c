"""Between clients and a broker: passes requests and answers on, and loses or delays what a test chooses.

It reads the header of each request (which API, from which client), which suffices to choose one. Source: Kafka's
protocol guide, "request header" and "response header".
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

#: The requests of a commit (also that of a broker to itself), those that it asks for offsets, brokers, coordinators and
#: transactions, and those by which members say that they live, by their numbers in the protocol.
APIS = {
    "Produce": 0,
    "ListOffsets": 2,
    "Metadata": 3,
    "OffsetCommit": 8,
    "OffsetFetch": 9,
    "FindCoordinator": 10,
    "Heartbeat": 12,
    "InitProducerId": 22,
    "AddPartitionsToTxn": 24,
    "AddOffsetsToTxn": 25,
    "EndTxn": 26,
    "WriteTxnMarkers": 27,
    "TxnOffsetCommit": 28,
    "DescribeProducers": 61,
    "DescribeTransactions": 65,
    "StreamsGroupHeartbeat": 88,
}

Fate = Literal["lost", "unanswered", "late", "changed"]


class Request(NamedTuple):
    """The header of a request."""

    api: int
    correlation_id: int
    client_id: str


@dataclass
class Fault:
    """What happens to the next requests of one API of clients whose id contains ``client``: ``count`` of them, after
    ``skip`` others. ``lost``: the broker never gets it. ``unanswered``: it does, and its answer is lost. ``late``: it
    does when the client has given up. Each time the client loses its connection. ``changed``: the client gets another
    answer, by ``change``."""

    api: str
    fate: Fate
    client: str = ""
    skip: int = 0
    count: int = 1
    #: How long a late request stays on its way after its client has lost the connection.
    late_s: float = 1.0
    #: Called instead of losing the connection: with ``lost`` before the broker gets the request, with ``unanswered``
    #: when it has answered.
    instead: Callable[[], None] | None = None
    change: Callable[[bytes], bytes] | None = None
    hits: int = field(default=0, init=False)

    def concerns(self, request: Request) -> bool:
        if request.api != APIS[self.api] or self.client not in request.client_id or self.hits >= self.count:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.hits += 1
        return True


class Proxy:
    """Listens on ``port``, for a broker that is reachable at ``target_port``."""

    def __init__(self) -> None:
        self.target_port = 0
        self._faults: list[Fault] = []
        #: Late requests that the broker has got.
        self.delivered_late = 0
        #: Connections that clients have lost at once, because nobody was at ``target_port``.
        self.turned_away = 0
        self._links: set[_Link] = set()
        self._serving: set[asyncio.Future[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._accepted, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]

    def add(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    def remove(self, fault: Fault) -> None:
        self._faults.remove(fault)

    def remove_all(self) -> None:
        self._faults.clear()

    def cut(self) -> int:
        """End all connections, as a broker does that is killed. Returns how many there were."""
        return self._run(self._cut())

    async def _cut(self) -> int:
        links = list(self._links)
        for link in links:
            link.end()
        return len(links)

    def close(self) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _close(self) -> None:
        # A server of asyncio that is closed while it accepts a connection forgets to close it.
        for listening in self._server.sockets:
            self._loop.remove_reader(listening.fileno())
        await _rounds()
        self._server.close()
        for serving in self._serving:
            serving.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await _rounds()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a client. As a coroutine it might be cancelled before it begins, and the connection would stay open."""
        serving = asyncio.ensure_future(self._connected(reader, writer))
        # Kept, because the event loop alone does not.
        self._serving.add(serving)
        serving.add_done_callback(lambda _: (writer.close(), self._serving.discard(serving)))

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_broker, to_broker = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            self.turned_away += 1
            return
        link = _Link(self, reader, writer, from_broker, to_broker)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)

    def fate_of(self, request: Request) -> Fault | None:
        return next((fault for fault in self._faults if fault.concerns(request)), None)


class _Link:
    """One connection of a client."""

    def __init__(
        self,
        proxy: Proxy,
        from_client: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        from_broker: asyncio.StreamReader,
        to_broker: asyncio.StreamWriter,
    ) -> None:
        self._proxy = proxy
        self._from_client, self._to_client = from_client, to_client
        self._from_broker, self._to_broker = from_broker, to_broker
        self._unanswered: dict[int, Fault] = {}
        self._late: int | None = None

    async def run(self) -> None:
        both = self._tasks = [
            asyncio.ensure_future(self._requests()),
            asyncio.ensure_future(self._answers()),
        ]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            self._to_client.close()
            self._to_broker.close()

    def end(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _requests(self) -> None:
        while True:
            frame = await _frame(self._from_client)
            if frame is None:
                return
            request = _request(frame)
            fault = self._proxy.fate_of(request)
            if fault is None:
                await _write(self._to_broker, frame)
            elif fault.fate in ("unanswered", "changed"):
                self._unanswered[request.correlation_id] = fault
                await _write(self._to_broker, frame)
            elif fault.fate == "lost":
                if fault.instead is not None:
                    fault.instead()
                return
            else:
                self._to_client.close()
                await asyncio.sleep(fault.late_s)
                self._late = request.correlation_id
                await _write(self._to_broker, frame)
                await asyncio.Event().wait()  # until its answer ends the connection

    async def _answers(self) -> None:
        while True:
            frame = await _frame(self._from_broker)
            if frame is None:
                return
            (correlation_id,) = struct.unpack_from(">i", frame)
            if correlation_id == self._late:
                self._proxy.delivered_late += 1
                return
            fault = self._unanswered.get(correlation_id)
            if fault is not None and fault.change is not None:
                frame = fault.change(frame)
            elif fault is not None:
                if fault.instead is not None:
                    fault.instead()
                return
            await _write(self._to_client, frame)


def _request(frame: bytes) -> Request:
    api, _, correlation_id, length = struct.unpack_from(">hhih", frame)
    return Request(api, correlation_id, frame[10 : 10 + max(0, length)].decode())


async def _rounds() -> None:
    """Let the event loop do what it has to do."""
    for _ in range(5):
        await asyncio.sleep(0)


async def _frame(reader: asyncio.StreamReader) -> bytes | None:
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        (length,) = struct.unpack(">i", await reader.readexactly(4))
        return await reader.readexactly(length)
    return None


async def _write(writer: asyncio.StreamWriter, frame: bytes) -> None:
    with contextlib.suppress(ConnectionError):
        writer.write(struct.pack(">i", len(frame)) + frame)
        await writer.drain()
