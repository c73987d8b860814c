"""One connection of the server, which takes no place for ever: it is ended when its peer does not go on in time."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: So many connections are served at once. Beyond that a request gets 503, so that a probe is answered at all ...
CONNECTIONS_MAX: Final = 256

#: ... and connections beyond so many are ended at once: each takes a descriptor of the process.
CONNECTIONS_HELD_MAX: Final = CONNECTIONS_MAX + 64

#: A peer has this time for a whole request, and as long to take what is ready for it.
CONNECTION_S: Final = 10.0

#: The largest head of a request: the path and all headers.
HEAD_BYTES_MAX: Final = 16_384


class Connection(H11Protocol):
    """Ends itself when its peer does not send a whole request in time, or does not read. An answer that takes long, or
    never ends, is no reason. uvicorn has a limit for the time between requests alone."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS_HELD_MAX:
            transport.abort()
            return
        self._wait_for_peer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._go_on()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        if self.conn.their_state is not h11.IDLE:
            self._go_on()

    def on_response_complete(self) -> None:
        self._wait_for_peer()
        super().on_response_complete()

    def pause_writing(self) -> None:
        self._wait_for_peer()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._go_on()
        super().resume_writing()

    def _wait_for_peer(self) -> None:
        self._go_on()
        self._patience = self.loop.call_later(CONNECTION_S, self.transport.abort)

    def _go_on(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
