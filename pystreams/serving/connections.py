"""One connection of the server, which takes no place for ever: it is ended when its peer does not go on in time, and
before that when others need its place."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: Beyond so many connections a new one takes the place of the one whose peer has been silent for longest. Connections
#: with a request at work keep their places ...
CONNECTIONS_MAX: Final = 256

#: ... and beyond so many, all of them at work, a new one is ended at once: each takes a descriptor of the process.
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
        #: Ends the connection when the peer has been waited for for too long; None while it is not waited for.
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS_MAX:
            silent = _longest_silent(self.connections)
            if silent is not None:
                silent.end()
            elif len(self.connections) > CONNECTIONS_HELD_MAX:
                self.end()
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

    @property
    def ends_at(self) -> float | None:
        """When the connection is ended if its peer stays silent, by the clock of the loop; None: nobody waits for its
        peer."""
        return None if self._patience is None else self._patience.when()

    def end(self) -> None:
        """End the connection now."""
        self._go_on()
        self.transport.abort()

    def _wait_for_peer(self) -> None:
        self._go_on()
        self._patience = self.loop.call_later(CONNECTION_S, self.transport.abort)

    def _go_on(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


def _longest_silent(connections: Iterable[Any]) -> Connection | None:
    """The connection whose peer has been waited for for longest; None if none is waited for."""
    waiting = [(one.ends_at, one) for one in connections if one.ends_at is not None]
    return min(waiting, key=lambda waits: waits[0])[1] if waiting else None
