"""A real Kafka, started once for all tests of this folder; topics and groups are cleared between tests.

Where none can be had the tests skip and say why; with ``CI=true`` they fail instead.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kafka.server import KafkaServer, why_not

with warnings.catch_warnings():
    # kafka-python reads its message schemas by a function that is deprecated since Python 3.11.
    warnings.simplefilter("ignore", DeprecationWarning)
    from tests.kafka.support import Cluster


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    reason = why_not()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    server = KafkaServer(tmp_path_factory.mktemp("kafka"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def cluster(server: KafkaServer, tmp_path: Path) -> Iterator[Cluster]:
    """An empty cluster; everything that was opened through it is closed at the end."""
    cluster = Cluster(server.bootstrap_servers, tmp_path)
    yield cluster
    cluster.close()
