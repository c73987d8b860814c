"""The command line wins over the environment, which wins over the program."""

from __future__ import annotations

import pytest

from pystreams import App, Streams
from pystreams.config import StreamsConfig, merge_settings, origins_of, settings_from_environment
from pystreams.errors import ConfigError


def test_names_may_have_dots_underscores_or_dashes():
    for name in ("commit.interval.ms", "commit_interval_ms", "commit-interval-ms"):
        c = StreamsConfig.from_mapping({"application.id": "app", name: 5})
        assert c.commit_interval_ms == 5


def test_the_first_source_that_has_a_setting_wins():
    program = StreamsConfig.of(application_id="app", poll_ms=1, num_stream_threads=1, max_task_idle_ms=1)
    environment = settings_from_environment({"PYSTREAMS_POLL_MS": "2", "PYSTREAMS_NUM_STREAM_THREADS": "2"})
    c = program.override({"poll.ms": 3, "state_dir": None}, environment)
    assert (c.poll_ms, c.num_stream_threads, c.max_task_idle_ms) == (3, 2, 1)
    assert c.state_dir == program.state_dir
    assert program.poll_ms == 1


def test_topic_settings_of_several_sources_are_joined_name_by_name():
    program = StreamsConfig.of(application_id="app", topic_config={"retention.ms": 1, "segment.ms": 1})
    c = program.override({"topic.retention.ms": 3}, {"topic_config": {"retention.ms": 2, "flush.ms": 2}})
    assert c.topic_config == {"retention.ms": "3", "flush.ms": "2", "segment.ms": "1"}


def test_settings_that_only_hold_together_may_come_from_different_sources():
    program = {"application_id": "app", "production_exception_handler": "dead_letter"}
    environment = {"errors_dead_letter_queue_topic_name": "dead"}
    c = StreamsConfig.from_mapping(merge_settings(environment, program))
    assert c.production_exception_handler == "dead_letter"


def test_the_environment_has_the_names_in_capitals_with_a_prefix():
    environ = {
        "PYSTREAMS_COMMIT_INTERVAL_MS": "1000",
        "PYSTREAMS_TOPIC_RETENTION_MS": "-1",
        "PYSTREAMS_STATE_DIR": "",
        "COMMIT_INTERVAL_MS": "5",
        "HOME": "/root",
    }
    assert settings_from_environment(environ) == {"commit_interval_ms": "1000", "topic_retention_ms": "-1"}


def test_variables_of_other_tools_are_left_alone_but_a_near_miss_is_not():
    assert settings_from_environment({"PYSTREAMS_ORACLE": "/x", "PYSTREAMS_CHECK": "1"}) == {}
    options = {"PYSTREAMS_HTTP": "8080", "PYSTREAMS_READY_LAG": "5", "PYSTREAMS_WORKERS": "2"}
    assert settings_from_environment(options) == {}
    with pytest.raises(ConfigError) as caught:
        settings_from_environment({"PYSTREAMS_COMIT_INTERVAL_MS": "1"})
    assert caught.value.where == "environment variable PYSTREAMS_COMIT_INTERVAL_MS"
    assert caught.value.hint == "did you mean commit_interval_ms?"


@pytest.mark.parametrize(
    "variable,value,what",
    [
        ("PYSTREAMS_COMMIT_INTERVAL_MS", "often", "commit_interval_ms cannot be 'often'"),
        ("PYSTREAMS_PRODUCER_LINGER_MS", "5s", "producer.linger.ms cannot be '5s'"),
        ("PYSTREAMS_TOPIC_CONFIG", "a=b", "topic_config cannot be 'a=b'"),
        ("PYSTREAMS_ACKS", "1", "acks cannot be '1'"),
    ],
)
def test_a_wrong_value_in_the_environment_is_reported_with_the_variable(variable: str, value: str, what: str):
    with pytest.raises(ConfigError) as caught:
        settings_from_environment({variable: value})
    assert (caught.value.what, caught.value.where) == (what, f"environment variable {variable}")


@pytest.mark.parametrize(
    "twice",
    [
        {"poll_ms": 1, "poll.ms": 2},
        {"linger.ms": 1, "linger_ms": 2},
        {"topic.retention.ms": 1, "topic_config": {"retention.ms": 2}},
        {"topic_config": {"retention.ms": 2}, "topic_retention_ms": 1},
        {"client_settings": {"producer.linger.ms": 1}, "producer_linger_ms": 2},
        {"client_settings": {"producer.linger.ms": 1, "producer_linger_ms": 2}},
    ],
    ids=str,
)
def test_a_setting_given_twice_by_one_source_is_an_error(twice: dict[str, object]):
    with pytest.raises(ConfigError, match="given twice"):
        StreamsConfig.from_mapping({"application_id": "app", **twice})


def test_of_a_setting_that_was_not_given_what_holds_then_is_in_force():
    on_the_embedded_log = StreamsConfig.of(application_id="app").in_force()
    on_kafka = StreamsConfig.of(application_id="app", bootstrap_servers="broker:9092").in_force()
    assert on_the_embedded_log["commit_interval_ms"] == "100"
    assert on_kafka["commit_interval_ms"] == "30000"
    assert on_the_embedded_log["default_timestamp_extractor"] == "fail"
    assert "None" not in on_the_embedded_log.values()
    assert (
        StreamsConfig.of(application_id="app", commit_interval_ms=7).in_force()["commit_interval_ms"] == "7"
    )


def test_what_is_in_force_is_text_for_every_setting():
    shown = StreamsConfig.of(application_id="app", topic_config={"retention.ms": -1}).in_force()
    assert shown["application_id"] == "app"
    assert shown["default_key_serde"] == "bytes"
    assert shown["topic_config"] == "retention.ms='-1'"
    assert set(shown) == set(StreamsConfig.__dataclass_fields__)


def test_a_client_in_a_program_obeys_the_environment_as_commands_do(monkeypatch):
    app = App("app", poll_ms=1, num_stream_threads=1)
    app.stream("in").to("out")
    monkeypatch.setenv("PYSTREAMS_POLL_MS", "2")
    monkeypatch.setenv("PYSTREAMS_BOOTSTRAP_SERVERS", "localhost:1")
    c = Streams(app).config
    assert (c.poll_ms, c.bootstrap_servers, c.num_stream_threads) == (2, "localhost:1", 1)


def test_a_configuration_that_a_client_is_given_is_in_force_as_it_is(monkeypatch):
    app = App("app", poll_ms=1)
    app.stream("in").to("out")
    monkeypatch.setenv("PYSTREAMS_POLL_MS", "2")
    assert Streams(app, app.config).config == app.config


def test_the_tags_of_a_process_can_be_given_one_by_one():
    program = StreamsConfig.of(
        application_id="app", rack_aware_assignment_tags="zone", **{"client.tag.zone": "a"}
    )
    environ = settings_from_environment(
        {"PYSTREAMS_CLIENT_TAG_zone": "b", "PYSTREAMS_CLIENT_TAG_cluster": "k"}
    )
    c = program.override(environ)
    assert c.client_tags == {"zone": "b", "cluster": "k"}
    assert origins_of({"environment": environ}) == {
        "client.tag.zone": "environment",
        "client.tag.cluster": "environment",
    }
