"""A producer that keeps records in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pystreams.broker.port import CommittedOffset, Member, check_headers, no_bytes
from pystreams.ids import TopicPartition
from pystreams.record import Headers


class ProducedRecord(NamedTuple):
    """A record as it would be written to the log. ``timestamp`` is None if the log chooses it."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    timestamp: int | None
    headers: Headers


class MemoryProducer:
    """Keeps all records in memory. Implements ``broker.port.Producer``."""

    def __init__(self) -> None:
        self.records: list[ProducedRecord] = []
        self._changelog_ends: dict[TopicPartition, int] = {}

    def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
    ) -> None:
        if (value.__class__ is not bytes and value is not None) or (
            key.__class__ is not bytes and key is not None
        ):
            raise no_bytes(topic, key, value)
        check_headers(topic, headers)
        self.records.append(ProducedRecord(topic, partition, key, value, timestamp, headers))

    def send_to_changelog(
        self,
        topic: str,
        partition: int,
        key: bytes,
        value: bytes | None,
        timestamp: int | None,
        headers: Headers,
    ) -> None:
        changelog = TopicPartition(topic, partition)
        self._changelog_ends[changelog] = self._changelog_ends.get(changelog, 0) + 1
        self.records.append(ProducedRecord(topic, partition, key, value, timestamp, headers))

    def commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset], member: Member | None
    ) -> dict[TopicPartition, int]:
        return dict(self._changelog_ends)

    def take(self) -> list[ProducedRecord]:
        """Remove and return the records written since the last call."""
        records, self.records = self.records, []
        return records

    def abort(self) -> None:
        self.records.clear()

    def settle(self) -> None:
        """Do nothing: aborted records are already gone."""

    def postpones(self, member: Member) -> bool:
        """False: there is no group."""
        return False

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
