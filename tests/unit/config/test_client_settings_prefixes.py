"""Java's prefixes say which client a setting is for, and the more special one wins."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from pystreams.config import StreamsConfig, merge_settings, settings_from_environment
from pystreams.config.client_setting import ROLES, Role
from pystreams.config.client_settings import in_force
from pystreams.errors import ConfigError

CHAINS: dict[Role, tuple[str, ...]] = {
    "main.consumer": ("main.consumer.", "consumer.", ""),
    "restore.consumer": ("restore.consumer.", "consumer.", ""),
    "global.consumer": ("global.consumer.", "consumer.", ""),
    "producer": ("producer.", ""),
    "admin": ("admin.", ""),
}


def config(**settings: Any) -> StreamsConfig:
    return StreamsConfig.of(application_id="app", **settings)


def value(settings: dict[str, Any], role: Role, name: str) -> str:
    given = StreamsConfig.from_mapping({"application_id": "app", **settings})
    return in_force(given.client_settings, role)[name]


@pytest.mark.parametrize("role", ROLES)
def test_of_several_prefixes_the_most_special_wins(role: Role):
    everywhere = {
        prefix: str(1_000 + n) for n, prefix in enumerate(sorted({p for c in CHAINS.values() for p in c}))
    }
    for size in range(len(everywhere) + 1):
        for given in combinations(everywhere, size):
            settings = {f"{prefix}metadata.max.age.ms": everywhere[prefix] for prefix in given}
            winner = next((prefix for prefix in CHAINS[role] if prefix in given), None)
            expected = "300000" if winner is None else everywhere[winner]
            assert value(settings, role, "metadata.max.age.ms") == expected


def test_without_a_prefix_all_clients_are_meant_that_know_the_setting():
    settings = config(fetch_min_bytes=7, linger_ms=8).client_settings
    assert in_force(settings, "main.consumer")["fetch.min.bytes"] == "7"
    assert in_force(settings, "restore.consumer")["fetch.min.bytes"] == "7"
    assert in_force(settings, "producer")["linger.ms"] == "8"
    assert "fetch.min.bytes" not in in_force(settings, "producer")
    assert "linger.ms" not in in_force(settings, "admin")


def test_a_special_prefix_of_a_weak_source_wins_over_a_general_one_of_a_strong_source():
    program = config(**{"main.consumer.fetch.min.bytes": 3})
    settings = program.override({"consumer.fetch.min.bytes": 2}, {"fetch.min.bytes": 1}).client_settings
    assert in_force(settings, "main.consumer")["fetch.min.bytes"] == "3"
    assert in_force(settings, "restore.consumer")["fetch.min.bytes"] == "2"


def test_the_same_name_of_a_strong_source_wins():
    program = config(**{"producer.linger.ms": 3})
    assert program.override({"producer_linger_ms": 5}).client_settings == {"producer.linger.ms": "5"}


@pytest.mark.parametrize(
    "name",
    ["main.consumer.fetch.min.bytes", "main_consumer_fetch_min_bytes", "main-consumer-fetch-min-bytes"],
)
def test_names_may_have_dots_underscores_or_dashes(name: str):
    assert config(**{name: 5}).client_settings == {"main.consumer.fetch.min.bytes": "5"}


def test_the_environment_has_them_too():
    environment = settings_from_environment(
        {
            "PYSTREAMS_PRODUCER_LINGER_MS": "5",
            "PYSTREAMS_SASL_PASSWORD": "hunter2",
            "PYSTREAMS_PRODUCER_ACKS": "",
        }
    )
    assert merge_settings(environment) == {
        "client_settings": {"producer.linger.ms": "5", "sasl.password": "hunter2"}
    }
    with pytest.raises(ConfigError) as caught:
        settings_from_environment({"PYSTREAMS_PRODUCER_LINGERMS": "5"})
    assert caught.value.where == "environment variable PYSTREAMS_PRODUCER_LINGERMS"
    assert caught.value.hint == "did you mean producer_linger_ms?"


def test_settings_of_the_membership_may_be_given_as_the_main_consumers():
    c = config(**{"consumer.session.timeout.ms": 50_000, "main.consumer.heartbeat.interval.ms": 7_000})
    assert (c.session_timeout_ms, c.heartbeat_interval_ms) == (50_000, 7_000)
    c = config(session_timeout_ms=1, heartbeat_interval_ms=1, **{"consumer.session.timeout.ms": 9})
    assert c.session_timeout_ms == 9
    c = config(**{"consumer.auto.offset.reset": "latest", "main.consumer.auto.offset.reset": "none"})
    assert c.auto_offset_reset == "none"


@pytest.mark.parametrize(
    "name,why",
    [
        ("restore.consumer.session.timeout.ms", "only the main consumer is a member"),
        ("global.consumer.auto.offset.reset", "only the main consumer is a member"),
        ("producer.bootstrap.servers", "one cluster"),
        ("consumer.bootstrap.servers", "one cluster"),
        ("admin.client.id", "each client's id consists of it"),
        ("producer.fetch.min.bytes", "a setting of the consumer"),
        ("restore.consumer.linger.ms", "a setting of the producer"),
        ("admin.interceptor.classes", "Java classes"),
    ],
)
def test_a_prefix_that_makes_no_sense_is_refused_with_the_reason(name: str, why: str):
    with pytest.raises(ConfigError) as caught:
        config(**{name: "1"})
    assert caught.value.what == f"{name} is not a setting here"
    assert why in caught.value.why


@pytest.mark.parametrize(
    "name,meant",
    [
        ("producer.linger", "producer.linger.ms"),
        ("producer_compresion_type", "producer_compression_type"),
        ("main.consumer.fetch.min.byte", "main.consumer.fetch.min.bytes"),
        ("sasl_mechanisms", "sasl_mechanism"),
        ("security.protcol", "security.protocol"),
        ("topic.retention.m", "topic.retention.ms"),
        ("topic_cleanup_polcy", "topic.cleanup.policy"),
    ],
)
def test_an_unknown_name_is_reported_with_the_nearest(name: str, meant: str):
    with pytest.raises(ConfigError) as caught:
        config(**{name: "1"})
    assert caught.value.what == f"{name} is not a setting"
    assert caught.value.hint == f"did you mean {meant}?"


def test_settings_of_topics_that_only_some_brokers_have_are_passed_on():
    assert config(**{"topic.confluent.value.schema.validation": True}).topic_config == {
        "confluent.value.schema.validation": "true"
    }


def test_a_longer_first_pause_is_a_longer_pause_for_ever():
    settings = config(reconnect_backoff_ms=5_000).client_settings
    assert in_force(settings, "admin")["reconnect.backoff.max.ms"] == "5000"
    settings = config(reconnect_backoff_ms=5, reconnect_backoff_max_ms=70).client_settings
    assert in_force(settings, "admin")["reconnect.backoff.max.ms"] == "70"
    # The longest pause bounds the first, too.
    settings = config(reconnect_backoff_max_ms=10, retry_backoff_ms=5_000).client_settings
    assert in_force(settings, "admin")["reconnect.backoff.ms"] == "10"
    assert in_force(settings, "admin")["retry.backoff.ms"] == "1000"
