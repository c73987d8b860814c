"""Every setting of Java's clients has a fate here: told to the clients, done by pystreams, or refused with a reason."""

from __future__ import annotations

import pytest

from pystreams.config import StreamsConfig, is_secret
from pystreams.config.client_table import CLIENT_SETTINGS
from pystreams.config.names import REFUSED, TOPIC_SETTINGS
from pystreams.errors import ConfigError
from tests.unit.config.java_settings import JAVA, java_default

CLIENTS = ("consumer", "producer", "admin")
JAVA_NAMES = sorted({name for client in CLIENTS for name in JAVA[client]})

#: Names of librdkafka that Java has no counterpart for, because its certificates and logins have a form of their own.
OURS = {
    "sasl.username",
    "sasl.password",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.crl.location",
}
#: Defaults that are meant to differ from Java's. Each has a line in docs/differences.md.
DIFFERENT = {
    # Streams gives it to its producers with exactly-once. Source: StreamsConfig.PRODUCER_EOS_OVERRIDES.
    "transaction.timeout.ms": "10000",
    "batch.size": "1000000",
    "receive.buffer.bytes": "-1",
    "send.buffer.bytes": "-1",
}
#: Where Java's default is one of Java's own, or stands for "none".
NOTHING = {
    "bootstrap.servers",
    "client.id",
    "group.instance.id",
    "max.poll.records",
    "ssl.keystore.type",
    "ssl.truststore.type",
    "ssl.cipher.suites",
    "sasl.mechanism",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
}


def test_the_names_are_javas():
    assert set(CLIENT_SETTINGS) - OURS == set(JAVA_NAMES)
    assert not OURS & set(JAVA_NAMES)
    assert set(TOPIC_SETTINGS) == set(JAVA["topic"])


@pytest.mark.parametrize("name", JAVA_NAMES)
def test_each_setting_has_one_fate_and_javas_clients(name: str):
    row = CLIENT_SETTINGS[name]
    assert [bool(row.librdkafka or row.member), bool(row.by), bool(row.refused)].count(True) == 1
    assert (row.parse is None) == bool(row.refused)
    # Admin clients repeat requests by themselves.
    known = {client for client in CLIENTS if name in JAVA[client]} - (
        {"admin"} if name == "retries" else set()
    )
    assert set(row.clients) == known


@pytest.mark.parametrize("name", [name for name in JAVA_NAMES if not CLIENT_SETTINGS[name].refused])
def test_defaults_are_those_that_kafka_streams_gives_its_clients(name: str):
    row = CLIENT_SETTINGS[name]
    for client in row.clients:
        expected = DIFFERENT.get(name, None if name in NOTHING else java_default(client, name))
        assert row.default_for(client) == expected, client
        if name in DIFFERENT:
            assert expected != java_default(client, name)


@pytest.mark.parametrize("name", [name for name in JAVA_NAMES if not CLIENT_SETTINGS[name].refused])
def test_a_default_is_a_value_that_may_be_given(name: str):
    row = CLIENT_SETTINGS[name]
    assert row.parse is not None
    for client in row.clients:
        default = row.default_for(client)
        if default is not None:
            row.parse(default)


@pytest.mark.parametrize("name", [name for name in JAVA_NAMES if CLIENT_SETTINGS[name].refused])
def test_a_refused_setting_says_why_with_and_without_prefix(name: str):
    prefixes = ["", *(f"{client}." for client in CLIENT_SETTINGS[name].clients)]
    for prefix in prefixes:
        if f"{prefix}{name}" in ("group.protocol", "metrics.recording.level"):
            continue  # a setting of the application
        with pytest.raises(ConfigError) as caught:
            StreamsConfig.from_mapping({"application_id": "app", prefix + name: "x"})
        assert caught.value.what == f"{prefix}{name} is not a setting here"
        assert caught.value.why == CLIENT_SETTINGS[name].refused


@pytest.mark.parametrize("name", sorted(JAVA["streams"]))
def test_every_setting_of_kafka_streams_is_implemented_or_refused_with_a_reason(name: str):
    field = name.replace(".", "_")
    ways = [
        field in StreamsConfig.__dataclass_fields__,
        field in REFUSED,
        name in CLIENT_SETTINGS and field not in StreamsConfig.__dataclass_fields__,
    ]
    assert ways.count(True) == 1
    if field in REFUSED:
        with pytest.raises(ConfigError) as caught:
            StreamsConfig.from_mapping({"application_id": "app", name: "x"})
        assert caught.value.why == REFUSED[field]


def test_settings_of_kafka_streams_have_javas_defaults_where_they_mean_the_same():
    config = StreamsConfig.of(application_id="app")
    ours = {
        "application_id",
        "application_server",
        "client_id",
        "commit_interval_ms",
        "default_key_serde",
        "default_value_serde",
        "default_timestamp_extractor",
        "deserialization_exception_handler",
        "processing_exception_handler",
        "production_exception_handler",
        "processing_guarantee",
        "state_dir",
    }
    for name, java in JAVA["streams"].items():
        field = name.replace(".", "_")
        if field in StreamsConfig.__dataclass_fields__ and field not in ours:
            assert getattr(config, field) == java["default"], name


def test_whatever_java_hides_is_secret():
    hidden = {
        name
        for client in CLIENTS
        for name, definition in JAVA[client].items()
        if definition["type"] == "password"
    }
    assert len(hidden) > 5
    assert {name for name in hidden if not is_secret(name)} == set()
    shown = set(JAVA_NAMES) - hidden - {"ssl.keystore.key"}
    assert {name for name in shown if is_secret(name)} == set()
