"""A line between two processes of one instance: questions one way, parts of answers the other, over a pair of connected
sockets that nobody else can reach. Several questions may be on their way at once.

A message is its length in four bytes, and MessagePack.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from itertools import count
from typing import Final, TypeAlias

import msgspec

from pystreams.errors import StreamsError
from pystreams.serving.query_errors import as_query_error, query_error
from pystreams.serving.stores.asking import Answerer
from pystreams.serving.stores.parts import Part, StoreInfo
from pystreams.serving.stores.questions import Question

log = logging.getLogger(__name__)

_LENGTH_BYTES: Final = 4


class _Asked(msgspec.Struct, frozen=True, tag=True):
    """``question`` None: the list of stores is wanted."""

    number: int
    question: Question | None


class _Answered(msgspec.Struct, frozen=True, tag=True):
    number: int
    part: Part


class _Listed(msgspec.Struct, frozen=True, tag=True):
    number: int
    stores: list[StoreInfo]


class _Refused(msgspec.Struct, frozen=True, tag=True):
    """The parts of a ``QueryError``."""

    number: int
    code: str
    what: str
    where: str
    why: str
    hint: str


_Reply: TypeAlias = _Answered | _Listed | _Refused

_encode = msgspec.msgpack.Encoder().encode
_decode_asked = msgspec.msgpack.Decoder(_Asked).decode
_decode_reply = msgspec.msgpack.Decoder(_Reply).decode


class Line:
    """The end that asks. Implements ``Answerer``; used in one event loop, but ``hang_up`` by any thread. Its methods
    raise ``ConnectionError`` once the other process is gone."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[_Reply]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._opening: asyncio.Task[None] | None = None
        self._gone = False

    async def stores(self) -> list[StoreInfo]:
        reply = await self._reply(None)
        assert isinstance(reply, _Listed)
        return reply.stores

    def ask_at_once(self, question: Question) -> Part | None:
        return None

    async def ask(self, question: Question) -> Part:
        reply = await self._reply(question)
        assert isinstance(reply, _Answered)
        return reply.part

    def hang_up(self) -> None:
        """The other process has ended."""
        self._gone = True
        try:
            # Whoever waits for a reply sees the end of the line.
            self._end.shutdown(socket.SHUT_RDWR)
        except OSError as error:
            log.debug("the line had ended before: %s", error)
        if self._opening is None:
            self._end.close()

    async def _reply(self, question: Question | None) -> _Reply:
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        # One whose request is cancelled does not end the opening, for which others wait.
        await asyncio.shield(self._opening)
        if self._gone or self._writer is None:
            raise ConnectionError("the process has ended")
        number = next(self._numbers)
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(_framed(_Asked(number, question)))
            await self._writer.drain()
            reply: _Reply = await waiting
        finally:
            del self._waiting[number]
        if isinstance(reply, _Refused):
            raise query_error(reply.code, reply.what, where=reply.where, why=reply.why, hint=reply.hint)
        return reply

    async def _open(self) -> None:
        if self._gone:
            return
        reader, self._writer = await asyncio.open_connection(sock=self._end)
        self._reading = asyncio.create_task(self._read(reader))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                reply = _decode_reply(await _frame(reader))
                waiting = self._waiting.get(reply.number)
                # Nobody may wait for it any more.
                if waiting is not None and not waiting.done():
                    waiting.set_result(reply)
        except (EOFError, OSError):
            self._gone = True
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(ConnectionError("the process has ended"))
        finally:
            if self._writer is not None:
                self._writer.close()


class LineServer:
    """The end that answers, in a thread of its own until the line ends."""

    def __init__(self, end: socket.socket, answerer: Answerer) -> None:
        self._end = end
        self._answerer = answerer
        self._tasks: set[asyncio.Task[None]] = set()
        threading.Thread(target=lambda: asyncio.run(self._serve()), name="queries", daemon=True).start()

    async def _serve(self) -> None:
        reader, writer = await asyncio.open_connection(sock=self._end)
        try:
            while True:
                asked = _decode_asked(await _frame(reader))
                task = asyncio.create_task(self._answer(asked, writer))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        except (EOFError, OSError) as ended:
            log.debug("nobody asks any more: %s", ended)
        finally:
            writer.close()

    async def _answer(self, asked: _Asked, writer: asyncio.StreamWriter) -> None:
        reply: _Reply
        try:
            if asked.question is None:
                reply = _Listed(asked.number, await self._answerer.stores())
            else:
                reply = _Answered(asked.number, await self._answerer.ask(asked.question))
        except Exception as error:
            # Without a reply the one who asks would wait for nothing.
            if not isinstance(error, StreamsError):
                log.exception("a query failed")
            refused = as_query_error(error)
            reply = _Refused(
                asked.number, refused.code, refused.what, refused.place, refused.why, refused.hint
            )
        writer.write(_framed(reply))
        await writer.drain()


def _framed(message: _Asked | _Reply) -> bytes:
    data = _encode(message)
    return len(data).to_bytes(_LENGTH_BYTES) + data


async def _frame(reader: asyncio.StreamReader) -> bytes:
    """The next message. Raises ``EOFError`` at the end of the line."""
    length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES))
    return await reader.readexactly(length)
