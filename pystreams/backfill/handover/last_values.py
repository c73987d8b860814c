"""The compacted content of a changelog: in memory while it is small, else on the disk."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Final

from pystreams.backfill.exchange.bounded_map import BoundedMap
from pystreams.backfill.local_disks import local_folder
from pystreams.broker.port import Broker
from pystreams.clock import SystemClock
from pystreams.errors import BrokerUnavailableError
from pystreams.ids import TopicPartition
from pystreams.state.formats import pack_int64
from pystreams.state.value_forms import with_headers_joined
from pystreams.topics.committed_batches import SilentPartitionError, committed_batches

#: The part of a partition that is kept in memory. There, an entry takes less than half of the time that it takes on
#: disk.
MEMORY_BYTES: Final = 64 * 1024 * 1024
#: If no record of a changelog arrives for this time, although there must be more, it cannot be read now.
_SILENCE_MS_MAX = 60_000.0


class LastValues(BoundedMap):
    """By key the timestamp (int64) and value of the last record of a changelog partition; ``with_headers``: they stand
    before the value."""

    def __init__(self, broker: Broker, changelog: TopicPartition, *, with_headers: bool = False) -> None:
        super().__init__(local_folder(changelog.partition), MEMORY_BYTES)
        try:
            for keys, packed in committed_records(broker, changelog, with_headers=with_headers):
                self.update(dict(zip(keys, packed, strict=True)))
        except BaseException:
            self.close()
            raise


def committed_records(
    broker: Broker, partition: TopicPartition, *, with_headers: bool = False
) -> Generator[tuple[list[bytes], list[bytes | None]]]:
    """The committed records of a changelog, batch by batch: keys, and timestamps with values (None: deleted), before
    which headers stand if they are wanted."""
    with closing(broker.admin()) as admin:
        try:
            for batch in committed_batches(broker, admin, partition, SystemClock(), _SILENCE_MS_MAX):
                values = with_headers_joined(batch) if with_headers else batch.values
                rows = [
                    (key, None if value is None else pack_int64(timestamp) + value)
                    for key, value, timestamp in zip(batch.keys, values, batch.timestamps, strict=True)
                    if key is not None
                ]
                yield [key for key, _ in rows], [packed for _, packed in rows]
        except SilentPartitionError as error:
            raise _silent(broker, partition, error.position, error.end_offset) from error


def _silent(broker: Broker, partition: TopicPartition, position: int, end: int) -> BrokerUnavailableError:
    return BrokerUnavailableError(
        f"changelog {partition} cannot be read to its end",
        where=f"{broker.description}, position {position} of {end}",
        why=f"nothing arrived for {_SILENCE_MS_MAX / 1000:g} s: an open transaction hides the records after it, or the "
        "partition's leader is down",
        hint="the transaction of a killed writer ends after its transaction.timeout.ms; hand over again after that "
        "(resume)",
    )
