"""Topics are created, looked at and deleted."""

from __future__ import annotations

import pytest

from pystreams.errors import ConfigError, TopicError


def test_a_topic_has_the_partitions_and_settings_that_it_is_given(log):
    log.create_topic("orders", 3, config={"retention.ms": -1})
    found = log.describe_topic("orders")
    assert (found.partitions, found.config["retention.ms"], found.records) == (3, "-1", 0)
    log.create_topic("one")
    assert log.describe_topic("one").partitions == 1


def test_offsets_count_what_was_produced_at_once(log):
    log.create_topic("t", 2)
    for number in range(3):
        log.produce("t", number, partition=1)
    found = log.describe_topic("t")
    assert (found.start_offsets, found.end_offsets, found.records) == ({0: 0, 1: 0}, {0: 0, 1: 3}, 3)


def test_a_topic_that_exists_is_an_error_unless_that_is_said(log):
    log.create_topic("t", 2)
    with pytest.raises(TopicError, match="already exists, with 2 partitions"):
        log.create_topic("t")
    log.create_topic("t", if_not_exists=True)
    log.create_topic("t", 2, if_not_exists=True)
    with pytest.raises(TopicError, match="exists with 2 partitions, not 3"):
        log.create_topic("t", 3, if_not_exists=True)


def test_internal_topics_are_listed_on_demand(log):
    for name in ("b", "a", "app-counts-changelog"):
        log.create_topic(name)
    assert log.topics() == ["a", "b"]
    assert log.topics(internal=True) == ["a", "app-counts-changelog", "b"]


def test_a_topic_created_again_is_written_to_as_a_new_one(log):
    log.create_topic("t", 1)
    log.produce("t", 1)
    log.delete_topic("t")
    assert log.topics() == []
    log.create_topic("t", 2)
    log.produce("t", "x", partition=1)
    assert [record.value for record in log.consume("t", value=str)] == ["x"]


@pytest.mark.parametrize("use", ["describe_topic", "delete_topic", "consume"])
def test_a_topic_that_is_not_there_is_answered_with_the_nearest(log, use):
    log.create_topic("orders")
    with pytest.raises(TopicError, match="Topic ordres does not exist") as failed:
        getattr(log, use)("ordres")
    assert "did you mean orders?" in failed.value.hint
    with pytest.raises(TopicError, match=r"create it: log.create_topic\('customers'\)"):
        log.produce("customers", "x")


def test_a_wrong_setting_is_reported_and_leaves_no_topic(log):
    with pytest.raises(ConfigError):
        log.create_topic("t", config={"retention.mss": 1})
    assert log.topics() == []
