"""Which thread of a client sends the group what all of them know: one is enough, and keeps the subscriptions small."""

from __future__ import annotations

import threading


class StateReporter:
    """The first thread that asks sends it, until it ends. Threads may share it."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._thread = ""

    def reports(self, thread: str) -> bool:
        """Whether this thread is the one."""
        with self._mutex:
            self._thread = self._thread or thread
            return self._thread == thread

    def leave(self, thread: str) -> None:
        """The thread has ended: another one may be the one."""
        with self._mutex:
            if self._thread == thread:
                self._thread = ""
