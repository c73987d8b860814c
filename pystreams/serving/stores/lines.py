"""A line between two processes of one instance: one sends questions, the other sends parts of answers, over a pair of
connected sockets that no other process can reach. Several questions may be in progress at the same time.

A message is its length in four bytes, followed by MessagePack.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from cachetools import LRUCache

from pystreams.clock import Deadline, SystemClock
from pystreams.errors import StreamsError
from pystreams.serving.query_errors import as_query_error, query_error
from pystreams.serving.stores.asking import LastingAnswerer
from pystreams.serving.stores.ended_answers import EndedAnswers
from pystreams.serving.stores.kept_answers import ANSWERS_MAX, QuestionKey, key_of
from pystreams.serving.stores.parts import StoreInfo, StorePart
from pystreams.serving.stores.questions import Question
from pystreams.serving.turns import QuickTurns

log = logging.getLogger(__name__)

_LENGTH_BYTES: Final = 4

#: The number of bytes that are read at once before other tasks of the event loop have their turn.
_READ_BYTES: Final = 16_384

#: The number of questions that are answered before other tasks of the event loop have their turn.
_QUESTIONS_PER_TURN: Final = 32

#: An answer is given again until this time after its question. A process that stands still does not notice that others
#: have its tasks, and the group gives them to others after the session timeout, which is several seconds on Kafka.
LASTS_MS: Final = 1_000.0

#: The maximum number of questions that are asked again together.
_REPEATED_MAX: Final = 100


class _Asked(msgspec.Struct, frozen=True, tag=True):
    """A question; None: the list of stores is requested."""

    number: int
    question: Question | None


class _Answered(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """``ended``: the part is the whole answer as long as the count of ended answers is this one; None: it may change at
    any time."""

    number: int
    part: StorePart
    ended: int | None = None


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
    fields: dict[str, Any]


_Reply: TypeAlias = _Answered | _Listed | _Refused

_encode = msgspec.msgpack.Encoder().encode
_decode_asked = msgspec.msgpack.Decoder(_Asked).decode
_decode_reply = msgspec.msgpack.Decoder(_Reply).decode


class _Kept(NamedTuple):
    """An answer, and the count of ended answers with which it holds, until a deadline."""

    part: StorePart
    ended: int
    until: Deadline


class Line:
    """The end that asks. Implements ``Answerer``. Used in one event loop, except that any thread may call ``hang_up``.
    Its methods raise ``ConnectionError`` when the other process is gone.

    Answers as of the last commit are kept for a second, or until the other process says that they hold no longer. A
    question counts as repeated once a kept answer to it has been returned. When a repeated question has to be sent
    again, the line sends all other repeated questions in the same write, so that one wait is enough for all."""

    def __init__(self, end: socket.socket, ended: EndedAnswers) -> None:
        self._end = end
        self._ended = ended
        self._clock = SystemClock()
        self._kept: LRUCache[QuestionKey, _Kept] = LRUCache(ANSWERS_MAX)
        #: The questions that were repeated last.
        self._repeated: LRUCache[QuestionKey, Question] = LRUCache(_REPEATED_MAX)
        #: The questions that are being asked again.
        self._renewing: dict[QuestionKey, asyncio.Task[None]] = {}
        self._numbers = count()
        #: By number of a question; None: the other process is gone.
        self._waiting: dict[int, asyncio.Future[_Reply | None]] = {}
        self._questions: _Outbox | None = None
        self._opening: asyncio.Task[None] | None = None
        self._gone = False

    async def stores(self) -> list[StoreInfo]:
        reply = await self._reply(None)
        assert isinstance(reply, _Listed)
        return reply.stores

    def ask_at_once(self, question: Question) -> StorePart | None:
        asked = key_of(question)
        if asked is None or (kept := self._held(asked)) is None:
            return None
        self._repeated[asked] = question
        return kept.part

    async def ask(self, question: Question) -> StorePart:
        asked = key_of(question)
        if asked is None:
            return await self._ask(question, None)
        renewing = self._renewing.get(asked)
        if renewing is not None:
            await asyncio.wait([renewing])
            # A commit may have ended the new answer already.
            part = self.ask_at_once(question)
            if part is not None:
                return part
        if asked in self._repeated:
            self._renew_others(asked)
        return await self._ask(question, asked)

    def _held(self, asked: QuestionKey) -> _Kept | None:
        """The answer that may be given again."""
        kept = None if self._gone else self._kept.get(asked)
        if kept is None or kept.ended != self._ended.count() or kept.until.expired():
            return None
        return kept

    def _renew_others(self, asked: QuestionKey) -> None:
        """Ask the other repeated questions again, except those whose answers still hold. They are sent after the
        question that the caller sends now, in the same write."""
        del self._repeated[asked]
        ended = [(other, question) for other, question in self._repeated.items() if self._held(other) is None]
        for other, question in ended:
            del self._repeated[other]
            if other not in self._renewing:
                self._renewing[other] = asyncio.create_task(self._renew(question, other))
                self._renewing[other].add_done_callback(partial(self._renewed, other))

    async def _renew(self, question: Question, asked: QuestionKey) -> None:
        try:
            # Later the answer would not be kept.
            async with asyncio.timeout(LASTS_MS / 1000):
                await self._ask(question, asked)
        except (StreamsError, OSError) as error:
            log.debug("a question could not be asked again: %s", error)

    def _renewed(self, asked: QuestionKey, _: asyncio.Task[None]) -> None:
        del self._renewing[asked]

    async def _ask(self, question: Question, asked: QuestionKey | None) -> StorePart:
        """The part, which is kept under the key ``asked``; None: it must not be kept."""
        until = Deadline(self._clock, LASTS_MS)
        reply = await self._reply(question)
        assert isinstance(reply, _Answered)
        if reply.ended is not None and asked is not None:
            self._kept[asked] = _Kept(reply.part, reply.ended, until)
        return reply.part

    def hang_up(self) -> None:
        """Close the line, because the other process has ended."""
        self._gone = True
        try:
            # Tasks that wait for a reply see the end of the line.
            self._end.shutdown(socket.SHUT_RDWR)
        except OSError as error:
            log.debug("the line had ended before: %s", error)
        if self._opening is None:
            self._end.close()

    async def _reply(self, question: Question | None) -> _Reply:
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        # Shielded, so that a cancelled request does not cancel the opening, for which others wait.
        await asyncio.shield(self._opening)
        if self._gone or self._questions is None:
            raise ConnectionError("the process has ended")
        number = next(self._numbers)
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._questions.add(_framed(_Asked(number, question)))
            await self._questions.sent()
            reply: _Reply | None = await waiting
        finally:
            del self._waiting[number]
        if reply is None:
            raise ConnectionError("the process has ended")
        if isinstance(reply, _Refused):
            raise query_error(
                reply.code,
                reply.what,
                where=reply.where,
                why=reply.why,
                hint=reply.hint,
                fields=reply.fields,
            )
        return reply

    async def _open(self) -> None:
        if self._gone:
            return
        reader, writer = await asyncio.open_connection(sock=self._end)
        self._questions = _Outbox(writer)
        self._reading = asyncio.create_task(self._read(reader, writer))

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inbox = _Inbox(reader)
        try:
            while True:
                for reply in map(_decode_reply, await inbox.take()):
                    waiting = self._waiting.get(reply.number)
                    # The request may have been cancelled meanwhile.
                    if waiting is not None and not waiting.done():
                        waiting.set_result(reply)
        except (EOFError, OSError):
            self._gone = True
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_result(None)
        finally:
            writer.close()


class LineServer:
    """The end that answers, in its own thread, until the line ends."""

    def __init__(self, end: socket.socket, answerer: LastingAnswerer, ended: EndedAnswers) -> None:
        self._end = end
        self._answerer = answerer
        self._ended = ended
        self._tasks: set[asyncio.Task[None]] = set()
        threading.Thread(target=lambda: asyncio.run(self._serve()), name="queries", daemon=True).start()

    async def _serve(self) -> None:
        reader, writer = await asyncio.open_connection(sock=self._end)
        questions, replies, turns = _Inbox(reader), _Outbox(writer), QuickTurns()
        try:
            while True:
                messages = await questions.take()
                turns.asked()
                for begin in range(0, len(messages), _QUESTIONS_PER_TURN):
                    some = messages[begin : begin + _QUESTIONS_PER_TURN]
                    for asked in map(_decode_asked, some):
                        self._begin_answer(asked, replies)
                    await replies.sent()
                    if len(some) == _QUESTIONS_PER_TURN:
                        await asyncio.sleep(0)
        except (EOFError, OSError) as ended:
            log.debug("nobody asks any more: %s", ended)
        finally:
            turns.end()
            writer.close()

    def _begin_answer(self, asked: _Asked, replies: _Outbox) -> None:
        reply = self._reply_at_once(asked)
        if reply is not None:
            replies.add(reply)
            return
        task = asyncio.create_task(self._answer(asked, replies))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _reply_at_once(self, asked: _Asked) -> bytes | None:
        """The reply if it need not wait; otherwise None."""
        question = asked.question
        if question is None:
            return None
        try:
            part = self._answerer.ask_at_once(question)
            if part is None:
                return None
            # Take the count before ``lasts_until``: if a commit ends the answer after that, the count is another one.
            ended = self._ended.count()
            lasts = self._answerer.lasts_until(question, part, self._ended.add)
            return _framed(_Answered(asked.number, part, ended if lasts else None))
        except Exception as error:  # noqa: BLE001 - whoever asks gets it
            return _refused(asked, error)

    async def _answer(self, asked: _Asked, replies: _Outbox) -> None:
        try:
            if asked.question is None:
                reply = _framed(_Listed(asked.number, await self._answerer.stores()))
            else:
                reply = _framed(_Answered(asked.number, await self._answerer.ask(asked.question)))
        except Exception as error:  # noqa: BLE001 - whoever asks gets it
            reply = _refused(asked, error)
        replies.add(reply)
        await replies.sent()


class _Inbox:
    """Incoming messages. All messages that have arrived are taken at once, because one call of a coroutine takes longer
    than the answers to some questions."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._data = bytearray()

    async def take(self) -> list[bytes]:
        """At least one message. Raises ``EOFError`` at the end of the line."""
        while True:
            data = await self._reader.read(_READ_BYTES)
            if not data:
                raise EOFError("the line has ended")
            self._data += data
            if messages := self._split():
                if len(data) == _READ_BYTES:
                    # If more data has arrived, the next read would not give other tasks their turn, so do it here.
                    await asyncio.sleep(0)
                return messages

    def _split(self) -> list[bytes]:
        """The messages that are complete."""
        data, begin = self._data, 0
        messages: list[bytes] = []
        while (body := begin + _LENGTH_BYTES) <= len(data):
            end = body + int.from_bytes(data[begin:body])
            if end > len(data):
                break
            messages.append(bytes(data[body:end]))
            begin = end
        del data[:begin]
        return messages


