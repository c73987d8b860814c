"""The HTTP server: a thread beside the application, which it never holds up."""

from __future__ import annotations

import asyncio
import ipaddress
import threading
from types import TracebackType
from typing import Final, Self

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from pystreams.serving.address import Address
from pystreams.serving.pages import pages
from pystreams.serving.watched import Watched

#: More connections at once are answered with 503: scrapers and probes need a few.
CONNECTIONS_MAX: Final = 64

#: A connection has this time for its request and the answer. One that sends nothing would take a place for ever.
CONNECTION_S: Final = 10.0

#: The end of the server waits for so long for pages at which somebody is still at work.
_END_S: Final = 5.0

#: The names of this machine, for itself.
_OWN_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")


class _Connection(H11Protocol):
    """One request and its answer: uvicorn has no limit for the time before a request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(CONNECTION_S, transport.abort)


class HttpServer:
    """Serves the pages of an application from ``with`` to its end."""

    def __init__(self, address: Address, watched: Watched) -> None:
        """Listens from now on, so that a wrong address is known before the application starts. Raises
        ``ConfigError``."""
        self._socket = address.listen()
        bound, port = self._socket.getsockname()[:2]
        self.address = Address(address.host, port)
        #: Whether only programs of this machine reach it.
        self.is_loopback = ipaddress.ip_address(bound).is_loopback
        hosts = (*_OWN_NAMES, address.name) if self.is_loopback else ("*",)
        self._server = uvicorn.Server(
            uvicorn.Config(
                pages(watched, hosts),
                loop="asyncio",
                http=_Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                headers=[("Connection", "close")],
                proxy_headers=False,
                # It refuses the connection with which this number is reached.
                limit_concurrency=CONNECTIONS_MAX + 1,
                timeout_graceful_shutdown=1,
                h11_max_incomplete_event_size=16_384,
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="http", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        # A page may wait for a lock of the client for longer than anybody wants to wait for the end.
        self._thread.join(_END_S)
        self._socket.close()
