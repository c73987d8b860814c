"""A registry for each test: the clients' own mock, or a server on the loopback interface."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from pystreams.serde import SchemaRegistry
from pystreams.serde.schema_registry.clients import close_clients
from tests.unit.serde.schema_registry_server import RegistryServer, running


@pytest.fixture
def mock() -> Iterator[SchemaRegistry]:
    """A mock registry that nobody else has."""
    yield SchemaRegistry(f"mock://{uuid.uuid4()}")
    close_clients()


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    """A registry that can refuse and fail."""
    with running() as registry:
        yield registry


@pytest.fixture
def registry(server: RegistryServer) -> SchemaRegistry:
    """The server, asked once."""
    return SchemaRegistry(server.url, {"max.retries": "0", "timeout": "5"})
