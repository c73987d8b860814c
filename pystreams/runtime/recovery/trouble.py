"""Measures how long a thread has been failing, to decide when it gives up; also decides when its trouble is over."""

from __future__ import annotations

from collections.abc import Callable

from pystreams.clock import Clock
from pystreams.errors import StreamsError


class Trouble:
    """Failures of one thread that may go away by themselves, from the first one to the proof that they are over.

    If a failure has undone no work, a round that succeeds is the proof, because it has tried the failed call again. If
    work waits for its commit, or was undone and is repeated, such a round proves nothing: the same failure may come
    back some rounds later. Then only a commit is the proof, or that everything has been read and committed. The time
    of restoring after a failure does not count as trouble.
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
        """Note a failure. Raises ``error``, with the duration added, if the trouble has lasted longer than the
        timeout."""
        if not self.failed(until_commit=until_commit):
            return
        lasted_ms = 0.0 if self._since_ms is None else self._seen_ms - self._since_ms
        error.extend(
            why=f"trouble has lasted for {lasted_ms / 1000:.1f} s, and task_timeout_ms is {self._timeout_ms / 1000:g} s"
        )
        raise error

    def over(self) -> None:
        """There is proof that the trouble is over, such as a commit."""
        self._since_ms = None
        self._until_commit = False
