"""Both clients are told what Java's settings mean, in their own words, and nothing is left to their defaults."""

from __future__ import annotations

import ssl
import warnings
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from hypothesis import assume, given
from hypothesis import strategies as st

from pystreams.config.client_setting import ROLES, Role
from pystreams.config.client_table import CLIENT_SETTINGS
from pystreams.errors import ConfigError
from tests.examples import examples

with warnings.catch_warnings():
    # kafka-python reads its message schemas by a function that is deprecated since Python 3.11.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.net.manager import KafkaConnectionManager

    from pystreams.broker.kafka.settings import KafkaSettings

HIDDEN = "through-the-looking-glass"


def settings(given: dict[str, Any] | None = None, **more: Any) -> KafkaSettings:
    return KafkaSettings("127.0.0.1:1", client_settings=given or {}, **more)


def told(role: Role, given: dict[str, Any] | None = None) -> dict[str, Any]:
    """What librdkafka is told for a client, as text."""
    kafka = settings(given)
    if role == "producer":
        found = kafka.producer("x")
    elif role == "admin":
        found = kafka.admin("x")
    else:
        found = kafka.consumer("x", role)
    return {name: str(value).lower() for name, value in found.items()}


def make_client(role: Role, kafka: KafkaSettings) -> None:
    """Raises what the client says to its settings."""
    if role == "producer":
        Producer(kafka.producer("x")).flush(0)
    elif role == "admin":
        AdminClient(kafka.admin("x"))
    else:
        Consumer(kafka.consumer("x", role)).close()


def test_the_records_of_a_stream_thread_expire_before_its_session_does():
    def expires_after_ms(**given: Any) -> int:
        return int(KafkaSettings("broker:9092", **given).thread_producer("x")["delivery.timeout.ms"])

    assert expires_after_ms() == 42_000
    assert expires_after_ms(session_timeout_ms=20_000, heartbeat_interval_ms=500) == 19_500
    # Even with a short session they have time for a connection.
    assert expires_after_ms(session_timeout_ms=6_000, heartbeat_interval_ms=500) == 10_000
    assert expires_after_ms(client_settings={"producer.delivery.timeout.ms": 35_000}) == 35_000
    # librdkafka refuses a record that expires while it waits for its batch.
    assert expires_after_ms(client_settings={"producer.linger.ms": 50_000}) == 50_001


def test_the_producer_is_safe_by_default():
    producer = told("producer")
    assert producer["enable.idempotence"] == "true"
    assert producer["acks"] == "all"
    assert producer["max.in.flight.requests.per.connection"] == "5"
    assert producer["message.send.max.retries"] == "2147483647"
    assert producer["delivery.report.only.error"] == "true"
    assert producer["partitioner"] == "murmur2_random"
    assert producer["delivery.timeout.ms"] == "120000"
    assert producer["message.max.bytes"] == "1048576"
    assert producer["linger.ms"] == "100"
    assert producer["queue.buffering.max.kbytes"] == "32768"
    assert settings().producer_room_timeout_s == 60


def test_who_writes_in_transactions_waits_less_for_an_answer():
    def waits_ms(**given: Any) -> str:
        return str(settings(**given).exactly_once_producer("x").get("socket.timeout.ms"))

    assert waits_ms() == "10000"
    assert waits_ms(given={"request.timeout.ms": 45_000}) == "45000"
    assert waits_ms(given={"producer.request.timeout.ms": 5_000}) == "5000"
    assert told("producer")["socket.timeout.ms"] == "30000"


@pytest.mark.parametrize("role", ["main.consumer", "restore.consumer", "global.consumer"])
def test_a_consumer_reads_what_java_would_read(role: Role):
    consumer = told(role)
    # A changelog may hold what a hand-over left that was killed: it is not state of the application.
    assert consumer["isolation.level"] == (
        "read_committed" if role == "restore.consumer" else "read_uncommitted"
    )
    assert consumer["check.crcs"] == "true"
    assert consumer["enable.auto.commit"] == "false"
    assert consumer["auto.offset.reset"] == "error"
    assert consumer["enable.partition.eof"] == "true"


