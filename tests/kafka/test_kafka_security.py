"""One set of login settings serves both clients; a wrong password is told at once and never shown."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pystreams.broker.kafka.settings import CONNECTION_SETTINGS, KafkaSettings
from pystreams.broker.port import Assigned, CommittedOffset, TopicSpec
from pystreams.config import KAFKA_CONNECTION, StreamsConfig
from pystreams.errors import BrokerError
from pystreams.ids import TopicPartition
from tests.kafka.server import KafkaServer
from tests.kafka.support import Follower, connect, deal

PASSWORD = "through-the-looking-glass"
LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": PASSWORD,
}
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    f' username="admin" password="secret" user_admin="secret" user_alice="{PASSWORD}";'
)


@pytest.fixture(scope="module")
def guarded(server: KafkaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """A broker that wants to know who is there. (``server`` is asked for because it knows if Kafka can be had.)"""
    guarded = KafkaServer(
        tmp_path_factory.mktemp("guarded"),
        properties={
            "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.plaintext.plain.sasl.jaas.config": JAAS,
        },
    )
    guarded.start()
    yield guarded
    guarded.stop()


def test_both_clients_log_in_with_one_set_of_settings(guarded: KafkaServer, tmp_path: Path):
    broker = connect(guarded.bootstrap_servers, connection=LOGIN)
    admin, producer = broker.admin(), broker.producer("p", "p")
    admin.create_topics([TopicSpec("t", 1)])
    producer.send("t", 0, b"k", b"v", 1, ())
    follower = Follower("a", broker.member("a", "g", ["t"], bytes, deal("t", 1)), [])
    while not follower.held:
        follower.poll()
        time.sleep(0.02)
    assert isinstance(follower.events[0], Assigned)
    offsets = {TopicPartition("t", 0): CommittedOffset(1, "text")}
    producer.commit(offsets, follower.member)
    assert admin.group_offsets("g") == offsets
    follower.member.close()
    producer.close()
    broker.close()


def test_a_wrong_password_is_told_at_once_and_not_shown(guarded: KafkaServer):
    started = time.monotonic()
    with pytest.raises(BrokerError, match=r"refuses the login") as caught:
        connect(guarded.bootstrap_servers, connection={**LOGIN, "sasl.password": "wrong-password"})
    assert time.monotonic() - started < 4
    assert "wrong-password" not in str(caught.value)


def test_every_setting_of_the_connection_reaches_both_clients_by_its_name():
    assert tuple(CONNECTION_SETTINGS) == KAFKA_CONNECTION


def test_passwords_are_neither_in_the_settings_text_nor_in_what_is_shown():
    settings = KafkaSettings("127.0.0.1:1", connection=LOGIN)
    assert PASSWORD not in repr(settings) + settings.description
    config = StreamsConfig.from_mapping({"application_id": "app", **LOGIN})
    assert PASSWORD not in repr(config) + repr(config.in_force())
    assert config.kafka_connection == LOGIN
    assert settings.membership("x")["sasl_plain_password"] == PASSWORD
    assert settings.librdkafka("x")["sasl.password"] == PASSWORD
