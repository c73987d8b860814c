"""The reference from a task's committed offsets to the overflow record: the record with the metadata that does not fit
beside them.

The record is in a topic of the application, and is written with each commit that needs one. The reference has the first
offset to look at and a digest of the record, because the offset of a record is not known before its commit has
succeeded. A record of a failed commit either has another content, or has the same content and is just as good.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pystreams.ids import TopicPartition
from pystreams.topology.names import changelog_topic

OVERFLOW_PREFIX: Final = "py//overflow/"
_SUBTOPOLOGY, _PARTITIONS, _FROM, _DIGEST, _EMITTED = (
    f"{OVERFLOW_PREFIX}{name}" for name in ("subtopology", "partitions", "from", "digest", "emitted")
)
_NAMES: Final = frozenset({_SUBTOPOLOGY, _PARTITIONS, _FROM, _DIGEST, _EMITTED})


def overflow_topic(application_id: str, subtopology: int, partitions: int) -> str:
    """The topic for the tasks of a sub-topology. Sub-topologies may get other numbers when a program changes. The name
    includes the number of partitions, so that a topic always has as many as its tasks need."""
    return changelog_topic(application_id, f"pystreams-overflow-{subtopology}-{partitions}")


@dataclass(frozen=True, slots=True)
class OverflowReference:
    """The record is in ``partition`` of the topic of a sub-topology with this number of ``partitions``. Its offset is
    ``first_offset`` or later, and its value has the ``digest``. ``has_emitted``: it holds entries of Java, too."""

    subtopology: int
    partitions: int
    partition: int
    first_offset: int
    digest: int
    has_emitted: bool

    def entries(self) -> dict[str, int]:
        """The metadata that is committed with the offsets. The partition is that of the task."""
        return {
            _SUBTOPOLOGY: self.subtopology,
            _PARTITIONS: self.partitions,
            _FROM: self.first_offset,
            _DIGEST: self.digest,
            _EMITTED: int(self.has_emitted),
        }

    @classmethod
    def of(cls, entries: Mapping[str, int], partition: int) -> OverflowReference | None:
        """The reference among the entries of an offset of a task with this ``partition``; None if there is none."""
        if not entries.keys() >= _NAMES:
            return None
        return cls(
            entries[_SUBTOPOLOGY],
            entries[_PARTITIONS],
            partition,
            entries[_FROM],
            entries[_DIGEST],
            bool(entries[_EMITTED]),
        )

    def place(self, application_id: str) -> TopicPartition:
        """The partition that holds the record."""
        return TopicPartition(
            overflow_topic(application_id, self.subtopology, self.partitions), self.partition
        )


def digest_of(value: bytes) -> int:
    """The digest (int64) by which a record is recognized."""
    return int.from_bytes(hashlib.blake2b(value, digest_size=8).digest(), "big", signed=True)
