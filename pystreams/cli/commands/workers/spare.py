"""A process that has imported everything, and waits until a static worker dies.

The group does not give the tasks of a static member to others, so they wait for the worker's next process. The imports
would take more than a second of this time. The process does not import the program, which may do anything then.
"""

from __future__ import annotations

from contextlib import suppress
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
        self._wait()

    def tick(self) -> None:
        """Start the process if one is due. Called several times a second while a worker is static."""
        self._drop_if_dead()
        if self._process is None and self._clock.monotonic_ms() >= self._due_ms:
            self._wait()
            # If the system has no room for another process, workers start without it, only later.
            with suppress(OSError):
                self._process = WorkerProcess(self._application)

    def take(self) -> WorkerProcess | None:
        """The process, which is the caller's from now on; None: there is none."""
        self._drop_if_dead()
        process, self._process = self._process, None
        if process is not None:
            self._wait()
        return process

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.discard()
            self._process = None
            self._wait()

    def _drop_if_dead(self) -> None:
        if self._process is not None and self._process.exit_code() is not None:
            self.close()

    def _wait(self) -> None:
        """The next process is due a while from now."""
        self._due_ms = self._clock.monotonic_ms() + START_AFTER_MS
