"""What is wrong with a login or a certificate is told at once, in words, and without the secret."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from pystreams.errors import BrokerError, ConfigError, StreamsError
from tests.kafka.secure_server import KEY_PASSWORD, PASSWORD, USER, Certificates, SecureServer
from tests.kafka.support import connect

#: What is hopeless is told before this. The rest of the time is the machine's.
AT_ONCE_S = 30.0


def login(certificates: Certificates, **changes: Any) -> dict[str, Any]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(certificates.ca),
    } | {name.replace("_", "."): value for name, value in changes.items()}


def identity(certificates: Certificates, **changes: Any) -> dict[str, Any]:
    return {
        "security.protocol": "SSL",
        "ssl.ca.location": str(certificates.ca),
        "ssl.certificate.location": str(certificates.client),
        "ssl.key.location": str(certificates.encrypted_key),
        "ssl.key.password": KEY_PASSWORD,
    } | {name.replace("_", "."): value for name, value in changes.items()}


def refusal(kind: type[StreamsError], address: str, settings: dict[str, Any]) -> StreamsError:
    """The error of a connection, which is to take a long time to be given up."""
    started = time.monotonic()
    with pytest.raises(kind) as caught:
        connect(address, client_settings=settings, connect_timeout_s=60.0)
    assert time.monotonic() - started < AT_ONCE_S
    assert all(secret not in str(caught.value) for secret in ("wrong-password", PASSWORD, KEY_PASSWORD))
    return caught.value


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password(secure: SecureServer, certificates: Certificates, mechanism: str):
    settings = login(certificates, sasl_password="wrong-password", sasl_mechanism=mechanism)
    error = refusal(BrokerError, secure.sasl, settings)
    assert error.what == "Kafka refuses the login"
    assert "sasl.password" in error.hint


def test_an_authority_that_did_not_sign_the_brokers_certificate(
    secure: SecureServer, certificates: Certificates
):
    error = refusal(BrokerError, secure.sasl, login(certificates, ssl_ca_location=str(certificates.other_ca)))
    assert error.what == "An encrypted connection to Kafka cannot be made"
    assert "certificate verify failed" in error.why
    assert "ssl.ca.location" in error.hint


def test_a_host_that_the_certificate_does_not_name(secure: SecureServer, certificates: Certificates):
    error = refusal(BrokerError, f"127.0.0.1:{secure.sasl_port}", login(certificates))
    assert error.what == "An encrypted connection to Kafka cannot be made"
    assert "certificate verify failed" in error.why
    assert "its host names with bootstrap_servers" in error.hint


def test_no_certificate_where_the_broker_asks_for_one(secure: SecureServer, certificates: Certificates):
    settings = {"security.protocol": "SSL", "ssl.ca.location": str(certificates.ca)}
    error = refusal(BrokerError, secure.mutual, settings)
    assert error.what == "An encrypted connection to Kafka cannot be made"
    assert "does the listener demand a client certificate?" in error.hint


@pytest.mark.parametrize("password", ["wrong-password", None])
def test_an_encrypted_key_without_its_password(certificates: Certificates, password: str | None):
    settings = identity(certificates, ssl_key_password=password)
    settings = {name: value for name, value in settings.items() if value is not None}
    error = refusal(ConfigError, "localhost:1", settings)
    assert error.what == "The encrypted connection to Kafka cannot be set up"
    assert str(certificates.encrypted_key) in error.where
    assert "ssl.key.password" in error.hint


@pytest.mark.parametrize("name", ["ssl_ca_location", "ssl_certificate_location", "ssl_key_location"])
def test_a_file_that_is_not_there(certificates: Certificates, name: str):
    error = refusal(ConfigError, "localhost:1", identity(certificates, **{name: "nowhere.pem"}))
    assert error.where == f"{name.replace('_', '.')}=nowhere.pem"
    assert error.why == "No such file or directory"
    assert error.hint == f"looked for it from {Path.cwd()}"


def test_a_file_that_is_no_certificate(certificates: Certificates, tmp_path: Path):
    path = tmp_path / "ca.crt"
    path.write_text("no certificate")
    error = refusal(ConfigError, "localhost:1", login(certificates, ssl_ca_location=str(path)))
    assert error.where == f"ssl.ca.location={path}"
    assert "certificates as PEM" in error.hint


def test_nobody_listens_at_all_is_not_blamed_on_the_login(certificates: Certificates):
    with pytest.raises(BrokerError, match="cannot be reached"):
        connect("localhost:1", client_settings=login(certificates), connect_timeout_s=0.5)
