"""A registry behind TLS is asked if its certificate is one of the authority that the settings name; it gets the
certificate of the client that they name. A certificate that is not trusted ends the application, in words that help."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from pystreams import App
from pystreams.errors import SchemaRegistryError
from pystreams.serde import AvroSerde, SchemaRegistry
from pystreams.testing import play
from tests.kafka.secure_server import KEY_PASSWORD, Certificates, why_not
from tests.unit.serde.schema_registry_server import RegistryServer, running

ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    missing = why_not()
    if missing:
        pytest.skip(missing)
    return Certificates(tmp_path_factory.mktemp("certificates"))


def context(certificates: Certificates) -> ssl.SSLContext:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.server_store)
    return tls


@pytest.fixture
def server(certificates: Certificates) -> Iterator[RegistryServer]:
    with running(context(certificates)) as registry:
        yield registry


@pytest.fixture
def strict(certificates: Certificates) -> Iterator[RegistryServer]:
    """One that wants to know the client by a certificate of the authority."""
    tls = context(certificates)
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(certificates.ca)
    with running(tls) as registry:
        yield registry


def write(url: str, **paths: Path | str) -> bytes:
    settings = {name.replace("_", "."): str(value) for name, value in paths.items()}
    registry = SchemaRegistry(url, {"max.retries": "0", "timeout": "5", **settings})
    return AvroSerde(ORDER, registry=registry).serializer("orders")({"id": 1})


def test_the_authority_of_the_settings_is_trusted(server: RegistryServer, certificates: Certificates) -> None:
    assert write(server.url, ssl_ca_location=certificates.ca)[-1] == 2
    assert server.requests


def test_the_client_shows_the_certificate_of_the_settings(
    strict: RegistryServer, certificates: Certificates
) -> None:
    chain = {"ssl_ca_location": certificates.ca, "ssl_certificate_location": certificates.client}
    key, encrypted = certificates.client_key, certificates.encrypted_key
    assert write(strict.url, **chain, ssl_key_location=key)[-1] == 2
    assert write(strict.url, **chain, ssl_key_location=encrypted, ssl_key_password=KEY_PASSWORD)[-1] == 2


def test_a_registry_that_asks_for_a_certificate_and_gets_none_is_told(
    strict: RegistryServer, certificates: Certificates
) -> None:
    error = refusal(strict.url, ssl_ca_location=certificates.ca)
    assert "CERTIFICATE_REQUIRED" in error.why
    assert error.hint.startswith("give a certificate that the registry trusts")
    assert strict.requests == []


@pytest.mark.parametrize("wrong", ["authority", "no authority", "name"])
def test_a_registry_whose_certificate_is_not_trusted_is_asked_nothing_and_told(
    server: RegistryServer, certificates: Certificates, wrong: str
) -> None:
    url = server.url.replace("localhost", "127.0.0.1") if wrong == "name" else server.url
    authorities = {"authority": certificates.other_ca, "name": certificates.ca}
    error = refusal(url, **({"ssl_ca_location": authorities[wrong]} if wrong in authorities else {}))
    assert "CERTIFICATE_VERIFY_FAILED" in error.why
    assert "schema.registry.ssl.ca.location" in error.hint
    assert server.requests == []


@pytest.mark.parametrize("setting", ["schema_registry_ssl_ca_location", "ssl_ca_location"])
def test_the_brokers_authority_is_not_that_of_the_registry(
    server: RegistryServer, certificates: Certificates, setting: str
) -> None:
    settings: dict[str, Any] = {setting: str(certificates.ca), "schema_registry_max_retries": 0}
    app = App("orders", schema_registry_url=server.url, **settings)
    orders = app.stream("in", key=str, value=int).map_values(lambda n: {"id": n}, value=AvroSerde(ORDER))
    orders.to("orders")
    trusted = setting.startswith("schema_registry_")
    with nullcontext() if trusted else pytest.raises(SchemaRegistryError, match="an encrypted connection"):
        play(app, ("in", "k", 1, 1))
    assert bool(server.requests) == trusted


def refusal(url: str, **paths: Path | str) -> SchemaRegistryError:
    """The error of a registry that will not do better when it is asked again."""
    with pytest.raises(SchemaRegistryError) as caught:
        write(url, **paths)
    assert caught.value.what.startswith("an encrypted connection to the schema registry cannot be made")
    assert caught.value.action == "fail"
    return caught.value
