"""Whatever clients send, and however slowly, is answered with the reason why it is refused, or waited for no longer;
it gets no 500 and no endless answer, and costs no other client its own."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from contextlib import closing
from datetime import timedelta
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from pystreams import SessionWindows, TimeWindows
from pystreams.serving import connections as connections_module
from pystreams.serving.address import Address
from pystreams.serving.connections import CONNECTIONS_HELD_MAX, HEAD_BYTES_MAX
from pystreams.serving.health_pages import is_for_health
from pystreams.serving.live.events import EVENTS_PATH
from pystreams.serving.server import HttpServer
from pystreams.serving.stores.local import LocalStores
from pystreams.serving.stores.peers import PART_HEADER
from pystreams.serving.stores.questions import KEY_PARAMETERS, RANGE_PARAMETERS
from pystreams.serving.watched import WatchedClient
from tests.examples import examples
from tests.live.support import caught_up, eventually
from tests.serving.queries_kit import Asked, asked
from tests.serving.routes_kit import paths

pytestmark = pytest.mark.live

STORES = ["counts", "hourly", "visits", "prices", "names"]

TOKEN = "a-token-that-only-some-have"

#: Entries of a page are small here.
ANSWER_BYTES_MAX = 1 << 20

STATUSES = {200, 400, 401, 404, 405, 406, 413, 414, 503}


def several(app):
    """A store of each kind."""
    app.global_table("names", key=str, value=int, name="names")
    numbers = app.stream("in", key=str, value=int)
    numbers.to_table(name="prices", history=timedelta(days=1))
    numbers = numbers.group_by_key()
    numbers.count(name="counts")
    numbers.windowed_by(TimeWindows.tumbling(10, grace=1_000_000)).count(name="hourly")
    numbers.windowed_by(SessionWindows.of(10, grace=1_000_000)).count(name="visits")


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    with asked(tmp_path_factory.mktemp("hostile"), several, others=["names"]) as application:
        records = [(f"k{n}", n, n) for n in range(50)]
        application.log.write("names", records)
        application.log.write("in", records)
        caught_up(application.streams)
        yield application


@pytest.fixture(scope="module")
def guarded(application):
    """The same application behind a token."""
    streams = application.streams
    watched = WatchedClient(streams, None)
    with HttpServer(Address("127.0.0.1", 0), watched, LocalStores(streams), token=TOKEN) as server:
        yield Asked(application.log, streams, server)


@pytest.fixture(autouse=True)
def others_are_answered(application):
    """Before, after, and on a connection that was there all the time."""
    with closing(Other(application)) as other:
        other.asks()
        yield
        other.asks()
        assert application.key("counts", "k1").json["value"] == 1


class Other:
    """A client that means well."""

    def __init__(self, application: Asked) -> None:
        self._application = application
        self._connection = self._new_connection()

    def _new_connection(self) -> http.client.HTTPConnection:
        address = self._application.server.address
        return http.client.HTTPConnection(address.host, address.port, timeout=60)

    def asks(self) -> None:
        """Ask for a key; again on a new connection if the server has ended this one, which was silent for a while."""
        try:
            self._ask()
        except (ConnectionError, http.client.BadStatusLine):
            self._connection.close()
            self._ask()

    def _ask(self) -> None:
        self._connection.request("GET", "/stores/counts/keys/k1")
        answer = self._connection.getresponse()
        assert (answer.status, json.loads(answer.read())["value"]) == (200, 1)

    def close(self) -> None:
        self._connection.close()


def connected(application: Asked, timeout_s: float = 60) -> socket.socket:
    address = application.server.address
    return socket.create_connection((address.host, address.port), timeout=timeout_s)


def sent(application: Asked, data: bytes) -> bytes:
    """All that the server answers to these bytes, until it ends the connection."""
    with closing(connected(application)) as connection:
        # The server may end the connection before it has read everything; its answer has arrived before that.
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
        return received(connection)


def received(connection: socket.socket) -> bytes:
    """All that arrives until the end of the connection."""
    answer = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65_536):
            answer += piece
            assert len(answer) < ANSWER_BYTES_MAX
    return answer


def request(target: str, *headers: str, method: str = "GET") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace")


def check(answer: bytes) -> int:
    """It is an answer of the server, in its JSON form where it is an error. Returns its status."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status = int(head.split(b" ")[1])
    assert status in STATUSES, answer[:500]
    assert b"Traceback" not in answer
    if status >= 400 and b"application/json" in head and body:
        error = json.loads(body)
        assert {"error", "code"} <= error.keys()
        assert all(isinstance(text, str) and len(text) < 2_000 for text in error.values())
    return status


TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
SEGMENTS = st.one_of(
    TEXT.map(lambda text: quote(text, safe="")),
    st.sampled_from(["..", ".", "", "%2e%2e", "%00", "%ff", "keys", "k1", "k2"]),
)
ODD_VALUES = [
    "true",
    "latest",
    "committed",
    "k1",
    "1970-01-01",
    "9" * 400,
    "-1",
    "{}",
    '{"in":{"0":1}}',
    "[" * 3_000,
]
VALUES = st.one_of(TEXT, st.integers().map(str), st.sampled_from(ODD_VALUES))

#: Parameters that some of the stores have, as they are meant.
MEANT = [
    ("limit", "7"),
    ("from", "k1"),
    ("to", "k3"),
    ("from_time", "5"),
    ("to_time", "1970-01-02"),
    ("as_of", "20"),
    ("freshness", "committed"),
    ("standbys", "true"),
]

#: Of every route, and of one file. Only the stream of events has no end.
PATHS = [
    path
    for path in paths("counts", "k1")
    if path != EVENTS_PATH and (not path.startswith("/static/") or path.endswith("page.js"))
]

#: Of which the stores have two.
MANY_PARTITIONS = "only=" + "f" * 9_000
HEADERS = st.one_of(TEXT, st.sampled_from(["1", "only=", MANY_PARTITIONS, "\xff"]))
AUTHORIZATIONS = [
    f"Bearer {TOKEN}",
    f"Basic {TOKEN}",
    f"Bearer {TOKEN}x",
    "Bearer",
    "Basic Og==",
    "Basic =",
    "\xff",
]


@st.composite
def targets(draw):
    of_routes = st.sampled_from(PATHS).map(lambda path: path.removeprefix("/"))
    path = draw(
        st.one_of(
            st.lists(SEGMENTS, max_size=6).map("/".join),
            # Twice, because they are many.
            of_routes,
            of_routes,
            st.tuples(st.sampled_from(STORES), SEGMENTS).map(
                lambda parts: f"stores/{parts[0]}/keys/{parts[1]}"
            ),
            st.sampled_from(STORES).map(lambda store: f"stores/{store}/entries"),
        )
    )
    names = st.one_of(st.sampled_from((*KEY_PARAMETERS, *RANGE_PARAMETERS)), TEXT)
    # Where most parameters are refused, little else would be asked for.
    odd = st.lists(st.tuples(names, VALUES), min_size=1, max_size=4)
    pairs = draw(st.one_of(st.just([]), st.lists(st.sampled_from(MEANT), min_size=1, max_size=3), odd))
    query = "&".join(f"{quote(name)}={quote(value)}" for name, value in pairs)
    return f"/{path}?{query}" if query else f"/{path}"


@pytest.mark.slow
@examples(100, suppress_health_check=list(HealthCheck))
@given(
    target=targets(),
    accept=st.sampled_from(["*/*", "application/vnd.apache.arrow.stream", "text/html", "\xff"]),
    part=st.none() | HEADERS,
)
@example(target="/stores/counts/entries", accept="*/*", part="only=")
@example(target="/stores/counts/entries", accept="*/*", part=MANY_PARTITIONS)
def test_no_path_no_parameter_and_no_header_is_too_much_for_the_server(application, target, accept, part):
    of_part = [] if part is None else [f"{PART_HEADER}: {part}"]
    check(sent(application, request(target, f"Accept: {accept}", *of_part)))


@pytest.mark.slow
@examples(40, suppress_health_check=list(HealthCheck))
@given(
    target=targets(),
    authorization=st.none() | st.sampled_from(AUTHORIZATIONS) | TEXT,
    part=st.none() | HEADERS,
)
def test_no_path_and_no_header_is_a_way_around_the_token(guarded, target, authorization, part):
    given_headers = {"Authorization": authorization, PART_HEADER: part}
    lines = [f"{name}: {text}" for name, text in given_headers.items() if text is not None]
    status = check(sent(guarded, request(target, *lines)))
    path = unquote(target.partition("?")[0])
    if authorization != f"Bearer {TOKEN}" and not is_for_health(path):
        assert status in {400, 401, 414}


