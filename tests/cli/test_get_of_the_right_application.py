"""``pystreams get`` and ``pystreams scan`` show only what the application has that the command line names, and say how
a key is written, and where an application is that no group knows."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest

from tests.live.support import caught_up
from tests.serving.queries_kit import asked

pytestmark = pytest.mark.live

PROGRAM = """
from pystreams import App

app = App("NAME")
app.stream("in", key=str, value=int).group_by_key().count(name="counts")
"""


class Till(msgspec.Struct, frozen=True):
    shop: str
    n: int


def counted(app):
    stream = app.stream("in", key=str, value=int)
    stream.group_by_key().count(name="counts")
    stream.group_by(lambda key, value: value, key=int).count(name="numbers")
    stream.group_by(Till, key=Till).count(name="tills")


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    with asked(tmp_path_factory.mktemp("counts"), counted) as application:
        application.log.write("in", [("k1", 1, 1)])
        caught_up(application.streams)
        yield application


@pytest.fixture
def url(counts) -> str:
    return f"http://{counts.server.address}"


@pytest.fixture
def program(folder):
    """Writes a program whose application has this id."""

    def program(application_id: str) -> str:
        name = f"program_of_{application_id.replace('-', '_')}"
        (folder / f"{name}.py").write_text(PROGRAM.replace("NAME", application_id), encoding="utf-8")
        return name

    return program


def test_each_answer_names_its_application(counts):
    for path in (
        "/",
        "/live",
        "/stores",
        "/stores/counts/keys/k1?freshness=committed",
        "/nothing",
        "/stores/none",
    ):
        assert counts.get(path).headers["pystreams-application"] == "asked", path


@pytest.mark.parametrize("asking", [("get", "counts", "k1"), ("scan", "counts")], ids=["get", "scan"])
@pytest.mark.parametrize("store", ["counts", "no-such-store"])
def test_the_answer_of_another_application_is_refused(pystreams, program, url, asking, store):
    command, _, *key = asking
    shown = pystreams(command, program("stock"), store, *key, "--url", url)
    assert (shown.code, shown.out) == (2, "")
    assert f"Error: {url} is the application asked, not stock" in shown.err
    assert "--url" in shown.err


def test_the_answer_of_the_right_one_is_shown(pystreams, program, url, monkeypatch):
    shown = pystreams("get", program("asked"), "counts", "k1", "--url", url)
    assert (shown.out, shown.err) == ("1\n", "")
    shown = pystreams("scan", program("stock"), "counts", "--application-id", "asked", "--url", url)
    assert (shown.lines, shown.err) == (["k1\t1\t1"], "")
    monkeypatch.setenv("PYSTREAMS_URL", url)
    assert pystreams("get", program("stock"), "counts", "k1").code == 2


def test_where_the_program_is_not_there_the_answer_says_whose_it_is(pystreams, url):
    shown = pystreams("get", "nowhere.counts", "counts", "k1", "--url", url)
    assert (shown.code, shown.out) == (0, "1\n")
    assert (
        "The answer is from the application asked. Whether that is nowhere.counts is not known" in shown.err
    )


def test_an_older_version_names_no_application(pystreams, program):
    class Older(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"key": "k1", "value": 1}')

    with serving(Older) as url:
        assert pystreams("get", program("stock"), "counts", "k1", "--url", url).out == "1\n"


@contextmanager
def serving(handler):
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@pytest.mark.parametrize(
    "store, key, said",
    [
        ("numbers", "seven", ["its keys are int", "write a whole number, for example 7"]),
        ("tills", "seven", ["its keys are Till", 'write it as JSON: {"shop": ..., "n": ...}']),
        (
            "tills",
            '{"shop": 1, "n": 2}',
            ["Expected `str`, got `int` - at `$.shop`", '{"shop": ..., "n": ...}'],
        ),
    ],
)
def test_a_wrong_key_is_answered_with_how_to_write_it_here(pystreams, program, url, store, key, said):
    name = program("asked")
    for command in (("get", name, store, key), ("scan", name, store, "--from", key)):
        shown = pystreams(*command, "--url", url)
        assert (shown.code, shown.out) == (2, "")
        assert f"{key!r} is not a key of this store" in shown.err
        for text in said:
            assert text in shown.err
        for text in ("percent", "malformed", "read the topic", "so that it fits"):
            assert text not in shown.err


def test_an_instance_that_nobody_knows_an_address_of_has_a_port(pystreams, program, folder, monkeypatch):
    name = program("hidden")
    pystreams("topics", "create", "in")
    monkeypatch.setattr("pystreams.runtime.group.application_status.endpoints_of", lambda *_: [])
    monkeypatch.setattr(
        "pystreams.broker.embedded.admin.EmbeddedAdmin.group_members", lambda *_: ["a member"]
    )
    shown = pystreams("get", name, "counts", "k1")
    assert shown.code == 1
    assert "no instance of hidden is known that answers queries" in shown.err
    assert "0.0.0.0" in shown.err
    assert "--url PORT" in shown.err
    assert "application_server" in shown.err
