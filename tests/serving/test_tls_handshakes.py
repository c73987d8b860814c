"""Peers that open connections to an HTTPS server and begin no TLS handshake are waited for no longer than others, take
no more descriptors, and keep nobody out."""

from __future__ import annotations

import socket
import ssl
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest

from pystreams import Streams
from pystreams.serving import handshakes
from pystreams.serving.address import Address
from pystreams.serving.connections import CONNECTIONS_HELD_MAX
from pystreams.serving.server import HttpServer
from pystreams.serving.tls import Tls, asking
from pystreams.serving.watched import WatchedClient
from tests.kafka.secure_server import Certificates, why_not
from tests.live.support import Log, eventually

pytestmark = [pytest.mark.live, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]


class Served:
    """An HTTPS server of an application that has not been started."""

    def __init__(self, server: HttpServer, trusting: ssl.SSLContext) -> None:
        self._server = server
        self._trusting = trusting

    def connected(self) -> socket.socket:
        """A connection, without a handshake, which waits for less than asyncio does by default (60 s)."""
        address = self._server.address
        return socket.create_connection((address.host, address.port), timeout=30)

    def status(self) -> int:
        with urllib.request.urlopen(f"{self._server.url}/live", context=self._trusting, timeout=60) as answer:
            return answer.status


@pytest.fixture(scope="module")
def certificates(tmp_path_factory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@contextmanager
def served(folder: Path, certificates: Certificates) -> Iterator[Served]:
    tls = Tls(certificates.server, certificates.server.with_suffix(".key"))
    with closing(Log(folder)) as log:
        log.create("in", "out")
        app = log.app("copying")
        app.stream("in", key=str, value=int).to("out")
        with (
            closing(Streams(app, broker=log.broker)) as streams,
            HttpServer(Address("localhost", 0), WatchedClient(streams, None), tls=tls) as server,
        ):
            yield Served(server, asking(certificates.ca, None, None))


def is_open(connection: socket.socket) -> bool:
    """Whether the server has not ended the connection."""
    connection.settimeout(0)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def test_a_peer_that_begins_no_handshake_is_left(monkeypatch, tmp_path, certificates):
    monkeypatch.setattr(handshakes, "HANDSHAKE_S", 1.0)
    with served(tmp_path, certificates) as server, closing(server.connected()) as connection:
        assert connection.recv(1) == b""
        assert server.status() == 200


def test_peers_that_begin_no_handshake_keep_no_others_out(monkeypatch, tmp_path, certificates):
    monkeypatch.setattr(handshakes, "HANDSHAKE_S", 3_600.0)
    with served(tmp_path, certificates) as server, ExitStack() as stack:
        connections = []
        for _ in range(CONNECTIONS_HELD_MAX + 100):
            with suppress(ConnectionError):
                connections.append(stack.enter_context(closing(server.connected())))
        eventually(lambda: sum(map(is_open, connections)) <= CONNECTIONS_HELD_MAX, timeout_s=30)
        assert any(map(is_open, connections)), "most of them still wait"
        assert server.status() == 200
