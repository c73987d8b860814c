"""The permissions that the page on security names are enough for an application: it is given these and no others."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from pystreams.broker.port import TopicSpec
from tests.docs.manual import DOCS
from tests.kafka.secure_server import PASSWORD, USER, Certificates, SecureServer
from tests.kafka.security.command_kit import command
from tests.kafka.server import KafkaServer
from tests.kafka.support import connect
from tests.live.support import eventually

PROGRAM = """
from pystreams import App

app = App("shop")
orders = app.stream("orders", key=str, value=str)
orders.group_by(lambda key, order: order, key=str).count(name="counts").to_stream().to("counts")
"""
#: `topic `orders` | literal | READ, WRITE`
_ROW = re.compile(
    r"^\| (topic|group|transactional id) `([\w-]+)` \| (literal|prefixed) \| ([A-Z_, ]+) \|$", re.MULTILINE
)


def permissions() -> list[AclBinding]:
    """Those in the table of the page."""
    rows = _ROW.findall((DOCS / "security.md").read_text(encoding="utf-8"))
    assert len(rows) == 5
    return [
        AclBinding(
            ResourceType[kind.replace(" ", "_").upper()],
            name,
            ResourcePatternType[pattern.upper()],
            f"User:{USER}",
            "*",
            AclOperation[operation],
            AclPermissionType.ALLOW,
        )
        for kind, name, pattern, operations in rows
        for operation in operations.split(", ")
    ]


@pytest.fixture(scope="module")
def guarded(
    server: KafkaServer, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecureServer]:
    """A broker that forbids all that is not allowed, but to those on its plain listener: itself and the tests."""
    guarded = SecureServer(tmp_path_factory.mktemp("guarded"), certificates)
    guarded.add_properties(
        {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
    )
    guarded.start()
    with closing(connect(guarded.bootstrap_servers)) as broker, closing(broker.admin()) as admin:
        admin.create_topics([TopicSpec(name, 2) for name in ("orders", "counts")])
    yield guarded
    guarded.stop()


@pytest.fixture
def environment(guarded: SecureServer, certificates: Certificates, tmp_path: Path) -> dict[str, str]:
    (tmp_path / "shop.py").write_text(PROGRAM, encoding="utf-8")
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYSTREAMS_")}
    return own | {
        "PYSTREAMS_BOOTSTRAP_SERVERS": guarded.sasl,
        "PYSTREAMS_SECURITY_PROTOCOL": "SASL_SSL",
        "PYSTREAMS_SASL_MECHANISM": "PLAIN",
        "PYSTREAMS_SASL_USERNAME": USER,
        "PYSTREAMS_SASL_PASSWORD": PASSWORD,
        "PYSTREAMS_SSL_CA_LOCATION": str(certificates.ca),
    }


@pytest.fixture
def granted(guarded: SecureServer) -> Iterator[list[AclBinding]]:
    client = AdminClient({"bootstrap.servers": guarded.bootstrap_servers})
    every = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    acls = permissions()
    for future in client.create_acls(acls).values():
        future.result()
    eventually(lambda: len(client.describe_acls(every).result()) == len(acls), "the rules are in force")
    yield acls
    for future in client.delete_acls([every]).values():
        future.result()
    eventually(lambda: client.describe_acls(every).result() == [], "no rule is left")


def test_without_permissions_it_is_refused(tmp_path: Path, environment: dict[str, str]) -> None:
    code, printed = command(tmp_path, environment, "run", "shop", "--until-caught-up")
    assert code in {1, 4}, printed


def test_with_those_of_the_page_it_runs_and_can_be_reset(
    tmp_path: Path,
    guarded: SecureServer,
    environment: dict[str, str],
    granted: list[AclBinding],
) -> None:
    """``run`` at least once, and then exactly once, which needs more."""
    plain = {"PYSTREAMS_BOOTSTRAP_SERVERS": guarded.bootstrap_servers, "PATH": os.environ["PATH"]}
    run = ["run", "shop", "--until-caught-up", "-s"]
    for commands in (
        [["doctor", "shop"], [*run, "processing_guarantee=at_least_once"]],
        [[*run, "processing_guarantee=exactly_once_v2"], ["lag", "shop"], ["reset", "shop", "--yes"]],
    ):
        code, printed = command(tmp_path, plain, "produce", "orders", stdin="tea\nbread\ntea\n")
        assert code == 0, printed
        for arguments in commands:
            code, printed = command(tmp_path, environment, *arguments)
            assert code == 0, f"{arguments}: {printed}"
            assert "permission" not in printed.lower(), f"{arguments}: {printed}"
