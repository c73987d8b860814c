"""The versions of a key that one segment of a versioned store holds: what Java's segment value is.

Versions follow each other without gaps, from the earliest one's time up to ``until``, where the last one ends; one
without a value is a deletion. A chain that begins where it ends holds nothing but the deletion that is the key's latest
version. Source: RocksDBVersionedStoreSegmentValueFormatter.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

_HEAD = Struct(">qi")
_VERSION = Struct(">qi")
_DELETED = -1


class Version(NamedTuple):
    """From when a value is the key's one, and the value; None: the key was deleted then."""

    since: int
    value: bytes | None


class VersionChain:
    """Versions of a key, the latest first. There is always one."""

    __slots__ = ("until", "versions")

    def __init__(self, until: int, versions: list[Version]) -> None:
        self.until = until
        self.versions = versions

    @classmethod
    def of_deletion(cls, time: int) -> VersionChain:
        """The chain of a deletion that nothing follows or precedes."""
        return cls(time, [Version(time, None)])

    @property
    def since(self) -> int:
        """The time of the earliest version."""
        return self.versions[-1].since

    @property
    def _is_deletion(self) -> bool:
        return self.since == self.until

    def find(self, time: int) -> tuple[int, int]:
        """The place of the version that was valid at ``time``, and when it ended. The time must be within."""
        until = self.until
        for place, version in enumerate(self.versions):
            if version.since <= time:
                return place, until
            until = version.since
        raise AssertionError("the time lies before the chain")

    def add_latest(self, since: int, until: int, value: bytes | None) -> None:
        """Add a version behind all others. What lies between is a deletion."""
        if since < self.until:
            self._cut(since)
        if self._is_deletion:
            self.versions = []
        if self.until != since:
            self.versions.insert(0, Version(self.until, None))
        self.versions.insert(0, Version(since, value))
        self.until = until

    def add_earliest(self, since: int, value: bytes | None) -> None:
        """Add a version before all others, which it ends at."""
        if self._is_deletion:
            self.versions = []
        self.versions.append(Version(since, value))

    def _cut(self, time: int) -> None:
        """Forget what begins at ``time`` or later: it was written, but what should have followed was not."""
        self.versions = [version for version in self.versions if version.since < time]
        self.until = time
        if not self.versions:
            self.versions = [Version(time, None)]

    def packed(self) -> bytes:
        """The bytes in a table."""
        parts = [_HEAD.pack(self.until, len(self.versions))]
        for since, value in self.versions:
            parts.append(_VERSION.pack(since, _DELETED if value is None else len(value)))
            if value is not None:
                parts.append(value)
        return b"".join(parts)

    @classmethod
    def unpacked(cls, data: bytes) -> VersionChain:
        """Back."""
        until, count = _HEAD.unpack_from(data)
        position = _HEAD.size
        versions: list[Version] = []
        for _ in range(count):
            since, length = _VERSION.unpack_from(data, position)
            position += _VERSION.size
            value = None if length == _DELETED else data[position : position + length]
            position += max(length, 0)
            versions.append(Version(since, value))
        return cls(until, versions)
