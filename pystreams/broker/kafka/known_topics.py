"""Checks that the source topics of an application exist, and keep their numbers of partitions."""

# pyright knows an older kafka-python by heart.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from kafka import errors

from pystreams.broker.kafka.coordination import GroupConnection
from pystreams.broker.kafka.settings import CONNECT_TIMEOUT_S
from pystreams.clock import Deadline, SystemClock
from pystreams.errors import TopicError

log = logging.getLogger(__name__)

#: The hint for a source topic that has got more partitions.
MORE_PARTITIONS: Final = (
    "stop all members, then start again: an application without state then reads the new partitions; an application "
    "with state needs a reset (pystreams reset), because keys have moved"
)


class KnownTopics:
    """The topics that a member reads, with their partition counts at its start."""

    def __init__(self, connection: GroupConnection, topics: Collection[str], where: str) -> None:
        """Wait until the broker knows the topics, because a new topic reaches the brokers one after the other. Raises
        ``TopicError`` if one is not known in time."""
        self._where = where
        self._cluster = connection.client.cluster
        self._partitions = _wait_for_topics(connection, topics, where)

    def check(self) -> None:
        """Raise an error if topics have got more partitions. The tasks of the application are fixed at its start, so
        the new partitions would never be read, although the leader joins again after the change. Source:
        StreamsPartitionAssignor, InternalTopicManager.makeReady."""
        for topic, count in self._partitions.items():
            now = len(self._cluster.partitions_for_topic(topic) or ())
            if now > count:
                raise TopicError(
                    f"Topic {topic!r} has {now} partitions, but had {count} when the application started",
                    where=self._where,
                    why="tasks and internal topics are created for the partitions that exist at the start",
                    hint=MORE_PARTITIONS,
                )


def _wait_for_topics(connection: GroupConnection, topics: Collection[str], where: str) -> dict[str, int]:
    """Wait until the broker knows the topics: a new topic reaches the brokers one after the other. Returns the
    partition counts."""
    cluster, manager = connection.client.cluster, connection.client._manager
    deadline = Deadline(SystemClock(), 1000 * CONNECT_TIMEOUT_S)
    cluster.set_topics(topics)
    while True:
        counts = {topic: len(cluster.partitions_for_topic(topic) or ()) for topic in topics}
        missing = sorted(topic for topic, count in counts.items() if not count)
        if not missing:
            return counts
        if deadline.expired():
            raise TopicError(
                f"The broker does not know the topics {', '.join(missing)}",
                where=where,
                hint="if they were deleted, create them, then restart the application",
            )
        try:
            connection.run(manager.wait_for, cluster.request_update(), 1000)
        except errors.KafkaError as error:
            log.debug("%s: %s", where, error)
