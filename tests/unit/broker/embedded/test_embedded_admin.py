"""What the embedded log says of its topics, in its own words; what every log promises of them: tests/broker."""

from __future__ import annotations

import pytest

from pystreams.broker.port import TopicSpec
from pystreams.errors import ConfigError, TopicError
from tests.unit.broker.log_helpers import create


@pytest.fixture
def admin(broker):
    admin = broker.admin()
    yield admin
    admin.close()


def test_another_partition_count_is_refused_and_nothing_is_created(broker, admin):
    create(broker, "t", 3)
    with pytest.raises(TopicError, match="exists with 3 partitions, not 2"):
        admin.create_topics([TopicSpec("new", 1), TopicSpec("t", 2)])
    assert list(admin.describe_topics()) == ["t"]


def test_topics_are_described_in_the_order_of_their_names(admin):
    admin.create_topics([TopicSpec("b", 1), TopicSpec("a", 1)])
    assert list(admin.describe_topics()) == ["a", "b"]


def test_an_unknown_topic_setting_is_refused_with_the_nearest_name(broker):
    with pytest.raises(ConfigError, match=r"did you mean retention\.ms"):
        create(broker, config={"retention_ms": "5"})


def test_a_topic_that_is_missing_cannot_be_deleted(admin):
    with pytest.raises(TopicError, match="'missing' does not exist"):
        admin.delete_topics(["missing"])
