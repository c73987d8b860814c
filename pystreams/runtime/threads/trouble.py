"""How long a thread may fail before it gives up, and what proves that its trouble is over."""

from __future__ import annotations

from collections.abc import Callable

from pystreams.clock import Clock
from pystreams.errors import StreamsError


class Trouble:
    """Failures of one thread that may go away by themselves, from the first one to the proof that they are over.

    A round that succeeds is such a proof if nothing was lost with the failure: what failed has been tried again. Where
    work waits for its commit, or was forgotten and is being done again, it proves nothing: the same may fail once more
    some rounds later. Then it takes a commit, or that everything has been read and committed. Restoring after a failure
    is no trouble, however long it takes.
    """

    def __init__(self, clock: Clock, timeout_ms: float) -> None:
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._since_ms: float | None = None
        self._until_commit = False
        self._seen_ms = 0.0

    @property
    def lasts(self) -> bool:
        return self._since_ms is not None

    def failed(self, *, until_commit: bool) -> bool:
        """Note a failure; True if it has lasted for longer than the timeout."""
        now_ms = self._clock.monotonic_ms()
        if self._since_ms is None:
            self._since_ms = now_ms
        self._seen_ms = now_ms
        self._until_commit |= until_commit
        return now_ms - self._since_ms >= self._timeout_ms

    def succeeded(self, *, restoring: bool, caught_up: Callable[[], bool]) -> None:
        """Note a round without a failure."""
        if self._since_ms is None:
            return
        now_ms = self._clock.monotonic_ms()
        if restoring:
            self._since_ms += now_ms - self._seen_ms
        elif not self._until_commit or caught_up():
            self.over()
        self._seen_ms = now_ms

    def note(self, error: StreamsError, *, until_commit: bool) -> None:
        """Note a failure. Raises it if trouble has lasted for longer than the timeout; then it says so."""
        if not self.failed(until_commit=until_commit):
            return
        lasted_ms = 0.0 if self._since_ms is None else self._seen_ms - self._since_ms
        error.extend(
            why=f"trouble has lasted for {lasted_ms / 1000:.1f} s, and task_timeout_ms is {self._timeout_ms / 1000:g} s"
        )
        raise error

    def over(self) -> None:
        """There is proof: a commit."""
        self._since_ms = None
        self._until_commit = False