def test_who_reads_to_the_end_first_waits_less_for_more():
    assert told("main.consumer")["fetch.wait.max.ms"] == "500"
    for role in ("restore.consumer", "global.consumer"):
        assert told(role)["fetch.wait.max.ms"] == "100"
        assert told(role, {"fetch.max.wait.ms": 250})["fetch.wait.max.ms"] == "250"


def test_stores_are_restored_from_what_is_committed_whatever_other_consumers_read():
    given = {"isolation.level": "read_uncommitted"}
    assert told("main.consumer", given)["isolation.level"] == "read_uncommitted"
    assert told("restore.consumer", given)["isolation.level"] == "read_committed"
    with pytest.raises(ConfigError, match=r"restore.consumer.isolation.level cannot be read_uncommitted"):
        settings({"restore.consumer.isolation.level": "read_uncommitted"})


@pytest.mark.parametrize("role", ROLES)
def test_connections_are_kept_and_made_as_javas(role: Role):
    client = told(role)
    assert client["socket.keepalive.enable"] == "true"
    assert client["connections.max.idle.ms"] == ("300000" if role == "admin" else "540000")
    assert (client["reconnect.backoff.ms"], client["reconnect.backoff.max.ms"]) == ("50", "1000")
    assert (client["retry.backoff.ms"], client["retry.backoff.max.ms"]) == ("100", "1000")
    assert client["socket.timeout.ms"] == "30000"
    assert client["socket.connection.setup.timeout.ms"] == "10000"
    assert client["topic.metadata.refresh.interval.ms"] == "300000"
    assert client["metadata.max.age.ms"] == "900000"
    assert client["ssl.endpoint.identification.algorithm"] == "https"


@pytest.mark.parametrize(
    "role,name,value,expected",
    [
        ("main.consumer", "fetch.max.wait.ms", 250, {"fetch.wait.max.ms": "250"}),
        ("restore.consumer", "max.partition.fetch.bytes", 5_000, {"max.partition.fetch.bytes": "5000"}),
        ("main.consumer", "client.rack", "a", {"client.rack": "a"}),
        ("main.consumer", "isolation.level", "read_committed", {"isolation.level": "read_committed"}),
        ("producer", "buffer.memory", 1_025, {"queue.buffering.max.kbytes": "2"}),
        ("producer", "max.request.size", 5_000_000, {"message.max.bytes": "5000000"}),
        ("producer", "batch.size", 0, {"batch.size": "1"}),
        ("producer", "retries", 3, {"message.send.max.retries": "3"}),
        ("producer", "compression.type", "zstd", {"compression.type": "zstd"}),
        (
            "producer",
            "request.timeout.ms",
            9_000,
            {"socket.timeout.ms": "9000", "request.timeout.ms": "9000"},
        ),
        ("admin", "request.timeout.ms", 9_000, {"socket.timeout.ms": "9000"}),
        (
            "admin",
            "metadata.max.age.ms",
            1_000,
            {"topic.metadata.refresh.interval.ms": "1000", "metadata.max.age.ms": "3000"},
        ),
        ("producer", "send.buffer.bytes", -1, {"socket.send.buffer.bytes": "0"}),
        ("producer", "receive.buffer.bytes", 65_536, {"socket.receive.buffer.bytes": "65536"}),
        (
            "admin",
            "ssl.endpoint.identification.algorithm",
            "none",
            {"ssl.endpoint.identification.algorithm": "none"},
        ),
    ],
)
def test_a_setting_reaches_librdkafka_in_its_words(
    role: Role, name: str, value: Any, expected: dict[str, str]
):
    given = {name: value, "security.protocol": "PLAINTEXT"}
    found = told(role, given)
    assert {property_name: found[property_name] for property_name in expected} == expected