@examples(40, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=300))
def test_bytes_that_are_no_request_end_the_connection(application, data):
    answer = sent(application, data + b"x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"\r\nconnection: close\r\n" in answer
    assert answer.endswith(b"\r\n\r\nInvalid HTTP request received.")


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/stores/../../etc/passwd", "/stores/%2e%2e%2fetc%2fpasswd", "//etc/passwd"]
)
def test_no_path_leads_out(application, path):
    answer = sent(application, request(path))
    assert answer.startswith(b"HTTP/1.1 404")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_the_server_is_only_read(application, method):
    assert sent(application, request("/stores", method=method)).startswith(b"HTTP/1.1 405")


def test_a_request_with_a_body_is_refused_before_it_is_read(application):
    for body in ("Content-Length: 1000000000", "Transfer-Encoding: chunked"):
        with closing(connected(application)) as connection:
            connection.sendall(request("/stores", body).replace(b"Connection: close\r\n", b""))
            # An endless body: the server reads none of it, and ends the connection.
            with contextlib.suppress(ConnectionError):
                for _ in range(10_000):
                    connection.sendall(b"1000\r\n" + b"x" * 0x1000 + b"\r\n")
                pytest.fail("an endless body was read")
            answer = received(connection)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"\r\nconnection: close\r\n" in answer
        check(answer)


def test_a_path_that_is_too_long_is_refused(application):
    answer = sent(application, request("/stores/counts/keys/" + "a" * 2 * HEAD_BYTES_MAX))
    # All of it may have arrived at once, or only so much that the head is known to be too large.
    head, _, reason = answer.partition(b"\r\n\r\n")
    assert (head[:13], reason) in {
        (
            b"HTTP/1.1 414 ",
            b'{"code":"too-long","error":"the path is too long","why":"it has more than 16,384 bytes"}',
        ),
        (b"HTTP/1.1 400 ", b"The head of the request is too large."),
    }
    assert b"\r\nconnection: close" in head


def test_connections_that_do_nothing_do_not_keep_others_out(application, monkeypatch):
    monkeypatch.setattr(connections_module, "CONNECTION_S", 2.0)
    with contextlib.ExitStack() as stack:
        for _ in range(1_000):
            with contextlib.suppress(ConnectionError):
                stack.enter_context(closing(connected(application)))
        eventually(lambda: len(connections_of(application)) <= CONNECTIONS_HELD_MAX)
        eventually(lambda: _answers(application))


def _answers(application: Asked) -> bool:
    try:
        return application.get("/live").status == 200
    except OSError:
        return False


def test_a_client_that_sends_slowly_is_left(application, monkeypatch):
    monkeypatch.setattr(connections_module, "CONNECTION_S", 1.0)
    with closing(connected(application)) as connection, contextlib.suppress(ConnectionError):
        for byte in request("/stores", "X: " + "y" * 10_000):
            connection.sendall(bytes([byte]))
            connection.settimeout(0.01)
            with contextlib.suppress(TimeoutError):
                assert connection.recv(1) == b""
                break
            connection.settimeout(60)
        else:
            pytest.fail("a client that sends a byte at a time was waited for")


def test_a_client_that_does_not_read_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(connections_module, "CONNECTION_S", 1.0)
    with asked(tmp_path, latest) as application, closing(unread(application)):
        eventually(lambda: not connections_of(application))


def test_the_end_of_the_server_ends_the_connection_of_a_client_that_does_not_read(tmp_path):
    with contextlib.ExitStack() as stack:
        with asked(tmp_path, latest) as application:
            stack.enter_context(closing(unread(application)))
            (connection,) = connections_of(application)
            side_of_server = connection.transport.get_extra_info("socket")
        assert side_of_server.fileno() == -1


def latest(app):
    app.table("in", key=str, value=str, name="latest")


def unread(application: Asked) -> socket.socket:
    """A connection with an answer that is larger than what the two sockets hold, and that nobody reads."""
    application.log.write("in", [(f"k{n}", "x" * 10_000, n) for n in range(500)], value=str)
    caught_up(application.streams)
    connection = connected(application)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connection.sendall(request("/stores/latest/entries?limit=500"))
    eventually(lambda: connections_of(application))
    return connection


def connections_of(application: Asked) -> set[Any]:
    """The open connections of the server."""
    return application.server._server.server_state.connections
