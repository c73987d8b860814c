"""librdkafka may answer a request for offsets with none, if a partition's leader was lost: it is asked again, and what
is no offset is never taken for one."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from confluent_kafka import OFFSET_INVALID

from pystreams.broker.kafka.admin import KafkaAdmin
from pystreams.errors import BrokerUnavailableError
from pystreams.ids import TopicPartition

ORDERS = TopicPartition("orders", 0)


def admin_that_hears(*offsets: int) -> KafkaAdmin:
    """The last of them is the answer to all further requests."""
    answers = list(offsets)

    def list_offsets(asked: Any, **_: Any) -> dict[Any, Future[Any]]:
        offset = answers.pop(0) if len(answers) > 1 else answers[0]
        futures: dict[Any, Future[Any]] = {location: Future() for location in asked}
        for future in futures.values():
            future.set_result(SimpleNamespace(offset=offset))
        return futures

    client = MagicMock()
    client.current.list_offsets = list_offsets
    return KafkaAdmin(client, MagicMock(description="Kafka at host:9092"), "test")


def test_it_is_asked_again() -> None:
    assert admin_that_hears(OFFSET_INVALID, OFFSET_INVALID, 680).end_offsets([ORDERS]) == {ORDERS: 680}


def test_without_an_answer_the_broker_is_not_available() -> None:
    with pytest.raises(BrokerUnavailableError, match="the partition's leader has not answered"):
        admin_that_hears(OFFSET_INVALID).end_offsets([ORDERS], timeout_ms=50)
