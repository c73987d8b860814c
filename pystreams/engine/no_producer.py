"""The producer of tasks whose output is not written anywhere."""

from __future__ import annotations

from collections.abc import Mapping

from pystreams.broker.port import CommittedOffset, Member
from pystreams.ids import TopicPartition
from pystreams.record import Headers


class NoProducer:
    """Discards all records. Implements ``broker.port.Producer``."""

    def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
    ) -> None:
        """Discard the record."""

    def send_to_changelog(
        self,
        topic: str,
        partition: int,
        key: bytes,
        value: bytes | None,
        timestamp: int | None,
        headers: Headers,
    ) -> None:
        """Discard the change."""

    def commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset], member: Member | None
    ) -> dict[TopicPartition, int]:
        """Do nothing."""
        return {}

    def abort(self) -> None:
        """Do nothing: no record is waiting."""

    def settle(self) -> None:
        """There is nothing to settle."""

    def postpones(self, member: Member) -> bool:
        """False: there is nothing to wait for."""
        return False

    def close(self) -> None:
        """There is nothing to close."""
