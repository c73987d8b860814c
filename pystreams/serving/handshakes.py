"""TLS handshakes with a time limit. A connection counts from the moment at which it is accepted. asyncio shows a
connection only after its handshake, and uvicorn does not limit the time of a handshake."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, cast
from weakref import WeakSet, WeakValueDictionary

import uvicorn

#: A peer has this time for its handshake.
HANDSHAKE_S: Final = 10.0


class Listener(socket.socket):
    """A listening socket that knows its open connections. If there are too many, a new connection replaces the one
    whose handshake has been going on for the longest time."""

    def __init__(self, listening: socket.socket, open_max: int) -> None:
        """Takes the place of ``listening``. If there are more than ``open_max`` connections, those in their handshakes
        end."""
        super().__init__(listening.family, listening.type, listening.proto, listening.detach())
        self._open_max = open_max
        self._open: WeakSet[_Accepted] = WeakSet()
        #: The connections in their handshakes, by descriptor, in the order in which they were accepted.
        self._in_handshake: WeakValueDictionary[int, _Accepted] = WeakValueDictionary()

    def accept(self) -> tuple[socket.socket, Any]:
        oldest = next(iter(self._in_handshake.values()), None)
        if len(self._open) >= self._open_max and oldest is not None:
            # The peer may have reset the connection already.
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)
            # The event loop takes this as the end of the waiting connections. It then ends the oldest one, and accepts
            # the new one in its next round.
            raise BlockingIOError
        connection, address = super().accept()
        accepted = _Accepted(connection, self)
        self._open.add(accepted)
        self._in_handshake[accepted.fileno()] = accepted
        return accepted, address

    def handshake_ended(self, descriptor: int) -> None:
        """The handshake of this connection has succeeded."""
        self._in_handshake.pop(descriptor, None)

    def closes(self, accepted: _Accepted) -> None:
        """The connection is being closed, but still has its descriptor."""
        self._open.discard(accepted)
        self._in_handshake.pop(accepted.fileno(), None)


class _Accepted(socket.socket):
    """An accepted connection. When it is closed, its listener forgets it."""

    def __init__(self, connection: socket.socket, listener: Listener) -> None:
        """Takes the place of ``connection``."""
        super().__init__(connection.family, connection.type, connection.proto, connection.detach())
        self._listener = listener

    def close(self) -> None:
        self._listener.closes(self)
        super().close()


class Server(uvicorn.Server):
    """Listens on given sockets, and ends handshakes that take too long. Has no lifespan."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        config = self.config
        protocol_class = cast("Callable[..., asyncio.Protocol]", config.http_protocol_class)
        protocol = partial(protocol_class, config=config, server_state=self.server_state, app_state={})
        self.servers = [
            await asyncio.get_running_loop().create_server(
                protocol,
                sock=listening,
                ssl=config.ssl,
                ssl_handshake_timeout=None if config.ssl is None else HANDSHAKE_S,
                backlog=config.backlog,
            )
            for listening in sockets or ()
        ]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        # uvicorn leaves open what has not ended in time: a connection whose peer does not read its answer, or one that
        # was accepted while the others were being closed. Tasks that it has cancelled may still write an answer.
        await asyncio.sleep(0)
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()
        # In its next round, the loop closes the sockets of connections that were aborted.
        await asyncio.sleep(0)
