"""The state of an application as server-sent events: one a second, with the same bytes for all readers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

import msgspec
from starlette.concurrency import run_in_threadpool

from pystreams.clock import Clock, Deadline
from pystreams.serving.live.look import Look, Shown
from pystreams.serving.live.other_instances import OtherInstances

EVENTS_PATH: Final = "/events"

#: The largest number of open streams. Each takes one of the server's connections.
STREAMS_MAX: Final = 8

#: A stream ends after this time, and browsers open another one. So a reader that has gone without closing its
#: connection does not keep its place.
STREAM_S: Final = 300.0

#: The same time under the user's own web server, which at its end waits for the end of all streams without announcing
#: it.
MOUNTED_STREAM_S: Final = 5.0

#: The interval between two events; each is a new look at the application.
EVENT_S: Final = 1.0


class States:
    """The state as JSON. Readers at the same time share one look at the application."""

    def __init__(self, shown: Shown, clock: Clock, others: OtherInstances | None = None) -> None:
        """``others``: the other instances; None: they are not asked."""
        self._shown = shown
        self._others = others
        self._clock = clock
        self._lock = threading.Lock()
        self._fresh = Deadline(clock, 0)
        self._own: Look | None = None
        self._own_has_group = False
        #: The look at this instance, the look at all instances, and the latter as JSON.
        self._last: tuple[Look, Look, bytes] | None = None

    def look(self) -> Look:
        """The state of the application as of a moment ago."""
        return self._latest()[1]

    def state(self) -> bytes:
        """The state of the application as JSON."""
        return self._latest()[2]

    def alone(self) -> bytes:
        """The state of this instance alone, for another instance that shows all of them and asks the log itself."""
        with self._lock:
            return msgspec.json.encode(self._own_look(with_group=False))

    def _latest(self) -> tuple[Look, Look, bytes]:
        with self._lock:
            own = self._own_look(with_group=True)
            if self._last is None or self._last[0] is not own:
                others = [] if self._others is None else self._others.clients(own)
                look = msgspec.structs.replace(own, clients=[*own.clients, *others])
                self._last = own, look, msgspec.json.encode(look)
            return self._last

    def _own_look(self, *, with_group: bool) -> Look:
        """A look at this instance. The caller must hold the lock."""
        if self._own is None or self._fresh.expired() or (with_group and not self._own_has_group):
            self._own, self._own_has_group = self._shown.look(with_group=with_group), with_group
            self._fresh = Deadline(self._clock, 1000 * EVENT_S / 2)
        return self._own


class EventStreams:
    """The open streams of events."""

    def __init__(self, states: States, clock: Clock, stream_s: float = STREAM_S) -> None:
        """``stream_s``: a stream ends after this time."""
        self._states = states
        self._clock = clock
        self._stream_ms = 1000 * stream_s
        self._open = 0
        self._ending = asyncio.Event()
        #: The server's event loop; None before the first stream.
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_full(self) -> bool:
        return self._open >= STREAMS_MAX

    def end(self) -> None:
        """End all streams when the server stops. Any thread may call this."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ending.set)

    async def events(self) -> AsyncIterator[bytes]:
        """Events until the stream's time is over or the server ends. None if too many other streams are open."""
        if self.is_full:
            yield b"retry: 10000\n\n"
            return
        self._open += 1
        self._loop = asyncio.get_running_loop()
        try:
            life = Deadline(self._clock, self._stream_ms)
            # The time that the browser waits before it opens the next stream.
            yield b"retry: 1000\n\n"
            while not (self._ending.is_set() or life.expired()):
                yield b"data: " + await run_in_threadpool(self._states.state) + b"\n\n"
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ending.wait(), EVENT_S)
        finally:
            self._open -= 1
