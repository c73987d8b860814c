"""Topics: made, described, changed, deleted; records are found by time, and deleted up to an offset."""

from __future__ import annotations

import re

import pytest

from pystreams.broker.port import CommittedOffset, Producer, TopicSpec
from pystreams.errors import ConfigError, OffsetOutOfRangeError, TopicError
from pystreams.ids import TopicPartition
from tests.broker.kit import P0, P1, send
from tests.live.support import Log, eventually


def bytes_of(log: Log, partition: TopicPartition = P0) -> list[bytes | None]:
    return [line.value for line in log.lines(partition).values()]


def test_topics_are_described_with_kafkas_defaults_and_their_own_settings(log: Log):
    log.admin.create_topics(
        [TopicSpec("a", 2), TopicSpec("b", 1, {"retention.ms": "-1", "segment.bytes": "2000000"})]
    )
    described = log.admin.describe_topics()
    assert {name: (topic.name, topic.partitions) for name, topic in described.items()} == {
        "a": ("a", 2),
        "b": ("b", 1),
    }
    assert described["a"].config["retention.ms"] == "604800000"
    assert described["a"].config["cleanup.policy"] == "delete"
    assert described["b"].config["retention.ms"] == "-1"
    assert described["b"].config["segment.bytes"] == "2000000"
    assert list(log.admin.describe_topics(["b", "missing"])) == ["b"]
    assert log.admin.describe_topics([]) == {}
    assert log.admin.partition_counts() == {"a": 2, "b": 1}


def test_an_existing_topic_is_left_as_it_is(log: Log):
    log.create("t", partitions=3, config={"max.message.bytes": "99"})
    log.admin.create_topics([TopicSpec("t", 3)])
    assert log.admin.describe_topics(["t"])["t"].config["max.message.bytes"] == "99"


def test_another_partition_count_is_refused(log: Log):
    log.create("t", partitions=3)
    with pytest.raises(TopicError, match="exists with 3 partitions, not 2"):
        log.admin.create_topics([TopicSpec("t", 2)])
    assert log.admin.partition_counts() == {"t": 3}


@pytest.mark.parametrize("name, partitions", [("a b", 1), ("", 1), ("..", 1), ("x" * 250, 1), ("good", 0)])
def test_names_and_numbers_that_kafka_refuses_are_refused(log: Log, name: str, partitions: int):
    with pytest.raises(TopicError, match=re.escape(repr(name))):
        log.admin.create_topics([TopicSpec(name, partitions)])
    assert log.admin.describe_topics() == {}


@pytest.mark.parametrize(
    "setting, value",
    [("retention_ms", "5"), ("retention.ms", "soon"), ("retention.ms", "-2"), ("cleanup.policy", "burn")],
)
def test_a_topic_setting_that_is_unknown_or_impossible_is_refused(log: Log, setting: str, value: str):
    with pytest.raises(ConfigError, match=setting):
        log.admin.create_topics([TopicSpec("t", 1, {setting: value})])
    assert log.admin.describe_topics() == {}


def test_the_settings_of_a_topic_can_be_changed_one_by_one(log: Log):
    log.create("t", config={"cleanup.policy": "compact"})
    log.admin.alter_topic_config("t", {"retention.ms": "5"})
    config = log.admin.describe_topics(["t"])["t"].config
    assert (config["retention.ms"], config["cleanup.policy"]) == ("5", "compact")
    with pytest.raises(ConfigError):
        log.admin.alter_topic_config("t", {"retention.ms": "five"})
    with pytest.raises(TopicError):
        log.admin.alter_topic_config("missing", {"retention.ms": "5"})


def test_a_deleted_topic_takes_its_records_and_offsets_along(log: Log, producer: Producer):
    send(producer, 0, *[b"v"] * 1_000)
    log.admin.set_group_offsets("g", {P0: CommittedOffset(5)})
    log.admin.delete_topics(["t"])
    assert log.admin.describe_topics() == {}
    eventually(lambda: log.admin.group_offsets("g") == {}, "the offsets are gone, too")
    log.create("t")
    assert bytes_of(log) == []
    with pytest.raises(TopicError, match="missing"):
        log.admin.delete_topics(["missing"])


def test_a_topic_that_was_made_anew_is_another_one(log: Log):
    log.create("t", "other")
    before = log.admin.topic_id("t")
    assert before is not None
    assert before == log.admin.topic_id("t") != log.admin.topic_id("other")
    assert log.admin.topic_id("missing") is None
    log.admin.require_remaking(["t"])
    log.admin.delete_topics(["t"])
    log.create("t")
    assert log.admin.topic_id("t") not in {before, None}


def test_deleted_records_are_gone_and_the_rest_keeps_its_offsets(log: Log, producer: Producer):
    send(producer, 0, *(b"%d" % number for number in range(1_200)))
    log.admin.delete_records({P0: 700}).wait()
    assert bytes_of(log) == [b"%d" % number for number in range(700, 1_200)]
    log.admin.delete_records({P0: 10}).wait()
    assert log.admin.beginning_offsets([P0, P1]) == {P0: 700, P1: 0}
    assert log.admin.end_offsets([P0, P1]) == {P0: 1_200, P1: 0}
    with pytest.raises(OffsetOutOfRangeError, match="before offset 1201"):
        log.admin.delete_records({P0: 1_201}).wait()
    deletion = log.admin.delete_records({P0: 1_200})
    deletion.wait()
    assert deletion.done
    assert bytes_of(log) == []
    assert log.admin.beginning_offsets([P0]) == log.admin.end_offsets([P0]) == {P0: 1_200}


def test_offsets_are_found_by_time(log: Log, producer: Producer):
    for timestamp in (10, 30, 20, 40):
        producer.send("t", 0, b"k", b"v", timestamp, ())
    producer.commit({}, None)
    producer.send("t", 0, b"k", b"v", 35, ())
    producer.commit({}, None)
    for timestamp, offset in [(0, 0), (10, 0), (11, 1), (25, 1), (31, 3), (41, 5)]:
        assert log.admin.offsets_for_times({P0: timestamp, P1: timestamp}) == {P0: offset, P1: 0}
    log.admin.delete_records({P0: 2}).wait()
    assert log.admin.offsets_for_times({P0: 5}) == {P0: 2}
