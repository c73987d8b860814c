"""A connection of the server. It is ended if its peer is silent for too long, or earlier if there are too many
connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, cast

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from pystreams.serving.guards import Guards
from pystreams.serving.handshakes import Listener
from pystreams.serving.turns import QuickTurns

#: Beyond this number of connections, a new one takes the place of the one whose peer has been silent for longest.
#: Connections with a request at work keep their places ...
CONNECTIONS_MAX: Final = 256

#: ... and beyond this number, all of them at work, a new one is ended at once: each takes a descriptor of the process.
CONNECTIONS_HELD_MAX: Final = CONNECTIONS_MAX + 64

#: A peer has this time to send a whole request, and the same time to read an answer that is ready.
CONNECTION_S: Final = 10.0

#: The pages for which threads take turns more often, and the statuses of requests that were not refused.
_STORES: Final = b"/stores/"
_ANSWERED: Final = (200, 404)

#: The largest head of a request: the path and all headers.
HEAD_BYTES_MAX: Final = 16_384


class Connection(HttpToolsProtocol):
    """A connection that ends itself if its peer does not send a whole request in time, or does not read. It does not
    end because an answer takes long, or is endless. uvicorn itself limits only the time between requests, and does not
    limit the size of a head."""

    def __init__(self, turns: QuickTurns, listener: Listener | None, *arguments: Any, **named: Any) -> None:
        """``listener``: the socket that has accepted the connection, if it waits for TLS handshakes."""
        super().__init__(*arguments, **named)
        self._turns = turns
        self._listener = listener
        assert isinstance(self.app, Guards), "the server serves the pages of an application"
        self._guards = self.app
        #: The connection ends at this time of the loop's clock; None: the server does not wait for the peer.
        self.ends_at: float | None = None
        #: The timer for that. Requests change only the time. When the timer fires too early, it is set again.
        self._look: asyncio.TimerHandle | None = None
        #: The number of bytes that have come since the last whole head.
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer = transport.get_extra_info("socket")
        if self._listener is not None:
            self._listener.handshake_ended(peer.fileno())
        # asyncio sets TCP_NODELAY only for sockets whose protocol is named. Without it, the body of an answer waits
        # until the client has acknowledged the head, which takes 40 ms. macOS does not set it for a client that has
        # gone.
        with suppress(OSError):
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > CONNECTIONS_MAX:
            silent = _longest_silent(self.connections)
            if silent is not None:
                silent.end()
            elif len(self.connections) > CONNECTIONS_HELD_MAX:
                self.end()
                return
        self._wait_for_peer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_looking()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > HEAD_BYTES_MAX and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")

    def on_headers_complete(self) -> None:
        self._head_bytes = 0
        self.ends_at = None
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Answers a request without a task if the answer need not wait for anything."""
        # If there are further requests, or if the client does not read, a task answers them in turn.
        can_write = not self.pipeline and not self.flow.write_paused
        answer = self._guards.answer_at_once(cast("Scope", cycle.scope)) if can_write else None
        if self.url.startswith(_STORES) and (answer is None or answer.status_code in _ANSWERED):
            self._turns.asked()
        if answer is None:
            if can_write:
                # The guards have already checked this request.
                app = self._guards.admitted
            task = self.loop.create_task(cycle.run_asgi(app))
            task.add_done_callback(self.tasks.discard)
            self.tasks.add(task)
            return
        lines = [STATUS_LINE[answer.status_code]]
        for name, value in answer.raw_headers:
            lines += (name, b": ", value, b"\r\n")
        lines.append(self._guards.name_line or self._guards.find_name())
        if (b"connection", b"close") in answer.raw_headers:
            cycle.keep_alive = False
        elif not cycle.keep_alive:
            lines.append(b"connection: close\r\n")
        lines += (b"\r\n", b"" if cycle.scope["method"] == "HEAD" else bytes(answer.body))
        self.transport.write(b"".join(lines))
        cycle.response_started = cycle.response_complete = True
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def on_response_complete(self) -> None:
        self._wait_for_peer()
        super().on_response_complete()

    def pause_writing(self) -> None:
        self._wait_for_peer()
        super().pause_writing()

    def resume_writing(self) -> None:
        self.ends_at = None
        super().resume_writing()

    def end(self) -> None:
        """End the connection now."""
        self._stop_looking()
        self.transport.abort()

    def _wait_for_peer(self) -> None:
        self.ends_at = self.loop.time() + CONNECTION_S
        if self._look is None:
            self._look = self.loop.call_at(self.ends_at, self._end_if_late)

    def _end_if_late(self) -> None:
        self._look = None
        if self.ends_at is None:
            return
        if self.loop.time() >= self.ends_at:
            self.transport.abort()
        else:
            self._look = self.loop.call_at(self.ends_at, self._end_if_late)

    def _stop_looking(self) -> None:
        self.ends_at = None
        if self._look is not None:
            self._look.cancel()
            self._look = None


def _longest_silent(connections: Iterable[Any]) -> Connection | None:
    """The connection whose peer the server has been waiting for for the longest time; None if it waits for none."""
    waiting = [(one.ends_at, one) for one in connections if one.ends_at is not None]
    return min(waiting, key=lambda waits: waits[0])[1] if waiting else None
