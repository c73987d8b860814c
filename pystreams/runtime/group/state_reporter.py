"""What the threads of a client share of what they send the group, and hear from it: once for each client is enough, and
keeps small what the group has to keep."""

from __future__ import annotations

import threading

from pystreams.runtime.group.membership_data import Whereabouts


class StateReporter:
    """The first thread that asks sends what all of them know, until it ends. Threads may share it."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._thread = ""
        #: What the group has told last. It stays when the thread that heard it has ended.
        self.whereabouts = Whereabouts()

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
