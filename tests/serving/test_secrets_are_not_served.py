"""No route of the server, no description of the program and no log line, also at the level DEBUG, has a secret of the
settings or the token in it."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.workers.workers_kit import WorkersRun
from tests.kafka.security.command_kit import command
from tests.live.support import Log, eventually
from tests.serving.http_kit import get
from tests.serving.routes_kit import all_answers, paths

pytestmark = [pytest.mark.live, pytest.mark.slow]

TOKEN = "a-token-of-tweedledee"
LOGIN = "mad-hatter:six-o-clock"
#: Parts of them are enough.
SECRETS = (TOKEN, "tweedledee", LOGIN, "six-o-clock", "looking-glass", "jabberwock")

#: A record fails, so that there are failures to show; and whatever is logged is printed.
PROGRAM = """
import logging

from pystreams import App

for name in ("pystreams", "asyncio", "uvicorn"):
    logging.getLogger(name).setLevel(logging.DEBUG)

def check(word):
    if word == "broken":
        raise ValueError("this word is broken")
    return word

app = App("guarded", processing_exception_handler="continue", poll_ms=10)
app.stream("in", key=str, value=str).map_values(check, value=str).group_by_key().count(name="counts")
"""


@pytest.fixture
def environment() -> dict[str, str]:
    """With a secret of each kind that an application without Kafka takes."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYSTREAMS_")}
    return own | {
        "PYSTREAMS_SCHEMA_REGISTRY_URL": "http://alice:looking-glass@localhost:9",
        "PYSTREAMS_BASIC_AUTH_USER_INFO": LOGIN,
        "PYSTREAMS_SASL_PASSWORD": "jabberwock",
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "guarded.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "token").write_text(TOKEN, encoding="utf-8")
    (tmp_path / "token").chmod(0o600)
    (tmp_path / ".pystreams").mkdir()
    with closing(Log(tmp_path / ".pystreams")) as log:
        log.create("in", partitions=2)
        log.write("in", [("a", "to", 1), ("b", "broken", 2), ("a", "be", 3)], value=str)
    return tmp_path


def secrets_in(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


def test_the_routes_are_those_that_there_are():
    found = paths("counts", "a")
    assert {"/", "/state", "/events", "/stores/counts/keys/a", "/static/page.js", "/metrics"} <= set(found)


@pytest.mark.parametrize("workers", [(), ("--workers", "1")], ids=["alone", "worker"])
def test_no_route_and_no_log_line_has_a_secret(folder, environment, workers):
    own = {name: value for name, value in environment.items() if name.startswith("PYSTREAMS_")}
    with closing(
        WorkersRun(
            folder,
            "guarded",
            "--http",
            "127.0.0.1:0",
            "--http-token-file",
            "token",
            "--verbose",
            *workers,
            **own,
        )
    ) as run:
        address = run.says(r"Metrics, health and stores are at http://(\S+):")[1]
        allowed = {"Authorization": f"Bearer {TOKEN}"}
        eventually(lambda: "this word is broken" in get(address, "/state", **allowed).text, run.text)
        for path in ("/stores/counts/keys/a", "/ready", "/lag"):
            eventually(lambda path=path: get(address, path, **allowed).status == 200)
        statuses: dict[str, int] = {}
        for headers in (allowed, {}):
            for path, kind, status, text in all_answers(address, "counts", "a", **headers):
                assert secrets_in(text) == [], (path, kind)
                assert status != 500, (path, kind, text)
                statuses[path] = min(status, statuses.get(path, status))
        # They were answered, not refused.
        absent = {path for path, status in statuses.items() if status != 200}
        assert absent == {"/nothing", "/stores/nothing"}
        run.send(signal.SIGTERM)
        run.ends_with(0)
    assert " DEBUG pystreams." in run.text
    assert secrets_in(run.text) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["describe", "guarded"],
        ["describe", "guarded", "--format", "json"],
        ["describe", "guarded", "--format", "svg"],
        ["run", "guarded", "--show-config"],
        ["doctor", "guarded"],
    ],
    ids=" ".join,
)
def test_no_description_has_a_secret(folder, environment, arguments):
    code, printed = command(folder, environment, *arguments)
    assert code == 0, printed
    assert secrets_in(printed) == []
