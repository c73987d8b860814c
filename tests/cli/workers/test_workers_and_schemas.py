"""Workers have the registry that the program, the environment or the command line named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pystreams.serde import AvroSerde
from tests.cli.workers.workers_kit import WorkersRun
from tests.live.support import Log
from tests.unit.serde.schema_registry_server import RegistryServer, running

ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "cents", "type": "long"}]}'

PROGRAM = f"""
from pystreams import App
from pystreams.serde import AvroSerde

ORDER = AvroSerde({ORDER!r})
app = App("orders", poll_ms=10)
app.stream("orders", key=str, value=ORDER).group_by(lambda order: order["cents"] % 7, key=AvroSerde('"long"')).reduce(
    lambda a, b: {{"cents": a["cents"] + b["cents"]}}, name="sums"
).to_stream().to("sums")
"""


@pytest.fixture
def log(folder: Path) -> Iterator[Log]:
    (folder / ".pystreams").mkdir()
    (folder / "orders_program.py").write_text(PROGRAM, encoding="utf-8")
    log = Log(folder / ".pystreams")
    log.create("orders", "sums", partitions=4)
    yield log
    log.close()


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with running() as registry:
        registry.login = "alice:hunter2"
        yield registry


def test_two_workers_read_and_write_with_the_registry_of_the_environment(
    log: Log, server: RegistryServer, folder
):
    settings: dict[str, Any] = {
        "schema.registry.url": server.url,
        "schema.registry.basic.auth.user.info": server.login,
    }
    order, key = AvroSerde(ORDER).configured(settings), AvroSerde('"long"').configured(settings)
    log.write("orders", [(str(i), {"cents": i}, 1_000) for i in range(700)], value=order)
    run = WorkersRun(
        folder,
        "orders_program",
        "--workers",
        "2",
        "--until-caught-up",
        PYSTREAMS_SCHEMA_REGISTRY_URL=server.url,
        PYSTREAMS_BASIC_AUTH_USER_INFO=str(server.login),
    )
    try:
        run.ends_with(0)
    finally:
        run.close()
    assert log.table("sums", key=key, value=order) == {c: {"cents": sum(range(c, 700, 7))} for c in range(7)}
    assert "hunter2" not in run.text
