"""Topics and offsets as a whole."""

from __future__ import annotations

import pytest

from pystreams.broker.port import CommittedOffset, MemberAssignment, TopicSpec
from pystreams.errors import BrokerError, ConfigError, OffsetOutOfRangeError, TopicError
from pystreams.ids import TopicPartition
from tests.unit.broker.log_helpers import T0, create, values, write


@pytest.fixture
def admin(broker):
    admin = broker.admin()
    yield admin
    admin.close()


def test_topics_are_described_with_kafkas_defaults(admin):
    admin.create_topics(
        [TopicSpec("a", 2), TopicSpec("b", 1, {"retention.ms": "-1", "segment.bytes": "1000"})]
    )
    described = admin.describe_topics()
    assert [(topic.name, topic.partitions) for topic in described.values()] == [("a", 2), ("b", 1)]
    assert described["a"].config["retention.ms"] == "604800000"
    assert described["b"].config["retention.ms"] == "-1"
    assert described["b"].config["segment.bytes"] == "1000"
    assert list(admin.describe_topics(["b", "missing"])) == ["b"]
    assert admin.describe_topics([]) == {}


def test_an_existing_topic_is_left_as_it_is(broker, admin):
    create(broker, "t", 3, {"max.message.bytes": "99"})
    admin.create_topics([TopicSpec("t", 3)])
    assert admin.describe_topics(["t"])["t"].config["max.message.bytes"] == "99"


def test_another_partition_count_is_refused_and_nothing_is_created(broker, admin):
    create(broker, "t", 3)
    with pytest.raises(TopicError, match="exists with 3 partitions, not 2"):
        admin.create_topics([TopicSpec("new", 1), TopicSpec("t", 2)])
    assert list(admin.describe_topics()) == ["t"]


@pytest.mark.parametrize("name, partitions", [("a b", 1), ("", 1), ("..", 1), ("x" * 250, 1), ("good", 0)])
def test_what_kafka_would_refuse_is_refused(admin, name, partitions):
    with pytest.raises(TopicError):
        admin.create_topics([TopicSpec(name, partitions)])


def test_a_topics_settings_can_be_changed(broker, admin):
    create(broker)
    admin.alter_topic_config("t", {"retention.ms": "5"})
    assert admin.describe_topics(["t"])["t"].config["retention.ms"] == "5"
    with pytest.raises(ConfigError):
        admin.alter_topic_config("t", {"retention.ms": "five"})
    with pytest.raises(TopicError):
        admin.alter_topic_config("missing", {})


def test_a_deleted_topic_takes_its_records_and_offsets_along(broker, admin):
    create(broker, "t", 2)
    write(broker, [(b"k", b"v", 1)] * 1000)
    admin.set_group_offsets("g", {T0: CommittedOffset(5)})
    admin.delete_topics(["t"])
    assert admin.describe_topics() == {}
    assert admin.group_offsets("g") == {}
    create(broker, "t", 1)
    assert values(broker) == []
    with pytest.raises(TopicError, match="'missing' does not exist"):
        admin.delete_topics(["missing"])


def test_deleted_records_are_gone_and_the_rest_keeps_its_offsets(broker, admin):
    create(broker)
    write(broker, [(b"k", b"%d" % number, number) for number in range(1200)])
    admin.delete_records({T0: 700}).wait()
    assert values(broker) == [b"%d" % number for number in range(700, 1200)]
    admin.delete_records({T0: 10}).wait()
    assert admin.beginning_offsets([T0]) == {T0: 700}
    with pytest.raises(OffsetOutOfRangeError):
        admin.delete_records({T0: 1201}).wait()
    admin.delete_records({T0: 1200}).wait()
    assert values(broker) == []


def test_offsets_are_found_by_time(broker, admin):
    create(broker, "t", 2)
    write(broker, [(b"k", b"v", timestamp) for timestamp in (10, 30, 20, 40)])
    write(broker, [(b"k", b"v", 35)])
    t1 = TopicPartition("t", 1)
    for timestamp, offset in [(0, 0), (10, 0), (11, 1), (25, 1), (31, 3), (41, 5)]:
        assert admin.offsets_for_times({T0: timestamp, t1: timestamp}) == {T0: offset, t1: 0}
    admin.delete_records({T0: 2}).wait()
    assert admin.offsets_for_times({T0: 5}) == {T0: 2}


def test_offsets_of_a_group_with_members_cannot_be_overwritten(broker, admin):
    def assign(members):
        return {member.member_id: MemberAssignment((), b"") for member in members}

    member = broker.member("c", "g", ["t"], lambda: b"", assign)
    member.poll()
    assert admin.group_members("g") == [member.member_id]
    with pytest.raises(BrokerError, match="1 living members"):
        admin.set_group_offsets("g", {T0: CommittedOffset(1)})
    with pytest.raises(BrokerError, match="1 living members"):
        admin.delete_group("g")
    member.close()
    assert admin.group_members("g") == []
    admin.set_group_offsets("g", {T0: CommittedOffset(1)})
    admin.delete_group("g")
