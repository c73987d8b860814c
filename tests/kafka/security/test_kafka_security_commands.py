"""Commands log in, too: those about an application as the application does, the others as the environment says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pystreams.broker.port import TopicSpec
from tests.cli.conftest import Command, folder, pystreams
from tests.kafka.secure_server import PASSWORD, USER, Certificates, SecureServer
from tests.kafka.support import connect

__all__ = ["folder", "pystreams"]


@pytest.fixture(autouse=True)
def topic(secure: SecureServer) -> Iterator[None]:
    with closing(connect(secure.bootstrap_servers)) as broker, closing(broker.admin()) as admin:
        admin.create_topics([TopicSpec("in", 1)])
        yield
        admin.delete_topics(["in"])


def program(folder: Path, secure: SecureServer, certificates: Certificates) -> str:
    (folder / "guarded_program.py").write_text(
        "from pystreams import App\n"
        f"app = App('guarded', bootstrap_servers={secure.sasl!r}, security_protocol='SASL_SSL',\n"
        f"          sasl_mechanism='PLAIN', sasl_username={USER!r}, ssl_ca_location={str(certificates.ca)!r})\n"
        "app.stream('in').to('out')\n",
        encoding="utf-8",
    )
    return "guarded_program"


def test_a_reset_logs_in_as_its_application(
    pystreams: Command, folder: Path, secure: SecureServer, certificates: Certificates
):
    name = program(folder, secure, certificates)
    done = pystreams("reset", name, "--yes", "-s", f"sasl.password={PASSWORD}")
    assert done.code == 0, done.err
    assert PASSWORD not in done.out + done.err


def test_a_command_about_topics_logs_in_as_the_environment_says(
    pystreams: Command, secure: SecureServer, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
):
    for name, value in {
        "SECURITY_PROTOCOL": "SASL_SSL",
        "SASL_MECHANISM": "PLAIN",
        "SASL_USERNAME": USER,
        "SASL_PASSWORD": PASSWORD,
        "SSL_CA_LOCATION": str(certificates.ca),
    }.items():
        monkeypatch.setenv(f"PYSTREAMS_{name}", value)
    listed = pystreams("topics", "list", "--bootstrap-servers", secure.sasl)
    assert listed.code == 0, listed.err
    assert any(line.startswith("in\t") for line in listed.lines)
