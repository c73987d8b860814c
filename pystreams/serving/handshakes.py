"""TLS handshakes: a peer has a time for its own, and a connection counts from the moment when it is accepted. asyncio
shows a connection only after its handshake, and uvicorn sets no time for it."""

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
    """A socket that listens, and knows its connections that are open. Where there are too many, a new one takes the
    place of the one that has been at its handshake for longest."""

    def __init__(self, listening: socket.socket, open_max: int) -> None:
        """Takes the place of ``listening``. Of more than ``open_max`` connections, those at their handshakes end."""
        super().__init__(listening.family, listening.type, listening.proto, listening.detach())
        self._open_max = open_max
        self._open: WeakSet[_Accepted] = WeakSet()
        #: Those whose handshake has not ended, by descriptor, in the order in which they came.
        self._in_handshake: WeakValueDictionary[int, _Accepted] = WeakValueDictionary()

    def accept(self) -> tuple[socket.socket, Any]:
        oldest = next(iter(self._in_handshake.values()), None)
        if len(self._open) >= self._open_max and oldest is not None:
            # The peer may have reset the connection already.
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)
            # The event loop takes this for the end of those that wait, ends the oldest, and comes back.
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
        """The connection is being closed, and has its descriptor still."""
        self._open.discard(accepted)
        self._in_handshake.pop(accepted.fileno(), None)


class _Accepted(socket.socket):
    """A connection. When it is closed, its listener forgets it."""

    def __init__(self, connection: socket.socket, listener: Listener) -> None:
        """Takes the place of ``connection``."""
        super().__init__(connection.family, connection.type, connection.proto, connection.detach())
        self._listener = listener

    def close(self) -> None:
        self._listener.closes(self)
        super().close()


class Server(uvicorn.Server):
    """Listens on sockets that it is given, and ends handshakes that take too long. Has no lifespan."""

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
