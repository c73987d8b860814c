"""What is only just being made, as in a new cluster, is asked again: a group's coordinator, the leaders of a topic."""

from __future__ import annotations

import warnings
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from pystreams.broker.port import TopicSpec
from pystreams.errors import BrokerError

with warnings.catch_warnings():
    # kafka-python reads its message schemas by a function that is deprecated since Python 3.11.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pystreams.broker.kafka.admin import KafkaAdmin
    from pystreams.broker.kafka.admin_client import SharedAdminClient
from pystreams.broker.kafka.settings import KafkaSettings


class Client:
    """librdkafka's admin client, as far as groups go: answers with these, one after the other."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.timeouts_s: list[float] = []

    def describe_consumer_groups(self, groups, request_timeout):
        self.timeouts_s.append(request_timeout)
        answer: Future[object] = Future()
        following = self.answers.pop(0)
        if isinstance(following, int):
            answer.set_exception(KafkaException(KafkaError(following)))
        else:
            answer.set_result(following)
        return {groups[0]: answer}

    delete_consumer_groups = describe_consumer_groups


class NewTopic:
    """The same for a topic of one partition, which another process has created. Its leader refuses two requests."""

    def __init__(self) -> None:
        self.refusals = 2

    def create_topics(self, topics, request_timeout):
        answer: Future[object] = Future()
        answer.set_exception(KafkaException(KafkaError(KafkaError.TOPIC_ALREADY_EXISTS)))
        return {topic.topic: answer for topic in topics}

    def list_topics(self, timeout):
        return SimpleNamespace(topics={"new": SimpleNamespace(partitions={0: None}, error=None)})

    def list_offsets(self, asked, isolation_level, request_timeout):
        answer: Future[object] = Future()
        if self.refusals:
            self.refusals -= 1
            answer.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
        else:
            answer.set_result(SimpleNamespace(offset=0))
        return dict.fromkeys(asked, answer)


def admin(*answers: object) -> tuple[KafkaAdmin, Client]:
    client = Client(*answers)
    return KafkaAdmin(SharedAdminClient(lambda: client), KafkaSettings("broker:9092"), "test"), client


MEMBERS = SimpleNamespace(members=[SimpleNamespace(member_id="b"), SimpleNamespace(member_id="a")])


def test_members_are_asked_for_until_the_coordinator_knows():
    asked, client = admin(KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, MEMBERS)
    assert asked.group_members("flights") == ["a", "b"]
    assert client.answers == []


def test_a_coordinator_that_keeps_silent_is_asked_anew_soon_and_then_more_patiently():
    """In a new cluster a request that has found no coordinator waits to its end, though there is one by then."""
    silent = KafkaError._TIMED_OUT
    asked, client = admin(KafkaError.NOT_COORDINATOR, silent, silent, MEMBERS)
    assert asked.group_members("flights") == ["a", "b"]
    assert client.timeouts_s == [2, 2, 4, 8]


def test_a_group_that_does_not_exist_has_no_members():
    assert admin(KafkaError.GROUP_ID_NOT_FOUND)[0].group_members("flights") == []


def test_a_group_is_deleted_once_its_coordinator_knows():
    asked, client = admin(KafkaError.NOT_COORDINATOR, None)
    asked.delete_group("flights")
    assert client.answers == []


def test_what_trying_again_does_not_mend_is_reported_at_once():
    with pytest.raises(BrokerError, match="cannot be described"):
        admin(KafkaError.GROUP_AUTHORIZATION_FAILED)[0].group_members("flights")


def test_a_topic_that_another_process_has_just_created_has_a_leader_before_it_is_written_to():
    """Records that come before the leader takes any may be lost (KAFKA-15591)."""
    client = NewTopic()
    asked = KafkaAdmin(SharedAdminClient(lambda: client), KafkaSettings("broker:9092"), "test")
    asked.create_topics([TopicSpec("new", 1)])
    assert client.refusals == 0
