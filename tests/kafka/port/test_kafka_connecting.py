"""Connecting to Kafka: who is not there is told in time, and settings that cannot be so are refused in words."""

from __future__ import annotations

import time

import pytest

from pystreams.broker.port import TopicSpec
from pystreams.errors import BrokerUnavailableError, ConfigError
from tests.kafka.server import free_port
from tests.kafka.support import Cluster, connect


def test_a_broker_that_is_not_there_is_reported_in_time():
    started = time.monotonic()
    with pytest.raises(
        BrokerUnavailableError, match=r"(?s)cannot be reached.*Connection refused.*is it running"
    ):
        connect(f"127.0.0.1:{free_port()}", connect_timeout_s=1.0)
    assert time.monotonic() - started < 30


def test_an_address_that_does_not_exist_is_reported_at_once():
    started = time.monotonic()
    with pytest.raises(BrokerUnavailableError, match=r"(?s)not known.*check bootstrap_servers"):
        connect("no-such-host.invalid:9092", connect_timeout_s=120.0)
    assert time.monotonic() - started < 60


def test_an_unknown_setting_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match=r"sasl\.mechanism"):
        connect("127.0.0.1:1", client_settings={"sasl.mechanisms": "x"})


def test_settings_of_topics_that_kafka_refuses_are_reported_with_the_topic(cluster: Cluster):
    with pytest.raises(ConfigError, match="refuses the settings of topic c"):
        cluster.admin.create_topics([TopicSpec("c", 1, {"no.such.setting": "1"})])
    cluster.create("a")
    with pytest.raises(ConfigError, match="refuses the settings of topic a"):
        cluster.admin.alter_topic_config("a", {"retention.ms": "soon"})
