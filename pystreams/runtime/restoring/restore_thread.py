"""The thread that restores the stores of a stream thread's tasks.

A restore that is slow or gets no answer stops neither the running tasks nor the membership in the group. If something
cannot be read now, this thread tries again; other errors go to the stream thread, which gets them when it drains the
restorer.

Source: org.apache.kafka.streams.processor.internals.DefaultStateUpdater.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from pystreams.clock import Clock, thread_cpu_ms
from pystreams.errors import RestoreError, StreamsError
from pystreams.runtime.recovery.error_answers import ErrorAnswers
from pystreams.runtime.recovery.trouble import Trouble
from pystreams.runtime.restoring.load import Load
from pystreams.runtime.restoring.restorer import Restorer

log = logging.getLogger(__name__)

_IDLE_S: Final = 1.0
#: One step computes for about this time.
_BUDGET_MS: Final = 20.0
#: One step waits for records for this time at most.
_WAIT_MS: Final = 100.0
_RETRY_PAUSE_MS: Final = 500.0
#: How long to wait for the end of the thread if the broker does not answer. It has no tasks by then.
_END_TIMEOUT_S: Final = 5.0


class RestoreThread:
    """Runs the steps of a restorer until it is closed."""

    def __init__(
        self,
        name: str,
        restorer: Restorer,
        load: Load,
        clock: Clock,
        patience_ms: float,
        ended: Callable[[], None],
    ) -> None:
        """Requests to a broker that does not answer are repeated for up to ``patience_ms``. The thread calls ``ended``
        at its end, to close the objects that only this thread has used."""
        self.name = name
        self._restorer = restorer
        self._load = load
        self._clock = clock
        self._patience_ms = patience_ms
        self._ended = ended
        self._trouble = Trouble(clock, patience_ms)
        self._answers = ErrorAnswers({"retry": self._try_again, "redo": self._try_again})
        #: When an error that concerns only standbys was last logged; None: there is none.
        self._standbys_noted_ms: float | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End the thread. It must have no task any more."""
        self._stop.set()
        self._restorer.close()
        self._thread.join(_END_TIMEOUT_S)
        if self._thread.is_alive():
            log.warning(
                "[%s] still waits for the broker; the client ends without waiting for this thread", self.name
            )

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                if self._restorer.wait_for_work(_IDLE_S):
                    self._load.restores(self.name, at_work=True)
                    pause_ms = self.go_step(_WAIT_MS)
                    self._stop.wait(pause_ms / 1000)
                else:
                    self._load.restores(self.name, at_work=False)
        except BaseException as error:  # noqa: BLE001 - the stream thread is the one to raise it
            self._restorer.fail(error)
        finally:
            self._load.restores(self.name, at_work=False)
            self._ended()

    def go_step(self, wait_ms: float) -> float:
        """Run one step; returns how long to pause after it (ms). Raises an error that cannot be solved by trying again,
        but only if a task waits for its stores. If there are only standbys, they are tried again for ever, because
        everything else works without them."""
        started_ms = thread_cpu_ms()
        try:
            self._restorer.step(_BUDGET_MS, wait_ms)
        except StreamsError as error:
            if self._restorer.restores:
                self._answers.to(error)(error)
            else:
                self._note_of_standbys(error)
            return _RETRY_PAUSE_MS
        self._trouble.over()
        if self._restorer.commits_failure is None:
            self._standbys_noted_ms = None
        else:
            self._note_of_standbys(self._restorer.commits_failure)
        return self._load.pause_ms(thread_cpu_ms() - started_ms)

    def _note_of_standbys(self, error: StreamsError) -> None:
        """Log an error that concerns only standbys, but not too often."""
        now_ms = self._clock.monotonic_ms()
        if self._standbys_noted_ms is None or now_ms - self._standbys_noted_ms >= self._patience_ms:
            self._standbys_noted_ms = now_ms
            log.warning("[%s] standbys do not follow their tasks now: %s", self.name, error)

    def _try_again(self, error: StreamsError) -> None:
        """Log an error that may go away by itself: the next step is the next try. Raises ``RestoreError`` if it has
        lasted for too long."""
        if not self._trouble.lasts:
            log.warning("[%s] stores cannot be restored now: %s", self.name, error)
        if self._trouble.failed(until_commit=False):
            tasks = ", ".join(str(task_id) for task_id in self._restorer.task_ids())
            raise RestoreError(
                "the stores of tasks could not be restored",
                where=f"tasks {tasks}; {error.where}" if error.where else f"tasks {tasks}",
                why=f"{error.what}, for {self._patience_ms / 1000:g} s now (task_timeout_ms)",
                hint=error.hint,
            ) from error
