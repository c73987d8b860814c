"""The position in the input up to which an answer includes the records. Source: KIP-796,
org.apache.kafka.streams.query.Position."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pystreams.ids import TopicPartition


class Position(dict[TopicPartition, int]):
    """For each input partition, the offset of the next record: an answer includes all records before it.

    The position of Java has the offset of the last included record, which is lower by one."""

    @classmethod
    def containing(cls, records: Iterable[tuple[str, int, int]]) -> Position:
        """The least position that contains these records, each given as topic, partition and offset, as producers
        report them."""
        found = cls()
        for topic, partition, offset in records:
            place = TopicPartition(topic, partition)
            found[place] = max(found.get(place, 0), offset + 1)
        return found

    def __repr__(self) -> str:
        return (
            f"Position({', '.join(f'{partition}: {offset}' for partition, offset in sorted(self.items()))})"
        )

    def of_partition(self, number: int) -> Position:
        """The part of the partitions with this number, which are the inputs of one task."""
        return Position({place: offset for place, offset in self.items() if place.partition == number})

    def missing(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """By partition the number of offsets that are missing up to this position; without partitions that have reached
        it."""
        return {
            place: offset - offsets.get(place, 0)
            for place, offset in sorted(self.items())
            if offsets.get(place, 0) < offset
        }
