"""Passwords are in the settings and nowhere else: not in what commands print and log, in pages, arguments of processes
or files."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pystreams.broker.port import TopicSpec
from tests.cli.workers.workers_kit import WorkersRun
from tests.kafka.secure_server import PASSWORD, USER, Certificates, SecureServer
from tests.kafka.security.command_kit import command
from tests.kafka.support import connect
from tests.linux import children, command_line
from tests.live.support import eventually
from tests.serving.http_kit import get
from tests.serving.routes_kit import all_answers

WRONG = "not-the-looking-glass"
REGISTRY_LOGIN = "mad-hatter:six-o-clock"
#: What must never show. A quarter of the password is enough: quoting may change the rest.
SECRETS = (PASSWORD, "looking-glass", WRONG, REGISTRY_LOGIN, "six-o-clock")

PROGRAM = """
import logging

from pystreams import App

for name in ("pystreams", "kafka"):
    logging.getLogger(name).setLevel(logging.DEBUG)

def split(line):
    if line == "broken":
        raise ValueError("this line is broken")
    return line.split()

app = App("guarded")
app.stream("guarded-in", value=str).flat_map_values(split).group_by(lambda word: word, key=str).count(
    name="counts"
).to_stream().to("guarded-out")
"""


@pytest.fixture
def environment(secure: SecureServer, certificates: Certificates) -> dict[str, str]:
    """Of a process that logs in as its environment says."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYSTREAMS_")}
    return own | {
        "PYSTREAMS_BOOTSTRAP_SERVERS": secure.sasl,
        "PYSTREAMS_SECURITY_PROTOCOL": "SASL_SSL",
        "PYSTREAMS_SASL_MECHANISM": "PLAIN",
        "PYSTREAMS_SASL_USERNAME": USER,
        "PYSTREAMS_SASL_PASSWORD": PASSWORD,
        "PYSTREAMS_SSL_CA_LOCATION": str(certificates.ca),
        "PYSTREAMS_SCHEMA_REGISTRY_URL": "http://localhost:9",
        "PYSTREAMS_BASIC_AUTH_USER_INFO": REGISTRY_LOGIN,
    }


@pytest.fixture(autouse=True)
def topics(secure: SecureServer, tmp_path: Path) -> Iterator[None]:
    (tmp_path / "guarded.py").write_text(PROGRAM, encoding="utf-8")
    names = ["guarded-in", "guarded-out"]
    with closing(connect(secure.bootstrap_servers)) as broker, closing(broker.admin()) as admin:
        admin.create_topics([TopicSpec(name, 2) for name in names])
        yield
        admin.delete_topics([name for name in admin.describe_topics() if name.startswith("guarded")])


def secrets_in(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


COMMANDS = [
    ["topics", "list"],
    ["produce", "guarded-in"],
    ["doctor", "guarded"],
    ["run", "guarded", "--show-config"],
    ["run", "guarded", "--until-caught-up", "--verbose"],
    ["run", "guarded", "--until-caught-up", "--verbose", "--log-format", "json"],
    ["status", "guarded", "--json"],
    ["lag", "guarded"],
    ["describe", "guarded"],
    ["describe", "guarded", "--format", "json"],
    ["describe", "guarded", "--format", "svg"],
    ["consume", "guarded-out"],
    ["reset", "guarded", "--yes"],
]


def test_commands_that_work_show_and_write_no_secret(tmp_path: Path, environment: dict[str, str]) -> None:
    looked_at = set()
    for arguments in COMMANDS:
        code, printed = command(tmp_path, environment, *arguments, stdin="to be or not\n")
        # Nobody runs it while its status is asked for.
        assert code == (1 if arguments[0] == "status" else 0), f"{arguments}: {printed}"
        assert secrets_in(printed) == [], arguments
        for path in (tmp_path / ".pystreams").rglob("*"):
            if path.is_file():
                looked_at.add(path.name)
                content = path.read_bytes()
                assert [secret for secret in SECRETS if secret.encode() in content] == [], path
    assert {"topology.json", "process.json", "CURRENT"} <= looked_at


def test_commands_that_are_refused_show_no_secret(tmp_path: Path, environment: dict[str, str]) -> None:
    refused = environment | {"PYSTREAMS_SASL_PASSWORD": WRONG}
    for arguments in (
        ["topics", "list"],
        ["doctor", "guarded"],
        ["run", "guarded", "--verbose"],
        ["run", "guarded", "-s", f"sasl.pasword={WRONG}"],
        ["run", "guarded", "-s", f"sasl.jaas.config=Login required password={WRONG}"],
        ["status", "guarded"],
    ):
        code, printed = command(tmp_path, refused, *arguments)
        assert code != 0, f"{arguments}: {printed}"
        assert secrets_in(printed) == [], f"{arguments}: {printed}"


def test_the_traceback_of_a_program_shows_no_secret(tmp_path: Path, environment: dict[str, str]) -> None:
    assert command(tmp_path, environment, "produce", "guarded-in", stdin="broken\n")[0] == 0
    code, printed = command(tmp_path, environment, "run", "guarded", "--until-caught-up", "--verbose")
    assert code == 1
    assert "this line is broken" in printed
    assert secrets_in(printed) == []


def test_pages_and_processes_show_no_secret(tmp_path: Path, environment: dict[str, str]) -> None:
    own = {name: value for name, value in environment.items() if name.startswith("PYSTREAMS_")}
    run = WorkersRun(tmp_path, "guarded", "--workers", "1", "--http", "127.0.0.1:0", "--verbose", **own)
    try:
        address = run.says(r"Metrics, health and stores are at http://(\S+):")[1]
        eventually(lambda: get(address, "/ready").status == 200)
        for path, kind, _, answer in all_answers(address, "counts", "be"):
            assert secrets_in(answer) == [], (path, kind)
        workers = list(run.all_there(1).values())
        for pid in (run.process.pid, *workers, *children(run.process.pid)):
            assert secrets_in(" ".join(command_line(pid))) == []
        run.send(signal.SIGTERM)
        run.ends_with(0)
    finally:
        run.close()
    assert secrets_in(run.text) == []
