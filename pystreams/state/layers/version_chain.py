"""The versions of a key in one segment of a versioned store: the segment value in Java.

Versions are contiguous, from the earliest one's start to ``until``, where the last one ends; a version without a value
is a deletion. A chain that ends at its start contains only the deletion that is the key's latest version. Source:
RocksDBVersionedStoreSegmentValueFormatter.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

_HEAD = Struct(">qi")
_VERSION = Struct(">qi")
_DELETED = -1


class Version(NamedTuple):
    """The time from which a value is valid, and the value; None: the key was deleted then."""

    since: int
    value: bytes | None


class VersionChain:
    """Versions of a key, the latest first. There is at least one."""

    __slots__ = ("until", "versions")

    def __init__(self, until: int, versions: list[Version]) -> None:
        self.until = until
        self.versions = versions

    @classmethod
    def of_deletion(cls, time: int) -> VersionChain:
        """The chain of a single deletion, without versions before or after it."""
        return cls(time, [Version(time, None)])

    @property
    def since(self) -> int:
        """The time of the earliest version."""
        return self.versions[-1].since

    @property
    def _is_deletion(self) -> bool:
        return self.since == self.until

    def find(self, time: int) -> tuple[int, int]:
        """The index of the version that was valid at ``time``, and its end. The time must be within the chain."""
        until = self.until
        for place, version in enumerate(self.versions):
            if version.since <= time:
                return place, until
            until = version.since
        raise AssertionError("the time lies before the chain")

    def add_latest(self, since: int, until: int, value: bytes | None) -> None:
        """Add a version after all others. A gap before it becomes a deletion."""
        if since < self.until:
            self._cut(since)
        if self._is_deletion:
            self.versions = []
        if self.until != since:
            self.versions.insert(0, Version(self.until, None))
        self.versions.insert(0, Version(since, value))
        self.until = until

    def add_earliest(self, since: int, value: bytes | None) -> None:
        """Add a version before all others. It ends where the chain starts."""
        if self._is_deletion:
            self.versions = []
        self.versions.append(Version(since, value))

    def _cut(self, time: int) -> None:
        """Remove the versions from ``time`` on: they are the result of an incomplete write."""
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
        """The chain for the bytes in a table."""
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
