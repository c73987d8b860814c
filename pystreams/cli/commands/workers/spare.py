"""A process that has imported everything, and waits until a static worker dies.

The group does not give the tasks of a static member to others, so they wait for the worker's next process. The imports
would take more than a second of this time. The process does not import the program, which may do anything then.
"""

from __future__ import annotations

from typing import Final

from pystreams.cli.commands.workers.process import WorkerProcess
from pystreams.clock import Clock

#: How long after the last one was taken, or died, the next process is started, because its imports would hold up a
#: worker that starts at the same time.
START_AFTER_MS: Final = 3_000


class Spare:
    """The process, while there is one. Used by the supervisor's thread only."""

    def __init__(self, application: str, clock: Clock) -> None:
        self._application = application
        self._clock = clock
        self._process: WorkerProcess | None = None
        self._due_ms = clock.monotonic_ms() + START_AFTER_MS

    def tick(self) -> None:
        """Start the process if one is due. Called several times a second while a worker is static."""
        if self._process is not None and self._process.exit_code() is not None:
            self.close()
        if self._process is None and self._clock.monotonic_ms() >= self._due_ms:
            self._due_ms = self._clock.monotonic_ms() + START_AFTER_MS
            try:
                self._process = WorkerProcess(self._application)
            except OSError:
                # The system has no room for another process. Workers start without it, only later.
                return

    def take(self) -> WorkerProcess | None:
        """The process, which is the caller's from now on; None: there is none."""
        process, self._process = self._process, None
        if process is None:
            return None
        self._due_ms = self._clock.monotonic_ms() + START_AFTER_MS
        if process.exit_code() is not None:
            process.discard()
            return None
        return process

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.discard()
            self._process = None
            self._due_ms = self._clock.monotonic_ms() + START_AFTER_MS