def test_a_level_is_that_of_the_chosen_codec():
    levels = {"compression.gzip.level": 4, "compression.zstd.level": 5}
    assert told("producer", {**levels, "compression.type": "zstd"})["compression.level"] == "5"
    assert told("producer", {**levels, "compression.type": "gzip"})["compression.level"] == "4"
    assert "compression.level" not in told("producer", {**levels, "compression.type": "lz4"})


def test_what_pystreams_does_itself_is_taken_from_the_settings():
    given = {"max.poll.records": 7, "restore.consumer.max.poll.records": 8, "producer.max.block.ms": 1_500}
    kafka = settings(given | {"consumer.session.timeout.ms": 50_000})
    assert kafka.poll_records_max("main.consumer") == 7
    assert kafka.poll_records_max("restore.consumer") == 8
    assert settings().poll_records_max("main.consumer") is None
    assert kafka.producer_room_timeout_s == 1.5
    assert kafka.session_timeout_ms == 50_000


@pytest.mark.parametrize("role", ROLES)
def test_librdkafka_knows_every_property_that_it_is_given(role: Role):
    """With a value that is not the default, where there is one."""
    changed: dict[str, Any] = {
        "check.crcs": False,
        "client.rack": "a",
        "compression.type": "lz4",
        "compression.lz4.level": 3,
        "enable.metrics.push": False,
        "metadata.recovery.strategy": "none",
        "isolation.level": "read_committed",
        "client.dns.lookup": "resolve_canonical_bootstrap_servers_only",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "alice",
        "sasl.password": HIDDEN,
        "ssl.cipher.suites": "ECDHE-RSA-AES256-GCM-SHA384",
    }
    make_client(role, settings(changed))


def test_kafka_python_is_given_all_that_it_can_take():
    given = {
        "client.dns.lookup": "resolve_canonical_bootstrap_servers_only",
        "connections.max.idle.ms": 1,
        "metadata.max.age.ms": 2,
        "reconnect.backoff.ms": 3,
        "reconnect.backoff.max.ms": 4,
        "request.timeout.ms": 50,
        "socket.connection.setup.timeout.ms": 6_000,
    }
    found = settings(given).membership("x")
    for name, value in given.items():
        assert found[CLIENT_SETTINGS[name].member] == value
    # It is silent about arguments that it does not know.
    assert set(found) <= set(KafkaConnectionManager.DEFAULT_CONFIG)
    assert settings({"retry.backoff.ms": 70}).member_retry_backoff_ms == 70
    assert settings().membership("x")["request_timeout_ms"] == 10_000


def test_the_login_reaches_both_clients():
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": HIDDEN,
    }
    kafka = settings({**login, "admin.sasl.username": "bob"})
    member, admin = kafka.membership("x"), kafka.membership("x", "admin")
    assert (member["sasl_mechanism"], member["sasl_plain_username"]) == ("SCRAM-SHA-512", "alice")
    assert member["sasl_plain_password"] == kafka.admin("x")["sasl.password"] == HIDDEN
    assert admin["sasl_plain_username"] == kafka.admin("x")["sasl.username"] == "bob"
    assert HIDDEN not in repr(kafka) + kafka.description


def test_encryption_reaches_kafka_python_as_a_context():
    context = settings({"security.protocol": "SSL"}).membership("x")["ssl_context"]
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    given = {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""}
    assert not settings(given).membership("x")["ssl_context"].check_hostname
    ciphers = {"security.protocol": "SSL", "ssl.cipher.suites": "ECDHE-RSA-AES256-GCM-SHA384"}
    names = {c["name"] for c in settings(ciphers).membership("x")["ssl_context"].get_ciphers()}
    assert {name for name in names if not name.startswith("TLS_")} == {"ECDHE-RSA-AES256-GCM-SHA384"}
    assert "ssl_context" not in settings().membership("x")


