"""The producer that writes at least once: an idempotent confluent-kafka producer."""

from __future__ import annotations

from collections.abc import Mapping

from pystreams.broker.kafka.group_member import GroupMember
from pystreams.broker.kafka.member import KafkaMember
from pystreams.broker.kafka.sending import FLUSH_SLICE_S, RecordSender
from pystreams.broker.kafka.streams_member import StreamsGroupMember
from pystreams.broker.port import CommittedOffset, Member
from pystreams.errors import BrokerError
from pystreams.ids import TopicPartition


class KafkaProducer(RecordSender):
    """See ``port.Producer``. At least once: a commit flushes the sent records, then commits the offsets."""

    def settle(self) -> None:
        """Does nothing: records that have left cannot be recalled."""

    def postpones(self, member: Member) -> bool:
        """False: a commit that the group refuses during a rebalance is tried again."""
        return False

    def commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset], member: Member | None
    ) -> dict[TopicPartition, int]:
        """Raises ``BrokerUnavailableError`` if the broker does not answer: commit again later."""
        kafka_member = own_member(member, offsets)
        self._flush(kafka_member)
        # Read after the flush, and only once per commit: delivery callbacks for changelog records are not called,
        # because only errors are reported.
        end_offsets = self._admin.end_offsets([TopicPartition(*changelog) for changelog in self._changelogs])
        if kafka_member is not None and offsets:
            kafka_member.commit(offsets)
        if kafka_member is not None and self._refused_records.after_commit():
            self._connect()
        self._changelogs.clear()
        return end_offsets

    def abort(self) -> None:
        """Drop the records that were sent. Those that the broker has received cannot be recalled."""
        self._serve(self._client.poll, 0)
        if self._failure is not None or len(self._client):
            self._drop_all()
            self._refused_records.learn()
            self._connect()
        self._changelogs.clear()
        self._failure = None

    def close(self) -> None:
        """Close the producer. Records sent since the last commit are dropped, unless the broker has received them."""
        self._drop_all()

    def _drop_all(self) -> None:
        """Drop the client, which cannot be used any more: it would drop later records, too."""
        self._client.purge(in_queue=True, in_flight=False)
        # Records that are on their way should be written before the next ones.
        self._serve(self._client.flush, FLUSH_SLICE_S)


def own_member(
    member: Member | None, offsets: Mapping[TopicPartition, CommittedOffset]
) -> GroupMember | None:
    if member is None and offsets:
        raise BrokerError(
            "Offsets cannot be committed without a member",
            why="offsets belong to a group, which the member names",
            hint="pass the member, or use Admin.set_group_offsets",
        )
    if member is not None and not isinstance(member, KafkaMember | StreamsGroupMember):
        raise TypeError(f"a member of a Kafka group is needed, not {type(member).__name__}")
    return member
