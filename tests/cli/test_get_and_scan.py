"""``pystreams get`` and ``pystreams scan`` show what a running application has in its stores."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pystreams.cli.application_client import first_reachable
from tests.live.support import caught_up
from tests.serving.queries_kit import asked

pytestmark = pytest.mark.live

COPYING = """
from pystreams import App

app = App("copying", poll_ms=10)
app.stream("in").to("out")
"""


def counted(app):
    app.stream("in", key=str, value=int).group_by_key().count(name="counts")


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    with asked(tmp_path_factory.mktemp("counts"), counted) as application:
        application.log.write("in", [(f"k{n}", n, n) for n in range(5)])
        caught_up(application.streams)
        yield application


@pytest.fixture
def url(counts) -> str:
    return f"http://{counts.server.address}"


def test_get_shows_the_value_of_a_key(pystreams, url):
    shown = pystreams("get", "apps.counts", "counts", "k1", "--url", url)
    assert (shown.code, shown.out) == (0, "1\n")
    shown = pystreams("get", "apps.counts", "counts", "k1", "--json", "--url", url)
    assert json.loads(shown.out) == {"key": "k1", "value": 1, "timestamp": 1}


def test_get_says_that_there_is_nothing_with_its_exit_code(pystreams, url):
    shown = pystreams("get", "apps.counts", "counts", "nobody", "--url", url)
    assert (shown.code, shown.out) == (1, "")
    assert "store counts has nothing under the key 'nobody'" in shown.err


def test_an_unknown_store_is_a_mistake_with_a_suggestion(pystreams, url):
    for command in (("get", "apps.counts", "count", "k1"), ("scan", "apps.counts", "count")):
        shown = pystreams(*command, "--url", url)
        assert shown.code == 2
        assert "did you mean counts?" in shown.err


def test_scan_shows_entries_in_the_order_of_their_keys(pystreams, url):
    shown = pystreams("scan", "apps.counts", "counts", "--url", url)
    assert shown.lines == [f"k{n}\t1\t{n}" for n in range(5)]
    shown = pystreams("scan", "apps.counts", "counts", "--from", "k1", "--to", "k3", "--json", "--url", url)
    assert [json.loads(line)["key"] for line in shown.lines] == ["k1", "k2", "k3"]


def test_scan_says_if_there_are_more(pystreams, url):
    shown = pystreams("scan", "apps.counts", "counts", "--limit", "2", "--url", url)
    assert shown.lines == ["k0\t1\t0", "k1\t1\t1"]
    assert "There are more than 2 entries" in shown.err
    assert (
        "There are more" not in pystreams("scan", "apps.counts", "counts", "--limit", "5", "--url", url).err
    )


def test_where_nothing_answers_the_advice_is_how_to_start_it(pystreams):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    shown = pystreams("get", "apps.counts", "counts", "k1", "--url", str(port))
    assert shown.code == 1
    assert f"no application answers at http://127.0.0.1:{port}" in shown.err
    assert "--http HOST:PORT" in shown.err


def test_an_endpoint_that_is_none_is_passed_over(counts):
    address = str(counts.server.address)
    assert first_reachable(["shop:http", "..:80", "127.0.0.1:99999", address]) == address


def test_no_proxy_is_asked(pystreams, url, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    for exception in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(exception, raising=False)
    assert pystreams("get", "apps.counts", "counts", "k1", "--url", url).out == "1\n"


def test_the_token_goes_to_the_address_that_was_given_alone(pystreams, folder, url):
    token = folder / "token"
    token.write_text("0123456789abcdef")
    shown = pystreams("get", "apps.counts", "counts", "k1", "--token-file", str(token))
    assert shown.code == 2
    assert "the token is not sent to an instance that is found through the group" in shown.err
    assert "--url https://HOST:PORT" in shown.err
    with redirecting_to(url) as server:
        shown = pystreams("get", "apps.counts", "counts", "k1", "--token-file", str(token), "--url", server)
    assert (shown.code, shown.out) == (1, "")
    assert "it answers with status 302" in shown.err


@contextmanager
def redirecting_to(url):
    class Redirecting(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(302)
            self.send_header("Location", url + self.path)
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Redirecting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@pytest.mark.parametrize("url", ["ftp://shop", "http://[::1", "shop:99999", "shop:http"])
def test_an_address_that_is_none_is_refused(pystreams, url):
    shown = pystreams("get", "apps.counts", "counts", "k1", "--url", url)
    assert shown.code == 2
    assert f"{url!r} is not the URL of an application" in shown.err


def test_certificates_are_for_asking_over_https(pystreams, folder, counts):
    address = str(counts.server.address)
    authority = folder / "authority.pem"
    shown = pystreams("scan", "apps.counts", "counts", "--url", address, "--ca", str(authority))
    assert shown.code == 2
    assert "the certificates of the authority cannot be used" in shown.err
    shown = pystreams("get", "apps.counts", "counts", "k1", "--url", address, "--cert", str(authority))
    assert shown.code == 2
    assert "give both --cert and --key" in shown.err


def test_those_who_ask_have_other_variables_for_their_certificate_than_a_server(
    pystreams, folder, url, monkeypatch
):
    get = ("get", "apps.counts", "counts", "k1", "--url", url)
    for name in ("PYSTREAMS_HTTP_CERT", "PYSTREAMS_HTTP_KEY", "PYSTREAMS_HTTP_CA"):
        monkeypatch.setenv(name, "of-a-server.pem")
    shown = pystreams(*get)
    assert shown.out == "1\n", shown
    for name in ("PYSTREAMS_HTTP_CERT", "PYSTREAMS_HTTP_KEY", "PYSTREAMS_HTTP_CA"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYSTREAMS_CERT", "of-a-person.pem")
    shown = pystreams(*get)
    assert (shown.code, "give both --cert and --key" in shown.err) == (2, True)
    monkeypatch.setenv("PYSTREAMS_KEY", "of-a-person.key")
    shown = pystreams(*get)
    assert (shown.code, "of-a-person.pem, of-a-person.key" in shown.err) == (2, True)
    (folder / "copying_for_a_person.py").write_text(COPYING, encoding="utf-8")
    pystreams("topics", "create", "in", "out")
    assert pystreams("run", "copying_for_a_person", "--until-caught-up").code == 0
