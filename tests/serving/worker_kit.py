"""A worker as its supervisor's line sees it, and questions over such a line."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable

from pystreams.serving.stores.asking import LastingAnswerer
from pystreams.serving.stores.ended_answers import EndedAnswers, shared_memory
from pystreams.serving.stores.lines import Line, LineServer
from pystreams.serving.stores.parts import Entry, StoreInfo, StorePart
from pystreams.serving.stores.questions import EntryPlace, Question
from tests.serving.asyncio_kit import run_apart


class Worker:
    """It has the only partition, or not; and answers at once, or not."""

    def __init__(self, error: Exception | None = None, *, has: bool = True, at_once: bool = False) -> None:
        self.error, self.has, self._at_once = error, has, at_once

    async def stores(self) -> list[StoreInfo]:
        return []

    def ask_at_once(self, question: Question) -> StorePart | None:
        return self._answer(question) if self._at_once else None

    def lasts_until(self, question: Question, part: StorePart, ended: Callable[[], None]) -> bool:
        return False

    async def ask(self, question: Question) -> StorePart:
        assert not self._at_once
        return self._answer(question)

    def _answer(self, question: Question) -> StorePart:
        if self.error is not None:
            raise self.error
        if self.has:
            assert question.key is not None
            return StorePart(
                [Entry(EntryPlace(question.key.encode()), b"1")],
                read=[0],
                partitions=1,
                partition=0,
                single=True,
            )
        return StorePart(partitions=1, partition=0, single=True)


def line_to(answerer: LastingAnswerer) -> Line:
    """A line to the worker; both ends have mapped the same memory."""
    ours, theirs = socket.socketpair()
    descriptor = shared_memory()
    try:
        LineServer(theirs, answerer, EndedAnswers(descriptor))
        return Line(ours, EndedAnswers(descriptor))
    finally:
        os.close(descriptor)


def asked_over_a_line(answerer: LastingAnswerer, ask: Callable[[Line], Awaitable[object]]) -> object:
    """What ``ask`` gets over a line to the worker."""

    async def over_a_line() -> object:
        line = line_to(answerer)
        try:
            return await asyncio.wait_for(ask(line), 60)
        finally:
            line.hang_up()

    return run_apart(over_a_line())
