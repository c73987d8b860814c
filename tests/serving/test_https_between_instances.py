"""Instances with certificates ask each other over HTTPS, and only those whose certificate their authority has signed.
They show their own to whoever wants to know who asks, and so do ``pystreams get`` and ``scan``."""

from __future__ import annotations

import json
import signal
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pystreams.cli.application_client import AnswerError, ApplicationClient
from pystreams.errors import ConfigError
from pystreams.serving.query_errors import UnreachableError
from pystreams.serving.stores.parts import StorePart
from pystreams.serving.stores.peers import PART, Peers, encode_part
from pystreams.serving.stores.questions import Question
from pystreams.serving.tls import Tls, asking
from tests.cli.workers.workers_kit import WorkersRun
from tests.environment import without
from tests.kafka.secure_server import Certificates, why_not
from tests.live.support import Log, eventually
from tests.serving.asyncio_kit import run_apart

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

COUNTING = """
from pystreams import App

app = App("counting", poll_ms=10)
app.stream("in", key=str, value=int).group_by_key().count(name="counts")
"""

PARTITIONS = 4
KEYS = [str(n) for n in range(12)]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def key_of(certificate: Path) -> Path:
    return certificate.with_suffix(".key")


class Instance(WorkersRun):
    """A process of the application, with a certificate."""

    def __init__(self, folder: Path, certificates: Certificates, *arguments: str) -> None:
        server = certificates.server
        files = "--http-cert", str(server), "--http-key", str(key_of(server)), *arguments
        super().__init__(folder, "counting", "--http", "localhost:0", *files)
        self._trusting = asking(certificates.ca, certificates.client, certificates.client_key)

    @property
    def url(self) -> str:
        return self.says(r"Metrics, health and stores are at (https://\S+):")[1]

    def get(self, path: str) -> tuple[int, Any]:
        try:
            with urllib.request.urlopen(f"{self.url}{path}", context=self._trusting, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def has(self) -> list[int]:
        return self.get("/stores/counts")[1]["here"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """With the application, and the log that it finds there."""
    without(monkeypatch, "PYSTREAMS_", "NOTIFY_", "WATCHDOG_")
    (tmp_path / ".pystreams").mkdir()
    (tmp_path / "counting.py").write_text(COUNTING, encoding="utf-8")
    with closing(Log(tmp_path / ".pystreams")) as log:
        log.create("in", partitions=PARTITIONS)
        for number, key in enumerate(KEYS):
            log.write("in", [(key, 1, number)], partition=number % PARTITIONS)
        yield tmp_path


@contextmanager
def two(folder: Path, certificates: Certificates, *arguments: str) -> Iterator[list[Instance]]:
    """Two processes that have two partitions each."""
    with (
        closing(Instance(folder, certificates, *arguments)) as one,
        closing(Instance(folder, certificates, *arguments)) as other,
    ):
        eventually(lambda: [len(one.has()), len(other.has())] == [2, 2], f"{one.text}\n{other.text}")
        yield [one, other]
        for instance in (one, other):
            instance.send(signal.SIGTERM)
        for instance in (one, other):
            instance.ends_with(0)


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize("demanded", [False, True], ids=["asked-by-all", "asked-by-members"])
def test_each_of_two_processes_answers_for_the_keys_of_the_other(folder, certificates, demanded):
    demands = ["--http-client-ca", str(certificates.ca)] if demanded else []
    with two(folder, certificates, "--http-ca", str(certificates.ca), *demands) as instances:
        for instance in instances:
            for key in KEYS:
                eventually(lambda at=f"/stores/counts/keys/{key}", of=instance: of.get(at)[0] == 200)
            assert [entry["key"] for entry in instance.get("/stores/counts/entries")[1]["entries"]] == sorted(
                KEYS
            )
        shown = subprocess.run(
            [
                sys.executable,
                "-m",
                "pystreams",
                "threads",
                "counting",
                "--json",
                *("--ca", str(certificates.ca)),
                *("--cert", str(certificates.client), "--key", str(certificates.client_key)),
            ],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        found = json.loads(shown.stdout)
        assert found["silent"] == {}
        assert [thread["now"]["name"] == thread["thread"] for thread in found["threads"]] == [True, True]


@pytest.mark.live
@pytest.mark.slow
def test_a_process_that_does_not_trust_the_other_says_why_it_does_not_answer(folder, certificates):
    with two(folder, certificates, "--http-ca", str(certificates.other_ca)) as (one, _):
        answers = [one.get(f"/stores/counts/keys/{key}") for key in KEYS]
        refusals = [refusal for status, refusal in answers if status != 200]
        assert 0 < len(refusals) < len(KEYS)
        for refusal in refusals:
            assert refusal["code"] == "unreachable"
            assert "certificate verify failed" in refusal["why"]
            assert "--http-ca" in refusal["hint"]


class Answers(BaseHTTPRequestHandler):
    """Answers instances and programs, the same to all."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        is_instance = self.headers["Pystreams-Part"] is not None
        content = (
            encode_part(StorePart(partitions=1, read=[0])) if is_instance else b'{"key": "a", "value": 1}'
        )
        self.send_response(200)
        self.send_header("Content-Type", PART if is_instance else "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def demanding(certificates) -> Iterator[str]:
    """The address of a server that only those may ask who show a certificate of the authority."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=certificates.ca)
    context.load_cert_chain(certificates.server, key_of(certificates.server))
    context.verify_mode = ssl.CERT_REQUIRED
    with ThreadingHTTPServer(("localhost", 0), Answers) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"localhost:{server.server_port}"
        finally:
            server.shutdown()


def ask(endpoint: str, trusting: ssl.SSLContext) -> StorePart:
    with closing(Peers(None, trusting)) as peers:
        return run_apart(peers.ask(endpoint, Question("counts", "a")))


def test_an_instance_shows_its_certificate_to_one_that_wants_to_know_who_asks(certificates, demanding):
    own = Tls(certificates.client, key_of(certificates.client), certificates.ca)
    assert ask(demanding, own.trusting()).read == [0]
    with pytest.raises(UnreachableError, match="cannot be asked over HTTPS"):
        ask(demanding, asking(certificates.ca, None, None))


def test_commands_show_a_certificate_and_trust_the_authority_that_they_were_given(certificates, demanding):
    own = asking(certificates.ca, certificates.client, key_of(certificates.client))
    # Without a scheme it is HTTPS, because there are certificates.
    assert ApplicationClient(demanding, None, own).key("counts", "a", {}) == {"key": "a", "value": 1}
    strangers = asking(certificates.ca, None, None), asking(certificates.other_ca, None, None)
    for stranger in strangers:
        with pytest.raises(AnswerError, match="cannot be asked over HTTPS") as refused:
            ApplicationClient(demanding, None, stranger).key("counts", "a", {})
        assert "--ca FILE" in refused.value.hint
    with pytest.raises(AnswerError, match="cannot be asked over HTTPS"):
        ApplicationClient(f"https://{demanding}", None).key("counts", "a", {})


def test_files_that_are_no_certificates_are_named(certificates, tmp_path):
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("nothing", encoding="utf-8")
    with pytest.raises(ConfigError, match="certificates of the authority cannot be used") as refused:
        asking(nothing, None, None)
    assert str(nothing) in refused.value.where
    with pytest.raises(ConfigError, match="certificate of the client cannot be used"):
        asking(None, nothing, nothing)
