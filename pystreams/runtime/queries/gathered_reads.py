"""Questions of an event loop to stream threads. The questions that come while a thread is at work are sent in one call,
and their answers come back in one, because a switch between threads takes longer than a read of a key."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeAlias, TypeVar

from pystreams.runtime.tasks.task_manager import TaskManager
from pystreams.runtime.threads.stream_thread import StreamThread

log = logging.getLogger(__name__)

R = TypeVar("R")

#: A question, and the future that waits for its answer.
_Asked: TypeAlias = tuple[Callable[[TaskManager], Any], "asyncio.Future[Any]"]


class GatheredReads:
    """The questions of one event loop."""

    def __init__(self) -> None:
        self._waiting: dict[StreamThread, list[_Asked]] = {}
        #: Guards the dictionary and its lists: the loop fills them, and stream threads take them.
        self._lock = threading.Lock()

    async def ask(self, thread: StreamThread, question: Callable[[TaskManager], R]) -> R:
        """The answer of a thread, which it gives between two steps of its work. Raises the errors of the question, and
        ``StateError`` if the thread ends before."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[R] = loop.create_future()
        with self._lock:
            is_first = thread not in self._waiting
            self._waiting.setdefault(thread, []).append((question, answer))
        if is_first:
            call = thread.call(lambda tasks: self._answers(thread, tasks))
            call.add_done_callback(lambda done: self._bring(loop, thread, done))
        return await answer

    def _answers(self, thread: StreamThread, tasks: TaskManager) -> list[tuple[asyncio.Future[Any], Any]]:
        """Called by the stream thread: all answers, or the errors instead of them."""
        found: list[tuple[asyncio.Future[Any], Any]] = []
        for question, answer in self._taken(thread):
            try:
                # A cancelled question is not asked, because nobody waits for its answer.
                found.append((answer, None if answer.cancelled() else question(tasks)))
            except Exception as error:  # noqa: BLE001 - belongs to the one who asked
                found.append((answer, error))
        return found

    def _bring(self, loop: asyncio.AbstractEventLoop, thread: StreamThread, done: Future[Any]) -> None:
        """Give the answers to the event loop. Called by the stream thread, or by the thread that finds that it has
        ended."""
        error = done.exception()
        found = done.result() if error is None else [(answer, error) for _, answer in self._taken(thread)]
        try:
            loop.call_soon_threadsafe(_give, found)
        except RuntimeError as ended:
            log.debug("nobody waits for the answers any more: %s", ended)

    def _taken(self, thread: StreamThread) -> list[_Asked]:
        with self._lock:
            return self._waiting.pop(thread, [])


def _give(found: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for answer, result in found:
        if answer.done():
            continue
        if isinstance(result, Exception):
            answer.set_exception(result)
        else:
            answer.set_result(result)
