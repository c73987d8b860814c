"""What is only just being made, as in a new cluster, is asked again: the leaders of a topic."""

from __future__ import annotations

import warnings
from concurrent.futures import Future
from types import SimpleNamespace

from confluent_kafka import KafkaError, KafkaException

from pystreams.broker.port import TopicSpec

with warnings.catch_warnings():
    # kafka-python reads its message schemas by a function that is deprecated since Python 3.11.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pystreams.broker.kafka.admin import KafkaAdmin
    from pystreams.broker.kafka.admin_client import SharedAdminClient
from pystreams.broker.kafka.settings import KafkaSettings


class NewTopic:
    """librdkafka's admin client, for a topic of one partition, which another process has created. Its leader refuses
    two requests."""

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


def test_a_topic_that_another_process_has_just_created_has_a_leader_before_it_is_written_to():
    """Records that come before the leader takes any may be lost (KAFKA-15591)."""
    client = NewTopic()
    asked = KafkaAdmin(SharedAdminClient(lambda: client), KafkaSettings("broker:9092"), "test")
    asked.create_topics([TopicSpec("new", 1)])
    assert client.refusals == 0
