"""Functions that a stream thread calls between two steps of its work on behalf of other threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from pystreams.errors import StateError

T = TypeVar("T")
Subject = TypeVar("Subject")


class CallQueue(Generic[Subject]):
    """A queue of functions that need a subject which only one thread may use, such as its tasks. That thread calls
    them with it between two steps of its work."""

    def __init__(self, thread: str) -> None:
        self._thread = thread
        self._queue: SimpleQueue[tuple[Callable[[Subject], Any], Future[Any]]] = SimpleQueue()
        self._closed = False

    @property
    def waiting(self) -> bool:
        return not self._queue.empty()

    def put(self, function: Callable[[Subject], T]) -> Future[T]:
        """Have ``function`` called. The future fails with ``StateError`` if the thread ends before."""
        future: Future[T] = Future()
        self._queue.put((function, future))
        # Checked after the put: ``refuse`` fails the functions that it finds in the queue, this fails a later one.
        if self._closed:
            self.refuse()
        return future

    def answer(self, subject: Subject) -> None:
        """Call the waiting functions. Only the thread that owns the subject may do this."""
        for _ in range(self._queue.qsize()):
            function, future = self._queue.get_nowait()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function(subject))
            except Exception as error:  # noqa: BLE001 - belongs to the one who asked
                future.set_exception(error)

    def refuse(self) -> None:
        """The thread has ended: fail the waiting functions and all later ones."""
        self._closed = True
        while True:
            try:
                _, future = self._queue.get_nowait()
            except Empty:
                return
            if future.set_running_or_notify_cancel():
                future.set_exception(
                    StateError(f"thread {self._thread} has ended", hint="its tasks go to other threads")
                )
