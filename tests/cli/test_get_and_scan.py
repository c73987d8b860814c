"""``pystreams get`` and ``pystreams scan`` show what a running application has in its stores."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pystreams import Streams, TimeWindows
from pystreams.broker.embedded import EmbeddedBroker
from pystreams.cli.application.loading import load_application
from pystreams.cli.application_client import first_reachable
from pystreams.cli.negative_numbers import numbers_last
from tests.live.support import caught_up, running
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


@pytest.fixture
def copying(folder, pystreams):
    """A program with its topics."""
    (folder / "copying.py").write_text(COPYING, encoding="utf-8")
    pystreams("topics", "create", "in", "out")
    return "copying"


@pytest.mark.parametrize("command", [("get", "rows", "k1"), ("scan", "rows")])
def test_where_nobody_runs_the_application_it_cannot_be_read_now(pystreams, copying, command):
    name, *arguments = command
    shown = pystreams(name, copying, *arguments)
    assert (shown.code, shown.out) == (1, "")
    assert "Error: copying does not run on embedded log" in shown.err
    assert "its group has no members" in shown.err
    assert "pystreams run copying --http HOST:PORT" in shown.err


@pytest.mark.parametrize(
    "endpoint,why",
    [(None, "they run without --http"), ("127.0.0.1:1", "nothing listens at 127.0.0.1:1")],
)
def test_where_no_instance_answers_it_cannot_be_read_now(pystreams, folder, copying, endpoint, why):
    app = load_application(copying)
    with (
        closing(EmbeddedBroker(folder / ".pystreams" / "log.db")) as broker,
        closing(Streams(app, broker=broker)) as streams,
    ):
        if endpoint is not None:
            streams.set_application_server(endpoint)
        streams.start()
        running(streams)
        shown = pystreams("get", copying, "rows", "k1")
    assert (shown.code, shown.out) == (1, "")
    assert "no instance of copying " in shown.err
    assert why in shown.err


def test_a_wrong_token_is_wrong_usage(pystreams, folder):
    token = folder / "token"
    token.write_text("0123456789abcdef")
    token.chmod(0o600)
    with asked(folder, counted, token="f" * 16) as application:
        where = ("--url", str(application.server.address))
        for given in ((), ("--token-file", str(token))):
            shown = pystreams("get", "apps.counts", "counts", "k1", *where, *given)
            assert (shown.code, "this application is read with a token" in shown.err) == (2, True)


def test_a_key_may_be_a_negative_number(pystreams, tmp_path_factory):
    def by_number(app):
        app.stream("in", key=int, value=int).group_by_key().count(name="counts")

    with asked(tmp_path_factory.mktemp("numbers"), by_number) as application:
        application.log.write("in", [(-7, 1, 1)], key=int)
        caught_up(application.streams)
        where = ("--url", str(application.server.address))
        for arguments in (("-7", *where), (*where, "-7"), (*where, "--", "-7")):
            assert pystreams("get", "apps.counts", "counts", *arguments).out == "1\n"
        assert pystreams("scan", "apps.counts", "counts", "--from", "-7", *where).lines == ["-7\t1\t1"]
        assert "No such option: -x" in pystreams("get", "apps.counts", "counts", "-x", *where).err


def test_values_of_options_may_be_negative_numbers_too():
    assert numbers_last(["a", "--as-of", "-5", "-7", "--json"], {"--as-of"}) == (
        ["a", "--as-of", "-5", "--json", "--", "-7"]
    )
    assert numbers_last(["a", "-x", "--json"], {"--as-of"}) == ["a", "-x", "--json"]


def test_messages_name_the_options_of_the_command(pystreams, url):
    for option in ("--from-time", "--to-time", "--as-of"):
        shown = pystreams("get", "apps.counts", "counts", "k1", option, "soon", "--url", url)
        assert (shown.code, f"{option}='soon' is not a time" in shown.err) == (2, True)
    shown = pystreams("scan", "apps.counts", "counts", "--from-time", "2024-01-01", "--url", url)
    assert "leave --from-time and --to-time out" in shown.err
    assert "from_time" not in shown.err
    shown = pystreams("scan", "apps.counts", "counts", "--from", "k3", "--to", "k1", "--url", url)
    assert "swap --from and --to" in shown.err


def test_times_are_for_people_on_a_terminal_and_milliseconds_elsewhere(
    pystreams, tmp_path_factory, monkeypatch
):
    def by_minute(app):
        grouped = app.stream("in", key=str, value=int).group_by_key()
        grouped.windowed_by(TimeWindows.tumbling(60_000)).count(name="counts")

    start = 1_795_901_580_000
    with asked(tmp_path_factory.mktemp("windows"), by_minute) as application:
        application.log.write("in", [("k", 1, start + 1)])
        caught_up(application.streams)
        where = ("--url", str(application.server.address))
        commands = (("get", "apps.counts", "counts", "k"), ("scan", "apps.counts", "counts"))
        for command in commands:
            assert pystreams(*command, *where).lines == [f"k\t{start}\t{start + 60_000}\t1\t{start + 1}"]
        monkeypatch.setenv("FORCE_COLOR", "1")
        for command in commands:
            shown = pystreams(*command, *where).out
            for time in ("2026-11-28T21:33:00Z", "2026-11-28T21:34:00Z", "2026-11-28T21:33:00.001Z"):
                assert time in shown
        (entry,) = map(json.loads, pystreams("scan", "apps.counts", "counts", "--json", *where).lines)
        assert (entry["start"], entry["end"]) == (start, start + 60_000)


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
