"""The HTTP server: a separate thread, which never blocks the application."""

from __future__ import annotations

import ipaddress
import ssl
import threading
from functools import partial
from types import TracebackType
from typing import Final, Self, cast

import uvicorn

from pystreams.serving.access import Access
from pystreams.serving.address import Address
from pystreams.serving.connections import CONNECTIONS_HELD_MAX, Connection
from pystreams.serving.handshakes import Listener, Server
from pystreams.serving.live.routes import LivePage
from pystreams.serving.pages import pages
from pystreams.serving.stores.asking import Answerer
from pystreams.serving.stores.peers import Peers
from pystreams.serving.tls import Tls
from pystreams.serving.turns import QuickTurns
from pystreams.serving.watched import Watched

#: When the server ends, it waits at most this long for requests that are still at work.
_END_S: Final = 5.0

#: A connection without a request is kept for this time after the last answer.
_KEEP_ALIVE_S: Final = 5

#: The names of this machine for its own programs.
_OWN_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")


class HttpServer:
    """Serves the pages of an application within a ``with`` block."""

    def __init__(
        self,
        address: Address,
        watched: Watched,
        answerer: Answerer | None = None,
        peers: Peers | None = None,
        *,
        token: str | None = None,
        open_to_all: bool = False,
        tls: Tls | None = None,
    ) -> None:
        """Listens at once, so that a wrong address is noticed before the application starts. ``answerer``: the stores
        (None: they are not served). ``peers``: for requests of the live page to other instances (None: there are none).
        If other machines can reach the address, stores and the page may be read with the ``token``, with a certificate
        that ``tls`` accepts, or by everybody if it is ``open_to_all``. Raises ``ConfigError``."""
        if tls is not None:
            tls.check()
        client_ca = None if tls is None else tls.client_ca
        self._socket = address.listen()
        listener = None
        if tls is not None:
            self._socket = listener = Listener(self._socket, CONNECTIONS_HELD_MAX)
        bound, port = self._socket.getsockname()[:2]
        self.address = Address(address.host, port)
        self.url = f"{'http' if tls is None else 'https'}://{self.address}"
        #: Whether only programs of this machine can reach it.
        self.is_loopback = ipaddress.ip_address(bound).is_loopback
        #: Whether it authenticates clients by a token or a certificate.
        self.has_proof = token is not None or client_ca is not None
        #: Whether it serves only metrics and health.
        self.closed = not (self.is_loopback or self.has_proof or open_to_all)
        #: Where others can ask this instance: also one that is closed, which says why it serves no stores.
        self.endpoint = self.address.endpoint()
        hosts = (*_OWN_NAMES, address.name) if self.is_loopback else ("*",)
        self._turns = QuickTurns()
        self._live_page = LivePage(watched, with_stores=answerer is not None, peers=peers)
        self._server = Server(
            uvicorn.Config(
                pages(watched, answerer, hosts, Access(token, self.closed), self._live_page),
                loop="asyncio",
                http=cast("type[Connection]", partial(Connection, self._turns, listener)),
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=1,
                ssl_certfile=None if tls is None else str(tls.certificate),
                ssl_keyfile=None if tls is None else str(tls.key),
                ssl_ca_certs=None if client_ca is None else str(client_ca),
                ssl_cert_reqs=ssl.CERT_NONE if client_ca is None else ssl.CERT_REQUIRED,
            )
        )
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live_page.events.end()
        self._server.should_exit = True
        # With a timeout, because a page may wait for a lock of the client for long.
        self._thread.join(_END_S)
        self._socket.close()

    def _run(self) -> None:
        try:
            self._server.run([self._socket])
        finally:
            self._turns.end()