def test_an_authority_may_be_a_folder(tmp_path: Path):
    """As librdkafka has it, with files named by hashes."""
    given = {"security.protocol": "SSL", "ssl.ca.location": str(tmp_path)}
    assert settings(given).membership("x")["ssl_context"].get_ca_certs() == []
    AdminClient(settings(given).admin("x"))


@pytest.mark.parametrize("suites", ["nonsense", "TLS_AES_256_GCM_SHA384"])
def test_ciphers_that_cannot_be_chosen_are_reported(suites: str):
    with pytest.raises(ConfigError) as caught:
        settings({"security.protocol": "SSL", "ssl.cipher.suites": suites}).check()
    assert caught.value.where == f"ssl.cipher.suites={suites}"
    assert "openssl ciphers" in caught.value.hint


def test_connections_that_are_never_idle_enough_are_kept_by_both_clients():
    kafka = settings({"connections.max.idle.ms": -1})
    assert kafka.admin("x")["connections.max.idle.ms"] == "0"
    assert kafka.membership("x")["connections_max_idle_ms"] == 2**31 - 1


def test_every_attempt_to_connect_has_the_same_time_in_both_clients():
    found = settings({"socket.connection.setup.timeout.ms": 40_000}).membership("x")
    assert found["socket_connection_setup_timeout_ms"] == 40_000
    assert found["socket_connection_setup_timeout_max_ms"] == 40_000


NUMBERS = {
    "connections.max.idle.ms": (-1, 2**31 - 1),
    "reconnect.backoff.ms": (0, 3_600_000),
    "reconnect.backoff.max.ms": (0, 3_600_000),
    "retry.backoff.ms": (1, 300_000),
    "retry.backoff.max.ms": (1, 300_000),
    "request.timeout.ms": (10, 300_000),
    "metadata.max.age.ms": (1, 3_600_000),
    "socket.connection.setup.timeout.ms": (1_000, 2**31 - 1),
    "send.buffer.bytes": (-1, 100_000_000),
    "fetch.max.bytes": (1_024, 2_147_483_135),
    "fetch.max.wait.ms": (0, 300_000),
    "fetch.min.bytes": (1, 100_000_000),
    "max.partition.fetch.bytes": (1, 1_000_000_000),
    "batch.size": (0, 2**31 - 1),
    "buffer.memory": (1_024, 2**40),
    "delivery.timeout.ms": (1, 2**31 - 1),
    "linger.ms": (0, 900_000),
    "max.request.size": (1_000, 1_000_000_000),
    "retries": (1, 2**31 - 1),
}


@given(
    st.sampled_from(ROLES),
    st.fixed_dictionaries({}, optional={name: st.integers(*limits) for name, limits in NUMBERS.items()}),
)
@examples(25)
def test_whatever_is_accepted_librdkafka_can_work_with(role: Role, numbers: dict[str, int]):
    """Else a thread would fail at its start with an error that names librdkafka's properties."""
    assume(numbers.get("connections.max.idle.ms") != 0)
    needed_ms = numbers.get("linger.ms", 100) + numbers.get("request.timeout.ms", 30_000)
    if numbers.get("delivery.timeout.ms", needed_ms) < needed_ms:
        with pytest.raises(ConfigError, match=r"delivery\.timeout\.ms"):
            settings(numbers)
        return
    make_client(role, settings(numbers))


def test_a_record_has_time_to_wait_and_to_be_sent():
    assert told("producer", {"linger.ms": 200_000})["delivery.timeout.ms"] == "230000"
    with pytest.raises(ConfigError) as caught:
        settings({"producer.delivery.timeout.ms": 30_099})
    assert caught.value.what == "delivery.timeout.ms (30099) is below linger.ms + request.timeout.ms (30100)"
    assert told("producer", {"delivery.timeout.ms": 30_100})["delivery.timeout.ms"] == "30100"
