"""Java and Python on one cluster: a Java process beside the Kafka that all tests share, started once."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.interop.java_side import JavaSide, why_not
from tests.kafka.server import KafkaServer
from tests.kafka.support import Cluster


@pytest.fixture(scope="session")
def java_process(server: KafkaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaSide]:
    reason = why_not()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    java = JavaSide(server.bootstrap_servers, tmp_path_factory.mktemp("java") / "java.log")
    yield java
    java.close()


@pytest.fixture
def java(java_process: JavaSide, cluster: Cluster) -> Iterator[JavaSide]:
    """The Java process; what a test leaves running in it is stopped, while the cluster's topics are still there."""
    yield java_process
    java_process.ask("stop-all")
