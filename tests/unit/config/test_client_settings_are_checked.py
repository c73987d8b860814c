"""A setting of a client has a value that it can have, and none that would make results wrong."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pystreams.config import StreamsConfig
from pystreams.errors import ConfigError


def settings(**given: Any) -> dict[str, str]:
    return dict(StreamsConfig.of(application_id="app", **given).client_settings)


@pytest.mark.parametrize(
    "name,value,why",
    [
        ("acks", "1", "changelogs could lose acknowledged records"),
        ("acks", 0, "changelogs could lose"),
        ("enable.idempotence", False, "could write an older value of a changelog after a newer one"),
        ("enable.idempotence", "false", "could write an older value"),
        ("max.in.flight.requests.per.connection", 6, "does not keep the order of records"),
        ("retries", 0, "1 to 2147483647"),
        ("linger.ms", -1, "0 to 900000"),
        ("linger.ms", "soon", "a timedelta or a whole number of milliseconds"),
        ("fetch.min.bytes", 0, "1 to 100000000"),
        ("metadata.max.age.ms", 7_200_000, "1 to 3600000"),
        ("compression.type", "brotli", "none or gzip or snappy or lz4 or zstd"),
        ("isolation.level", "serializable", "read_uncommitted or read_committed"),
        ("connections.max.idle.ms", 0, "1 to 2147483647, or -1"),
        ("security.protocol", "TLS", "PLAINTEXT or SSL or SASL_PLAINTEXT or SASL_SSL"),
        ("sasl.mechanism", "GSSAPI", "without Kerberos"),
        ("sasl.mechanism", "DIGEST", "PLAIN or SCRAM-SHA-256"),
        ("ssl.truststore.type", "JKS", "keytool -importkeystore"),
        ("ssl.keystore.type", "PKCS12", "openssl pkcs12"),
        ("ssl.endpoint.identification.algorithm", "http", "https, or empty"),
        ("sasl.oauthbearer.token.endpoint.url", "ftp://a", "https, http or file"),
        ("sasl.oauthbearer.token.endpoint.url", "https://me:pw@a", "without a password"),
        ("check.crcs", "perhaps", "true or false"),
        ("client.dns.lookup", "default", "use_all_dns_ips"),
    ],
)
def test_a_wrong_value_is_reported_with_what_is_expected(name: str, value: Any, why: str):
    with pytest.raises(ConfigError) as caught:
        settings(**{name: value})
    assert caught.value.what.startswith(f"{name} cannot be ")
    assert why in caught.value.why


@pytest.mark.parametrize(
    "name,value,text",
    [
        ("acks", "-1", "all"),
        ("acks", "all", "all"),
        ("enable.idempotence", "TRUE", "true"),
        ("max.in.flight.requests.per.connection", 1, "1"),
        ("linger.ms", timedelta(milliseconds=7), "7"),
        ("ssl.endpoint.identification.algorithm", "", "none"),
        ("ssl.endpoint.identification.algorithm", "HTTPS", "https"),
        ("client.rack", "", ""),
        ("security.protocol", "sasl_ssl", "SASL_SSL"),
        ("connections.max.idle.ms", -1, "-1"),
        ("send.buffer.bytes", -1, "-1"),
        ("sasl.password", "hunter2\n", "hunter2"),
        ("compression.type", " lz4 ", "lz4"),
    ],
)
def test_what_can_be_meant_is_understood(name: str, value: Any, text: str):
    assert settings(**{name: value}) == {name: text}


@pytest.mark.parametrize("name", ["sasl.password", "ssl.key.password", "sasl.jaas.config"])
def test_a_secret_that_is_wrong_is_not_shown(name: str):
    with pytest.raises(ConfigError) as caught:
        settings(**{name: ["hunter2"]})
    assert caught.value.what == f"{name} cannot be [hidden]"
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("given", ["linger.ms=5", 5, ["linger.ms"]], ids=str)
def test_the_settings_of_clients_together_are_a_mapping(given: Any):
    with pytest.raises(ConfigError, match="a mapping of settings of Kafka's clients"):
        settings(client_settings=given)


def test_a_setting_of_the_application_is_none_of_its_clients():
    with pytest.raises(ConfigError) as caught:
        settings(client_settings={"session.timeout.ms": 5})
    assert caught.value.hint == "give it by itself, as session_timeout_ms"


def test_secrets_are_in_no_text_of_the_configuration():
    config = StreamsConfig.of(
        application_id="app", sasl_password="hunter2", **{"admin.ssl.keystore.key": "hunter2"}
    )
    assert "hunter2" not in repr(config) + repr(config.in_force()) + str(config)


KAFKA = {"application_id": "app", "bootstrap_servers": "a:1"}
EXACTLY_ONCE = {**KAFKA, "processing_guarantee": "exactly_once_v2"}


def test_kafka_is_at_least_once_unless_exactly_once_is_asked_for():
    assert StreamsConfig.of(application_id="app").exactly_once
    assert not StreamsConfig.from_mapping(KAFKA).exactly_once
    assert StreamsConfig.from_mapping(EXACTLY_ONCE).exactly_once
    shown = StreamsConfig.from_mapping(EXACTLY_ONCE).in_force()
    assert (shown["processing_guarantee"], shown["commit_interval_ms"]) == ("exactly_once_v2", "100")


def test_a_transaction_must_outlast_the_interval_of_commits():
    assert StreamsConfig.from_mapping({**KAFKA, "commit_interval_ms": 30_000})
    for interval_ms, timeout_ms in ((10_001, None), (100, 99_000), (2_000, 1_999)):
        given = {**EXACTLY_ONCE, "commit_interval_ms": interval_ms, "transaction_timeout_ms": timeout_ms}
        if interval_ms <= (timeout_ms or 10_000):
            assert StreamsConfig.from_mapping(given)
            continue
        with pytest.raises(ConfigError, match="is below commit_interval_ms"):
            StreamsConfig.from_mapping(given)


@pytest.mark.parametrize("prefix", ["", "consumer.", "main.consumer.", "global.consumer."])
def test_what_is_not_committed_cannot_be_read_exactly_once(prefix: str):
    given = {f"{prefix}isolation.level": "read_uncommitted"}
    assert StreamsConfig.from_mapping({**KAFKA, **given})
    with pytest.raises(ConfigError, match="cannot be read_uncommitted"):
        StreamsConfig.from_mapping({**EXACTLY_ONCE, **given})
