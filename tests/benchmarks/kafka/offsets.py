"""Offsets, summed up by topic: what a group has committed, and where topics end.

Through a consumer that never subscribes: asked ten times a second, the admin client of confluent-kafka 2.16 has crashed
(a segmentation fault in librdkafka's main thread).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

_TIMEOUT_S = 30.0
_PAUSE_S = 0.05

_NOT_YET = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}


class Offsets:
    """Asks the broker; a topic stays known with the partitions that it had when it was first asked for."""

    def __init__(self, bootstrap_servers: str, group: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": group,
                "enable.auto.commit": False,
                # Else each question waits for the transactions that are open at that moment.
                "isolation.level": "read_uncommitted",
                "log_level": 2,
            }
        )
        self._partitions: dict[str, list[int]] = {}

    def close(self) -> None:
        self._consumer.close()

    def topics(self) -> list[str]:
        return [*self._consumer.list_topics(timeout=_TIMEOUT_S).topics]

    def committed(self, topics: Collection[str]) -> dict[str, int]:
        """Of each topic, the sum of the committed offsets."""
        return self._sums(topics, self._consumer.committed)

    def ends(self, topics: Collection[str]) -> dict[str, int]:
        """Of each topic, the sum of the end offsets."""
        return self._sums(topics, self._consumer.offsets_for_times)

    def _sums(self, topics: Collection[str], ask: Callable[..., list[TopicPartition]]) -> dict[str, int]:
        sums = dict.fromkeys(topics, 0)
        locations = self._locations(topics)
        for location in self._answered(ask, locations) if locations else ():
            sums[location.topic] += max(0, location.offset)
        return sums

    def _answered(
        self, ask: Callable[..., list[TopicPartition]], locations: list[TopicPartition]
    ) -> list[TopicPartition]:
        """Ask until topics and groups that have only just come into being are there. Raises ``KafkaException``."""
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            try:
                found = ask(locations, timeout=_TIMEOUT_S)
                for location in found:
                    if location.error is not None:
                        raise KafkaException(location.error)
            except KafkaException as error:
                if error.args[0].code() not in _NOT_YET or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_S)
            else:
                return found

    def _locations(self, topics: Collection[str]) -> list[TopicPartition]:
        """Asked for at "the end", which is what ``ends`` is about; ``committed`` ignores it."""
        for topic in topics:
            if topic not in self._partitions:
                found = self._consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
                if found.error is None and found.partitions:  # else it has only just come into being
                    self._partitions[topic] = [*found.partitions]
        return [
            TopicPartition(topic, number, OFFSET_END)
            for topic in topics
            for number in self._partitions.get(topic, ())
        ]
