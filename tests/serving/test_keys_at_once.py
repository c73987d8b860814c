"""A key as of the last commit is answered right when its request has come; whatever comes before, behind and beside it
on the same connection, each request gets its own answer."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote

import pytest

from pystreams import App, TimeWindows
from pystreams.serving.connections import HEAD_BYTES_MAX
from pystreams.serving.guards import Guards
from pystreams.serving.server import HttpServer
from pystreams.serving.stores.questions import EntryPlace, cursor_of
from tests.live.support import caught_up, eventually
from tests.serving.queries_kit import Asked, asked

pytestmark = pytest.mark.live

COMMITTED = "?freshness=committed"


def several(app: App) -> None:
    numbers = app.stream("in", key=str, value=int).group_by_key()
    numbers.count(name="counts")
    numbers.windowed_by(TimeWindows.tumbling(10, grace=1_000_000)).count(name="hourly")


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with asked(tmp_path_factory.mktemp("at-once"), several) as application:
        application.log.write("in", [(f"k{n}", n, n) for n in range(20)])
        caught_up(application.streams)
        # What serdes need is made by the first query, in a thread.
        for store in ("counts", "hourly"):
            eventually(lambda store=store: application.key(store, "k1", COMMITTED).status == 200)
        yield application


def request(target: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {target} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def of_key(store: str, key: str, parameters: str = "") -> str:
    return f"/stores/{store}/keys/{quote(key, safe='')}{parameters}"


def scope_of(target: str, *headers: tuple[bytes, bytes]) -> dict[str, object]:
    path, _, parameters = target.partition("?")
    return {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": parameters.encode(),
        "headers": [(b"host", b"localhost"), *headers],
    }


def guards(server: HttpServer) -> Guards:
    found = server._server.config.loaded_app
    assert isinstance(found, Guards)
    return found


class Answers:
    """Reads answer by answer from a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._data = b""

    def next(self) -> tuple[int, bytes]:
        """The status and the body."""
        while b"\r\n\r\n" not in self._data:
            self._more()
        head, _, self._data = self._data.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        while len(self._data) < length:
            self._more()
        body, self._data = self._data[:length], self._data[length:]
        return int(head.split(b" ")[1]), body

    def _more(self) -> None:
        data = self._connection.recv(65_536)
        assert data, "the server has ended the connection"
        self._data += data


def connected(application: Asked) -> socket.socket:
    address = application.server.address
    return socket.create_connection((address.host, address.port), timeout=120)


@pytest.mark.parametrize("store", ["counts", "hourly"])
def test_only_a_key_as_of_the_last_commit_is_answered_at_once(application: Asked, store: str) -> None:
    at_once = guards(application.server).answer_at_once
    answer = at_once(scope_of(f"/stores/{store}/keys/k1{COMMITTED}"))
    assert answer is not None
    assert (answer.status_code, answer.body.decode()) == (200, application.key(store, "k1", COMMITTED).text)
    assert at_once(scope_of(f"/stores/{store}/keys/k1")) is None
    assert at_once(scope_of(f"/stores/{store}/entries{COMMITTED}")) is None
    assert at_once(scope_of("/live")) is None


def test_a_refusal_at_once_is_the_one_that_all_pages_give(application: Asked) -> None:
    at_once = guards(application.server).answer_at_once
    target = f"/stores/counts/keys/k1{COMMITTED}"
    for header, status in (
        ((b"content-length", b"5"), 413),
        ((b"transfer-encoding", b"chunked"), 413),
    ):
        answer = at_once(scope_of(target, header))
        assert answer is not None
        assert answer.status_code == status
        assert (b"connection", b"close") in answer.raw_headers
    for host in (b"evil.example", b"localhost.evil.example", b"evil.example:80@localhost", b"", b"[::1"):
        scope = {**scope_of(target), "headers": [(b"host", host)]}
        answer = at_once(scope)
        assert answer is not None
        assert answer.status_code == 400, host


def test_what_is_wrong_with_a_key_is_reported_in_the_same_form(application: Asked) -> None:
    for parameters, status, code in (
        (COMMITTED, 404, "absent"),
        (f"{COMMITTED}&limit=0", 400, "bad-query"),
        (f"{COMMITTED}&as_of=1", 400, "bad-query"),
        (f"{COMMITTED}&cursor={cursor_of(EntryPlace(b'k1'))}", 400, "bad-query"),
    ):
        page = application.key("counts", "nobody", parameters)
        assert (page.status, page.json["code"]) == (status, code)
    page = application.key("hourly", "k1", f"{COMMITTED}&cursor={cursor_of(EntryPlace(b'k2'))}")
    assert (page.status, page.json["error"]) == (400, "the cursor is not one of this key")
    page = application.key("count", "k1", COMMITTED)
    assert (page.status, page.json["hint"]) == (404, "did you mean counts?")


@pytest.mark.parametrize("waits", [7, 3_000], ids=["each seventh waits", "the first waits"])
def test_requests_that_come_together_are_answered_in_their_order(application: Asked, waits: int) -> None:
    """Those that wait for a stream thread are before and between those that do not."""
    keys = [f"k{n % 20}" for n in range(3_000)]
    targets = [of_key("counts", key, "" if n % waits == 0 else COMMITTED) for n, key in enumerate(keys)]
    with closing(connected(application)) as connection:
        connection.sendall(b"".join(map(request, targets)))
        answers = Answers(connection)
        for key in keys:
            status, body = answers.next()
            assert status == 200
            assert f'"key":"{key}"'.encode() in body


def test_a_client_that_offers_another_protocol_is_answered_in_this_one(application: Asked) -> None:
    """As Java's client does with the first request of a connection."""
    offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
    with closing(connected(application)) as connection:
        answers = Answers(connection)
        for headers in (offer, (), offer):
            connection.sendall(request(of_key("counts", "k1", COMMITTED), *headers))
            assert answers.next()[0] == 200


def test_a_connection_is_ended_after_the_answer_if_the_client_wants_it(application: Asked) -> None:
    with closing(connected(application)) as connection:
        connection.sendall(request(of_key("counts", "k1", COMMITTED), "Connection: close"))
        data = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert data.startswith(b"HTTP/1.1 200")
    assert data.lower().count(b"connection: close") == 1


def test_a_head_that_never_ends_is_refused(application: Asked) -> None:
    with closing(connected(application)) as connection:
        connection.sendall(request("/stores").removesuffix(b"\r\n"))

        def send_more() -> bool:
            """Whether the server has ended the connection. What it does not read fills the buffers between."""
            try:
                connection.sendall(b"X: " + b"y" * (HEAD_BYTES_MAX // 8) + b"\r\n")
            except ConnectionError:
                return True
            return False

        eventually(send_more, "the server has refused the head")
