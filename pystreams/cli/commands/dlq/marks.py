"""Remembers which records have been replayed, in a topic of the log that is written in the replays' transactions.

Records are marked by the position in their source topic, not by that of their dead letter: two steps may have failed
for one record, and an application that processes at least once may write a letter twice. The topic is compacted. Each
of its records has the marks of up to 1,000 positions; the key also has the id of the dead-letter topic, so that a new
topic with its name has no marks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Final

from pystreams.broker.port import Admin, Broker, TopicDescription, TopicSpec
from pystreams.cli.commands.dlq.identity_set import Block, IdentitySet, block_of
from pystreams.cli.commands.dlq.letters import CLIENT_ID, Identity
from pystreams.errors import BrokerError
from pystreams.ids import TopicPartition
from pystreams.log.positions import read_batches
from pystreams.log.topics import REPLAYED_PREFIX
from pystreams.record import RecordBatch

_CONFIG: Final = {"cleanup.policy": "compact", "retention.ms": "-1"}


def marks_partition(topic: str) -> TopicPartition:
    """The only partition of the topic with the marks for a dead-letter topic."""
    return TopicPartition(f"{REPLAYED_PREFIX}{topic}", 0)


def create_marks(admin: Admin, topic: TopicDescription) -> None:
    """Create the topic for the marks if it does not exist. Raises ``BrokerError`` if the login may not."""
    name = marks_partition(topic.name).topic
    if name in admin.partition_counts():
        return
    try:
        admin.create_topics([TopicSpec(name, 1, _CONFIG)])
    except BrokerError as error:
        error.extend(
            where=f"topic {name}",
            hint="give the login the permission to create this topic, in which a replay remembers what it has written",
        )
        raise


def committed_marks(broker: Broker, admin: Admin, topic: str, topic_id: str) -> Marks:
    """The marks as of now, without those of a replay that is writing."""
    marks, partition = Marks(topic_id), marks_partition(topic)
    if partition.topic in admin.partition_counts():
        starts, ends = admin.beginning_offsets([partition]), admin.stable_end_offsets([partition])
        with closing(broker.consumer(CLIENT_ID, "restore")) as consumer:
            marks.load(read_batches(consumer, starts, ends))
    return marks


class Marks:
    """The marks for the dead-letter topic with this id."""

    def __init__(self, topic_id: str) -> None:
        self._topic_id = topic_id
        self._identities = IdentitySet()
        self._changed: set[Block] = set()

    def close(self) -> None:
        """Forget the marks."""
        self._identities.close()

    def load(self, batches: Iterable[RecordBatch]) -> None:
        """Take over the content of the topic: the last record of a block counts."""
        for batch in batches:
            for key, value in zip(batch.keys, batch.values, strict=True):
                if key is None or value is None:
                    continue
                topic_id, topic, partition, number = json.loads(key)
                if topic_id == self._topic_id:
                    self._identities.replace(
                        Block(TopicPartition(topic, partition), number), json.loads(value)
                    )

    def __contains__(self, identity: Identity) -> bool:
        return identity in self._identities

    def add(self, identity: Identity) -> None:
        """Mark a record as replayed."""
        self._identities.add(identity)
        self._changed.add(block_of(identity))

    def take_changed(self) -> Iterator[tuple[bytes, bytes]]:
        """Key and value of each record to write since the last call."""
        changed, self._changed = sorted(self._changed), set()
        for block in changed:
            key = [self._topic_id, *block.partition, block.number]
            yield json.dumps(key).encode(), json.dumps(list(self._identities.marks(block))).encode()
