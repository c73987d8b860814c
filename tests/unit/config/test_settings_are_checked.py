"""A setting has the type and range it needs, or starting is refused with what would be right."""

from __future__ import annotations

import uuid
from dataclasses import FrozenInstanceError
from datetime import timedelta
from pathlib import Path

import pytest

from pystreams.config import StreamsConfig
from pystreams.errors import ConfigError


def config(**settings):
    return StreamsConfig.of(application_id="app", **settings)


def test_the_defaults_are_kafka_streams_where_it_has_them():
    c = config()
    assert (c.num_stream_threads, c.poll_ms, c.buffered_records_per_partition) == (1, 100, 1_000)
    assert (c.statestore_cache_max_bytes, c.max_task_idle_ms, c.task_timeout_ms) == (10_485_760, 0, 300_000)
    assert (c.session_timeout_ms, c.heartbeat_interval_ms, c.max_poll_interval_ms) == (45_000, 3_000, 300_000)
    assert c.windowstore_changelog_additional_retention_ms == 86_400_000
    assert (c.state_dir, c.embedded_log) == (Path(".pystreams/state"), Path(".pystreams/log.db"))
    assert c.bootstrap_servers is None


def test_the_commit_interval_follows_from_the_log_unless_it_is_set():
    assert config().effective_commit_interval_ms(transactional=True) == 100
    assert config().effective_commit_interval_ms(transactional=False) == 30_000
    assert config(commit_interval_ms=0).effective_commit_interval_ms(transactional=False) == 0


@pytest.mark.parametrize(
    "given",
    [1_500, "1500", "1_500", timedelta(seconds=1.5)],
    ids=repr,
)
def test_a_duration_is_milliseconds_or_a_timedelta(given):
    assert config(commit_interval_ms=given).commit_interval_ms == 1_500
    assert StreamsConfig(application_id="app", commit_interval_ms=given).commit_interval_ms == 1_500


@pytest.mark.parametrize(
    "name,given,right",
    [
        ("poll_ms", -1, "at least 0"),
        ("poll_ms", "soon", "a timedelta or a whole number of milliseconds"),
        ("poll_ms", 1.5, "a timedelta or a whole number of milliseconds"),
        ("poll_ms", True, "a timedelta or a whole number of milliseconds"),
        ("poll_ms", timedelta(seconds=-1), "at least 0"),
        ("max_task_idle_ms", -2, "at least 0, or -1"),
        ("num_stream_threads", 0, "a whole number, at least 1"),
        ("replication_factor", 0, "1 to 32767, or -1"),
        ("max_poll_interval_ms", 2**31, "1 to 2147483647"),
        ("statestore_cache_max_bytes", "10MB", "a whole number of bytes"),
        ("allow_expired", "perhaps", "true or false"),
        ("allow_expired", 1, "true or false"),
        ("auto_offset_reset", "newest", "earliest, latest, none, by_duration:PT1H"),
        ("topology_optimization", "everything", "expected none, all, or some of"),
        ("application_id", "a b", "letters, digits"),
        ("application_id", "..", "letters, digits"),
        ("application_id", "", "letters, digits"),
        ("bootstrap_servers", "broker", "HOST:PORT"),
        ("bootstrap_servers", "a:1,,b:2", "HOST:PORT"),
        ("bootstrap_servers", [], "HOST:PORT"),
        ("bootstrap_servers", "a:99999", "HOST:PORT"),
        ("bootstrap_servers", "a:0", "HOST:PORT"),
        ("bootstrap_servers", "SASL_SSL://a:1", "HOST:PORT"),
        ("bootstrap_servers", "a;b:1", "HOST:PORT"),
        ("state_dir", "~nobody-of-this-name/state", "the user after ~ does not exist"),
        ("state_dir", "", "a path"),
        ("state_dir", 3, "a path"),
        ("state_snapshot_dir", "", "a path"),
        ("state_snapshot_interval_ms", 0, "at least 1"),
        ("state_snapshots_kept", 0, "at least 1"),
        ("default_key_serde", "string", "names str, int, float, bytes, bool, uuid, dict, list"),
        ("default_timestamp_extractor", 5, "the name of a timestamp extractor, or a function"),
        ("processing_exception_handler", "ignore", "fail, continue, dead_letter, or a function"),
        ("errors_dead_letter_queue_topic_name", "", "text"),
        ("topic_config", "retention.ms=1", "a mapping of topic settings"),
    ],
)
def test_a_wrong_value_is_reported_with_what_is_expected(name, given, right):
    with pytest.raises(ConfigError) as caught:
        StreamsConfig.from_mapping({"application_id": "app", name: given})
    assert caught.value.what == f"{name} cannot be {given!r}"
    assert right in caught.value.why


