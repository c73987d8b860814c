"""An instance asks another one again only if the connection had ended before, waits for an answer as long as a query
may take, keeps few connections, and says what was wrong with an answer."""

from __future__ import annotations

import http.client
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pytest

from pystreams.serving.query_errors import UnreachableError
from pystreams.serving.stores import peers as peers_module
from pystreams.serving.stores.asking import QUERY_S
from pystreams.serving.stores.local import WAIT_MS
from pystreams.serving.stores.parts import StorePart
from pystreams.serving.stores.peers import Peers, _IdleConnections, encode_part
from pystreams.serving.stores.questions import Question
from tests.live.support import eventually
from tests.serving.asyncio_kit import run_apart

QUESTION = Question("counts", "a")
PART = encode_part(StorePart(partitions=1, read=[0]))


class Peer:
    """A server that counts requests. ``silent``: it answers none. ``hurried``: it ends each connection after an answer,
    without a word."""

    def __init__(self) -> None:
        self.content, self.silent, self.hurried = PART, False, False
        self.requests = 0
        self.connections: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self.connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            received = b""
            while piece := connection.recv(65_536):
                received += piece
                if not received.endswith(b"\r\n\r\n"):
                    continue
                received, self.requests = b"", self.requests + 1
                if self.silent:
                    continue
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(self.content)}\r\n\r\n".encode()
                connection.sendall(head + self.content)
                if self.hurried:
                    return

    def open_connections(self) -> int:
        return sum(connection.fileno() >= 0 for connection in self.connections)

    def close(self) -> None:
        self._listening.close()


@pytest.fixture
def peer() -> Iterator[Peer]:
    with closing(Peer()) as peer:
        yield peer


@pytest.fixture
def peers() -> Iterator[Peers]:
    with closing(Peers()) as peers:
        yield peers


def ask(peers: Peers, endpoint: str) -> StorePart:
    return run_apart(peers.ask(endpoint, QUESTION))


def test_a_connection_that_the_other_side_has_ended_is_replaced(peers: Peers, peer: Peer) -> None:
    peer.hurried = True
    for _ in range(3):
        assert ask(peers, peer.endpoint).read == [0]
        eventually(lambda: not peer.open_connections())
    assert peer.requests == 3


def test_a_query_without_an_answer_is_not_asked_twice(
    peers: Peers, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers_module, "_ANSWER_S", 0.5)
    ask(peers, peer.endpoint)
    peer.silent = True
    with pytest.raises(ConnectionError, match="does not answer: timed out"):
        ask(peers, peer.endpoint)
    assert peer.requests == 2


def test_an_answer_may_take_as_long_as_the_other_one_may_wait() -> None:
    assert WAIT_MS / 1000 < peers_module._ANSWER_S < QUERY_S


def test_an_answer_in_another_form_names_the_instance(peers: Peers, peer: Peer) -> None:
    peer.content = b"<html>"
    with pytest.raises(UnreachableError, match="answers in another form") as refused:
        ask(peers, peer.endpoint)
    assert refused.value.where == peer.endpoint


@pytest.mark.parametrize("endpoint", ["127.0.0.1:http", "..:80", "[::1:80"])
def test_an_endpoint_that_is_none_is_one_that_does_not_answer(peers: Peers, endpoint: str) -> None:
    with pytest.raises(ConnectionError, match="does not answer"):
        ask(peers, endpoint)


def test_connections_to_instances_that_are_asked_no_more_are_ended(
    peers: Peers, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers_module, "_IDLE_MAX", 1)
    ask(peers, peer.endpoint)
    assert peer.open_connections() == 1
    with closing(Peer()) as other:
        ask(peers, other.endpoint)
        eventually(lambda: not peer.open_connections())


def test_a_connection_that_nobody_uses_is_taken_by_one_thread_alone() -> None:
    idle, interval_s, count = _IdleConnections(), sys.getswitchinterval(), 15_000

    def taken(_number: int) -> int:
        idle.put("peer", http.client.HTTPConnection("localhost"))
        return sum(idle.take("peer") is not None for _ in range(2))

    # Threads change places as often as they can.
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = sum(pool.map(taken, range(count)))
    finally:
        sys.setswitchinterval(interval_s)
    while idle.take("peer") is not None:
        found += 1
    assert found == count
