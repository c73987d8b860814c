"""Where slices leave what they give, and how it is read again: whatever the file system.

    <staging>/manifest.json
    <staging>/slice-02/…           Parquet, rows of ``EXCHANGE_SCHEMA``

A slice counts once the manifest names it. Where and by whom the files are written is the executor's (executor.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from pystreams.backfill.manifest import Manifest
from pystreams.backfill.outcome import Outcome
from pystreams.backfill.records import Arrow, Kind
from pystreams.errors import StateError


@dataclass(frozen=True, slots=True)
class Selection:
    """Staged rows of one kind, by the partition that they are for.

    ``topic`` is the topic of records, the store of entries. ``slices`` are those that wrote the rows, ``partitions``
    how many there are, also of those without rows.
    """

    kind: Kind
    topic: str
    slices: tuple[int, ...]
    partitions: int


def not_staged(slice: int, location: str) -> StateError:
    """For a slice that the manifest names, but whose outcomes are not there."""
    return StateError(
        f"what slice {slice} of the backfill has left cannot be found",
        where=location,
        why="it was removed, or staged by another executor: what Spark has staged is read on Spark alone",
        hint="resume with the executor that began the backfill, or begin it anew (overwrite)",
    )


class Staging(Protocol):
    """The staged slices of one backfill. Raises ``StateError`` for files that cannot be read."""

    @property
    def location(self) -> str:
        """The folder, as its user gave it."""
        ...

    def read_manifest(self) -> Manifest | None:
        """None if nothing was begun here."""
        ...

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace the manifest at once."""
        ...

    def outcomes(self, slice: int) -> list[Outcome]:
        """What became of the tasks of a slice that the manifest names, by number."""
        ...

    def rows(self, selection: Selection, partition: int) -> Iterator[Arrow]:
        """The rows of one partition in the order of ``order.ORDER``, read by this process."""
        ...