@pytest.mark.parametrize(
    "name,given,value",
    [
        ("bootstrap_servers", "a:9092, b:9093", "a:9092,b:9093"),
        ("bootstrap_servers", ["a:9092", "b:9093"], "a:9092,b:9093"),
        ("bootstrap_servers", "[::1]:9092,kafka_1.my-net:65535", "[::1]:9092,kafka_1.my-net:65535"),
        ("allow_expired", "TRUE", True),
        ("max_task_idle_ms", "-1", -1),
        ("replication_factor", -1, -1),
        ("default_key_serde", "uuid", uuid.UUID),
        ("default_value_serde", dict, dict),
        ("default_timestamp_extractor", "wall_clock", "wall_clock"),
        ("state_dir", "~/state", Path.home() / "state"),
        ("state_snapshot_dir", "~/snapshots", str(Path.home() / "snapshots")),
        ("state_snapshot_dir", Path("snapshots"), "snapshots"),
        ("state_snapshot_dir", "s3://bucket/snapshots", "s3://bucket/snapshots"),
        ("window_changelog_retention_ms", -1, -1),
        ("window_changelog_retention_ms", None, None),
        ("processing_exception_handler", print, print),
        ("poll_ms", None, 100),
        ("auto_offset_reset", "latest\n", "latest"),
        ("errors_dead_letter_queue_topic_name", " dead ", "dead"),
    ],
)
def test_what_can_be_meant_is_understood(name, given, value):
    assert getattr(config(**{name: given}), name) == value


def test_an_application_needs_an_id():
    with pytest.raises(ConfigError, match="application_id is missing"):
        StreamsConfig.of()


def test_a_heartbeat_must_come_before_the_session_ends():
    with pytest.raises(ConfigError, match=r"heartbeat_interval_ms \(5000\) is not below"):
        config(session_timeout_ms=5_000, heartbeat_interval_ms=5_000)


def test_a_dead_letter_handler_needs_a_topic():
    with pytest.raises(ConfigError, match="no dead-letter topic is set"):
        config(deserialization_exception_handler="dead_letter")
    c = config(
        deserialization_exception_handler="dead_letter", errors_dead_letter_queue_topic_name="dead-letters"
    )
    assert c.errors_dead_letter_queue_topic_name == "dead-letters"


def test_a_configuration_does_not_change():
    with pytest.raises(FrozenInstanceError):
        config().poll_ms = 3


def test_topic_settings_are_text_by_kafkas_names():
    c = config(
        **{"topic.retention.ms": timedelta(days=1), "topic_segment_ms": 60_000, "topic.preallocate": True}
    )
    assert c.topic_config == {"retention.ms": "86400000", "segment.ms": "60000", "preallocate": "true"}
    assert config(topic_config={"retention_ms": -1}).topic_config == {"retention.ms": "-1"}


def test_a_tag_that_is_to_be_spread_over_has_a_value():
    with pytest.raises(ConfigError) as caught:
        config(rack_aware_assignment_tags="zone,cluster", **{"client.tag.zone": "a"})
    assert caught.value.what == "rack_aware_assignment_tags has the tag cluster, but the tag has no value"
    assert "client.tag.cluster" in caught.value.hint
