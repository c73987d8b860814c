"""``/live`` and ``/ready`` say whether to restart a process and whether to rely on it, and why not, whatever
the application is doing."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from pystreams import Streams
from pystreams.errors import ConfigError
from pystreams.runtime.client_state import ClientState
from pystreams.runtime.health import Health
from pystreams.serving import connections as connections_module
from pystreams.serving import server as server_module
from pystreams.serving.address import Address
from pystreams.serving.connections import CONNECTIONS_MAX
from pystreams.serving.server import HttpServer
from pystreams.serving.watched import WatchedClient
from tests.live.support import Log, caught_up, eventually, running
from tests.serving.http_kit import get

pytestmark = pytest.mark.live


@pytest.fixture
def log(tmp_path) -> Iterator[Log]:
    log = Log(tmp_path)
    log.create("in", "out")
    yield log
    log.close()


def copying(log: Log, **settings) -> Streams:
    app = log.app("copying", **settings)
    app.stream("in", key=str, value=int).map_values(lambda value: 1 // value, value=int).to("out")
    return Streams(app, broker=log.broker)


def served(streams: Streams, lag_max: int | None = None, host: str = "127.0.0.1") -> HttpServer:
    return HttpServer(Address(host, 0), WatchedClient(streams, lag_max))


def test_a_client_is_live_at_once_and_ready_when_its_tasks_run(log):
    streams = copying(log)
    with served(streams) as server, closing(streams):
        assert get(server.address, "/live").status == 200
        page = get(server.address, "/ready")
        assert (page.status, page.json) == (503, {"ready": False, "reasons": ["the client starts"]})
        streams.start()
        eventually(lambda: get(server.address, "/ready").status == 200)
        assert get(server.address, "/ready").json == {"ready": True, "reasons": []}
        streams.close()
        assert get(server.address, "/live").status == 200
        assert get(server.address, "/ready").json["reasons"] == ["the client is not running"]


def test_an_error_that_ends_the_client_ends_its_life(log):
    streams = copying(log)
    with served(streams) as server, closing(streams):
        streams.start()
        running(streams)
        log.write("in", [("a", 0, 0)])
        eventually(lambda: get(server.address, "/live").status == 503)
        assert get(server.address, "/live").json == {
            "live": False,
            "reasons": ["an error has ended the client"],
        }
        assert get(server.address, "/ready").status == 503


def test_a_client_with_too_much_to_do_is_not_ready_if_that_is_limited(log):
    streams = copying(log)
    with served(streams, 10) as server, closing(streams):
        streams.start()
        caught_up(streams)
        eventually(lambda: get(server.address, "/ready").status == 200)
        streams.pause()
        log.write("in", [("a", 1, n) for n in range(11)])
        page = eventually(lambda: (seen := get(server.address, "/ready")).status == 503 and seen)
        assert page.json["reasons"] == ["11 records wait, more than 10"]
        assert get(server.address, "/live").status == 200
        streams.resume()
        eventually(lambda: get(server.address, "/ready").status == 200)


@pytest.mark.parametrize("threads", [0, 1])
def test_a_client_without_threads_is_ready_only_if_it_needs_none(log, threads):
    app = log.app("global")
    app.global_table("in", key=str, value=int, name="all")
    if threads:
        app.stream("out", key=str, value=int).foreach(lambda _: None)
    streams = Streams(app, broker=log.broker)
    with served(streams) as server, closing(streams):
        streams.start()
        eventually(lambda: get(server.address, "/ready").status == 200)
        assert (streams.remove_stream_thread() is None) is not bool(threads)
        assert get(server.address, "/ready").status == (503 if threads else 200)


def test_a_function_that_hangs_for_longer_than_the_group_waits_is_no_life(log):
    release = threading.Event()
    app = log.app("hanging", max_poll_interval_ms=300)
    app.stream("in", key=str, value=int).peek(lambda _: release.wait(60)).to("out")
    streams = Streams(app, broker=log.broker)
    with served(streams) as server, closing(streams):
        streams.start()
        running(streams)
        log.write("in", [("a", 1, 1)])
        try:
            page = eventually(lambda: (seen := get(server.address, "/live")).status == 503 and seen)
            assert "has been at the same work for" in page.json["reasons"][0]
        finally:
            release.set()
        eventually(lambda: get(server.address, "/live").status == 200)


def test_a_function_that_hangs_while_an_error_ends_the_client_is_no_life(log):
    log.create("two", partitions=2)
    release, hanging = threading.Event(), threading.Event()

    def work(value: int) -> None:
        if value == 0:
            hanging.set()
            release.wait(120)
        else:
            raise ValueError("odd")

    app = log.app("hanging", max_poll_interval_ms=1_000, num_stream_threads=2)
    app.stream("two", key=str, value=int).peek(work).to("out")
    streams = Streams(app, broker=log.broker)
    with served(streams) as server, closing(streams):
        streams.start()
        eventually(lambda: [len(thread.tasks) for thread in streams.progress().threads] == [1, 1])
        running(streams)
        log.write("two", [("a", 0, 0)], partition=0)
        try:
            assert hanging.wait(60)
            log.write("two", [("a", 1, 1)], partition=1)
            eventually(lambda: streams.state is ClientState.PENDING_ERROR)
            eventually(lambda: get(server.address, "/live").status == 503)
            assert get(server.address, "/live").json["reasons"][0] == "an error is ending the client"
        finally:
            release.set()
        eventually(lambda: streams.state is ClientState.ERROR)


def test_pages_are_never_kept_by_anybody(log):
    with served(copying(log)) as server:
        for path in ("/", "/live", "/ready", "/metrics"):
            assert get(server.address, path).headers["cache-control"] == "no-store", path


def test_other_paths_and_methods_are_refused(log):
    with served(copying(log)) as server:
        assert get(server.address, "/nothing").status == 404
        with closing(connected(server)) as connection:
            connection.sendall(b"POST /live HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 405")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example"])
def test_a_web_site_gets_nothing_through_a_browser_of_this_machine(log, host):
    with served(copying(log)) as server:
        assert get(server.address, "/metrics", Host=host).status == 400
        assert get(server.address, "/metrics", Host="localhost").status == 200


@pytest.mark.parametrize(
    "host,loopback", [("127.0.0.1", True), ("127.0.0.5", True), ("localhost", True), ("0.0.0.0", False)]
)
def test_addresses_of_this_machine_alone_are_known_as_such_and_reached_by_their_names(log, host, loopback):
    with served(copying(log), host=host) as server:
        assert server.is_loopback is loopback
        assert get(server.address, "/live").status == 200


def test_the_loopback_of_ipv6_is_reached_by_its_name(log):
    try:
        server = served(copying(log), host="::1")
    except ConfigError as refused:
        pytest.skip(str(refused))
    with server:
        assert server.is_loopback
        assert get(server.address, "/live").status == 200
        refused = get(server.address, "/live", Host="evil.example")
        assert (refused.status, refused.json["code"]) == (400, "wrong-host")
        assert refused.json["error"] == "this server does not answer for the host 'evil.example'"
        assert "--http 0.0.0.0:PORT" in refused.json["hint"]
        assert "--http-token-file" in refused.json["hint"]


def test_where_all_may_read_any_name_will_do(log):
    with served(copying(log), host="0.0.0.0") as server:
        address = Address("127.0.0.1", server.address.port)
        assert get(address, "/live", Host="shop-0.shop.example").status == 200


def test_connections_that_send_no_request_are_dropped(log, monkeypatch):
    monkeypatch.setattr(connections_module, "CONNECTION_S", 2.0)
    with served(copying(log)) as server:
        held = [connected(server) for _ in range(CONNECTIONS_MAX)]
        for connection in held[::2]:
            connection.sendall(b"GET /live HT")
        for connection in held:
            with contextlib.suppress(ConnectionError):
                assert connection.recv(1) == b""
            connection.close()
        eventually(lambda: get(server.address, "/live").status == 200)


def test_a_connection_serves_several_requests_and_ends_when_nobody_uses_it(log, monkeypatch):
    monkeypatch.setattr(server_module, "_KEEP_ALIVE_S", 1)
    with served(copying(log)) as server, closing(connected(server)) as connection:
        for _ in range(2):
            connection.sendall(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(1_000) or pytest.fail("the server has ended the connection")
            assert answer.startswith(b"HTTP/1.1 200")
        assert connection.recv(1_000) == b""


class Slow:
    """An application that somebody is still looking at."""

    def __init__(self) -> None:
        self.looking, self.release = threading.Event(), threading.Event()

    def application_id(self) -> str:
        return "shop"

    def health(self) -> Health:
        self.looking.set()
        self.release.wait(120)
        return Health(live=True, ready=True)

    def samples(self):
        return {}


def test_a_page_at_which_somebody_is_still_at_work_does_not_hold_up_the_end(monkeypatch):
    monkeypatch.setattr(server_module, "_END_S", 0.5)
    slow = Slow()
    try:
        with HttpServer(Address("127.0.0.1", 0), slow) as server:
            connection = connected(server)
            connection.sendall(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert slow.looking.wait(60)
        assert not slow.release.is_set()
        connection.close()
    finally:
        slow.release.set()


def test_a_request_with_endless_headers_is_cut_off(log):
    with served(copying(log)) as server, closing(connected(server)) as connection:
        # The server may close the connection before it has read everything; the answer is lost then.
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"GET /live HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000)
            assert connection.recv(100).startswith(b"HTTP/1.1 400")
        assert get(server.address, "/live").status == 200


def connected(server: HttpServer) -> socket.socket:
    return socket.create_connection((server.address.host, server.address.port), timeout=30)