class _Outbox:
    """Outgoing messages. The messages of one round of the event loop are written in one call, because after each system
    call this thread has to wait for the interpreter."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._messages: list[bytes] = []

    def add(self, message: bytes) -> None:
        """Write a message in this round."""
        if not self._messages:
            asyncio.get_running_loop().call_soon(self._write)
        self._messages.append(message)

    async def sent(self) -> None:
        """Wait until the other process has read enough of the written messages."""
        await self._writer.drain()

    def _write(self) -> None:
        messages, self._messages = self._messages, []
        self._writer.write(b"".join(messages))


def _refused(asked: _Asked, error: Exception) -> bytes:
    """The reply to a question that cannot be answered, so that the other end does not wait in vain."""
    if not isinstance(error, StreamsError):
        log.error("a query failed", exc_info=error)
    refused = as_query_error(error)
    what, where, why, hint = map(_writable, (refused.what, refused.place, refused.why, refused.hint))
    return _framed(_Refused(asked.number, refused.code, what, where, why, hint, dict(refused.fields)))


def _writable(text: str) -> str:
    """The text without characters that UTF-8 does not have, such as half a surrogate pair."""
    return text.encode(errors="replace").decode()


def _framed(message: _Asked | _Reply) -> bytes:
    data = _encode(message)
    return len(data).to_bytes(_LENGTH_BYTES) + data
