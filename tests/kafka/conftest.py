"""Servers that may be broken, and one that asks for logins; the one that most tests share is in tests/conftest.py."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kafka.server import KafkaServer

with warnings.catch_warnings():
    # kafka-python reads its message schemas by a function that is deprecated since Python 3.11.
    warnings.simplefilter("ignore", DeprecationWarning)
    from tests.kafka.secure_server import Certificates, SecureServer
    from tests.kafka.secure_server import why_not as no_certificates
    from tests.kafka.support import Cluster
    from tests.kafka.trouble_support import AUTHORIZER, cluster_on


@pytest.fixture(scope="session")
def fragile_server(server: KafkaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """One that may be killed and frozen. (``server`` is asked for because it knows whether Kafka can be had.)"""
    fragile = KafkaServer(tmp_path_factory.mktemp("fragile"), properties=AUTHORIZER)
    yield fragile
    fragile.stop()


@pytest.fixture
def fragile(fragile_server: KafkaServer, tmp_path: Path) -> Iterator[Cluster]:
    """An empty cluster on it, which is up and running."""
    with cluster_on(fragile_server, tmp_path) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    reason = no_certificates()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def secure(
    server: KafkaServer, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecureServer]:
    """A broker that asks for logins. (``server`` is asked for because it knows whether Kafka can be had.)"""
    secure = SecureServer(tmp_path_factory.mktemp("secure"), certificates)
    secure.start()
    yield secure
    secure.stop()
