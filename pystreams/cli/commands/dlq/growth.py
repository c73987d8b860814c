"""Notices that a topic has more partitions now than when the records of dead letters came from it.

A letter has the partition that its record came from, and the key. If several keys were not in the partitions that
their hashes give now, but all in those that their hashes give with fewer partitions, the topic has grown.
"""

from __future__ import annotations

from typing import Final

from pystreams.errors import TopicError
from pystreams.partitioning import partition_for_key

#: How likely it may be that a writer that chooses partitions by other rules looks like growth.
_CHANCE_MAX: Final = 0.01


class Growth:
    """The number of partitions that a topic had, as far as its letters show it."""

    def __init__(self, topic: str, partitions: int) -> None:
        self._topic = topic
        self._partitions = partitions
        self._possible = set(range(1, partitions))
        self._keys: set[bytes] = set()
        self._records = 0

    def see(self, key: bytes | None, partition: int) -> None:
        """A record with this key came from this partition."""
        if key is None or not self._possible or partition_for_key(key, self._partitions) == partition:
            return
        self._records += 1
        self._possible = {n for n in self._possible if partition_for_key(key, n) == partition}
        if not self._certain:
            self._keys.add(key)

    @property
    def _certain(self) -> bool:
        """Whether enough different keys agree."""
        return (self._partitions - 1) * float(self._partitions) ** -len(self._keys) < _CHANCE_MAX

    def check(self, where: str) -> None:
        """Raise ``TopicError`` if the topic has grown."""
        if not self._possible or not self._certain:
            return
        raise TopicError(
            f"{self._topic} has more partitions than when the records came",
            where=where,
            why=f"it has {self._partitions} partitions now and had {max(self._possible)}: the keys of "
            f"{self._records:,} of the records now belong to other partitions, where an application keeps their state",
            hint="--by-key writes each record to the partition that its key's hash gives now; --same-partitions "
            "writes it to the one that it came from",
        )
