"""A project that ``pystreams init`` has made runs on a real Kafka as it is: feed, application, results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pystreams import open_log
from pystreams.cli.commands.init import project_files


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    for path, text in project_files("shop"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def test_every_order_is_in_the_revenue(cluster, server, project):
    environment = {**os.environ, "PYSTREAMS_BOOTSTRAP_SERVERS": server.bootstrap_servers}
    for program in (["shop.feed"], ["pystreams", "run", "shop.app", "--until-caught-up"]):
        done = subprocess.run(
            [sys.executable, "-m", *program],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    with open_log(bootstrap_servers=server.bootstrap_servers) as log:
        orders = [record.value for record in log.consume("orders", key=str, value=dict)]
        latest = {
            (record.key, record.value["hour"]): record.value
            for record in log.consume("revenue", key=str, value=dict)
        }
    assert len(orders) == 300
    assert sum(revenue["orders"] for revenue in latest.values()) == 300
    spent = sum(order["quantity"] * order["unit_price_cents"] for order in orders)
    assert sum(revenue["cents"] for revenue in latest.values()) == spent
