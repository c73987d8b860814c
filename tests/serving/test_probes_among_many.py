"""Probes and scrapes are answered however many other connections there are, and whatever their clients do or leave."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress

import pytest

from pystreams.runtime.health import Health
from pystreams.serving import connections as connections_module
from pystreams.serving import limits as limits_module
from pystreams.serving import server as server_module
from pystreams.serving.address import Address
from pystreams.serving.connections import CONNECTIONS_HELD_MAX, CONNECTIONS_MAX
from pystreams.serving.live.look import Look
from pystreams.serving.server import HttpServer
from pystreams.serving.threads import ClientThreads
from tests.live.support import eventually
from tests.serving.http_kit import get

pytestmark = pytest.mark.live

MANY = 300
REQUEST = b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Application:
    """One whose look and threads take until it is let go."""

    def __init__(self) -> None:
        self.looked_at, self.let_go = threading.Event(), threading.Event()
        self.let_go.set()

    def application_id(self) -> str:
        return "shop"

    def health(self) -> Health:
        return Health(live=True, ready=True)

    def samples(self):
        return {}

    def described(self) -> None:
        return None

    def look(self, *, with_group: bool) -> Look:
        self.looked_at.set()
        self.let_go.wait(240)
        return Look(0, self.health(), [], [], None)

    def threads(self) -> list[ClientThreads]:
        self.let_go.wait(240)
        return []


@pytest.fixture
def application() -> Application:
    return Application()


@pytest.fixture
def server(application: Application, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpServer]:
    """One that waits for silent clients for longer than a test may take: nothing ends by itself."""
    monkeypatch.setattr(connections_module, "CONNECTION_S", 3_600.0)
    monkeypatch.setattr(server_module, "_KEEP_ALIVE_S", 3_600)
    with HttpServer(Address("127.0.0.1", 0), application) as server:
        yield server
        application.let_go.set()


@pytest.fixture
def held(server: HttpServer) -> Iterator[Callable[[], socket.socket]]:
    """Opens connections that end with the test."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(
            closing(socket.create_connection((server.address.host, server.address.port), timeout=240))
        )


def connections(server: HttpServer) -> int:
    return len(server._server.server_state.connections)


def all_answer(server: HttpServer) -> bool:
    return [get(server.address, path).status for path in ("/live", "/ready", "/metrics")] == [200] * 3


def is_answered(connection: socket.socket) -> None:
    connection.sendall(REQUEST)
    answer = b""
    while not answer.endswith(b"}"):
        answer += connection.recv(1_000) or pytest.fail("the server has ended the connection")
    assert answer.startswith(b"HTTP/1.1 200")


def test_connections_that_stay_open_after_their_requests_make_room(server, held):
    for _ in range(MANY):
        is_answered(held())
    assert all_answer(server)
    assert connections(server) <= CONNECTIONS_MAX + 1


def test_connections_that_never_send_a_request_make_room(server, held):
    for _ in range(MANY):
        held()
    assert all_answer(server)
    eventually(lambda: connections(server) <= CONNECTIONS_MAX + 1)


def test_clients_that_send_slowly_make_room(server, held):
    for _ in range(MANY):
        held().sendall(REQUEST[:20])
    assert all_answer(server)
    eventually(lambda: connections(server) <= CONNECTIONS_MAX + 1)


def test_the_client_that_has_been_silent_for_longest_makes_room(server, held):
    first, second = held(), held()
    eventually(lambda: connections(server) == 2)
    is_answered(first)
    for _ in range(CONNECTIONS_MAX - 2):
        held()
    eventually(lambda: connections(server) == CONNECTIONS_MAX)
    held()
    with suppress(ConnectionError):
        assert second.recv(1) == b""
    is_answered(first)


def test_a_client_that_is_being_answered_keeps_its_place(server, held):
    stream = http.client.HTTPConnection(server.address.host, server.address.port, timeout=240)
    with closing(stream):
        stream.request("GET", "/events")
        events = stream.getresponse()
        assert events.readline()
        for _ in range(MANY):
            held()
        assert all_answer(server)
        lines = [events.readline() for _ in range(8)]
        assert any(line.startswith(b"data: ") for line in lines)


def test_with_too_many_requests_at_work_others_are_refused_but_not_probes(application, server, monkeypatch):
    monkeypatch.setattr(limits_module, "REQUESTS_MAX", 60)
    application.let_go.clear()
    # More than there are threads for pages: all of these wait, and hold the threads.
    statuses: list[int] = []
    readers = [
        threading.Thread(target=lambda: statuses.append(get(server.address, "/state").status))
        for _ in range(60)
    ]
    for reader in readers:
        reader.start()
    assert application.looked_at.wait(240)
    refused = eventually(lambda: (page := get(server.address, "/nothing")).status == 503 and page)
    assert refused.json == {
        "code": "busy",
        "error": "the server has too much to do",
        "why": "60 requests are at work",
        "hint": "ask again in a moment",
    }
    assert refused.headers["retry-after"] == "1"
    assert all_answer(server)
    application.let_go.set()
    for reader in readers:
        reader.join(240)
    assert statuses == [200] * 60
    assert get(server.address, "/state").status == 200


def test_those_who_wait_for_threads_that_do_not_answer_hold_up_no_probe(application, server):
    application.let_go.clear()
    with ThreadPoolExecutor(40) as pool:
        waiting = [pool.submit(get, server.address, "/threads") for _ in range(40)]
        # All but eight get an answer at once.
        eventually(lambda: sum(one.done() for one in waiting) == 32)
        refused = [one.result() for one in waiting if one.done()]
        assert all_answer(server)
        application.let_go.set()
        assert sorted(one.result().status for one in waiting) == [200] * 8 + [503] * 32
    assert {page.status for page in refused} == {503}
    assert refused[0].json == {
        "code": "unknown",
        "error": "the state of the threads is not known now",
        "why": "8 others wait for it",
        "hint": "ask again in a moment",
    }


def test_so_many_connections_at_work_leave_no_room_and_take_no_more(application, server, held):
    application.let_go.clear()
    for _ in range(CONNECTIONS_HELD_MAX):
        held().sendall(b"GET /state HTTP/1.1\r\nHost: localhost\r\n\r\n")
    # 256 wait for their look. The others have been refused, and make room for probes.
    assert all_answer(server)
    assert connections(server) <= CONNECTIONS_HELD_MAX
