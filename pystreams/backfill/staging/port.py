"""The interface of a staging folder: how slices write their results, and how they are read, on any file system.

    <staging>/manifest-00003.json           see manifest_files.py
    <staging>/slice-02-5d41…/…              Parquet, rows of ``EXCHANGE_SCHEMA``; each attempt has a folder of its own

A slice counts once the manifest names its folder. Where and by whom the files are written is the executor's
(compute/executor.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, Self

from pystreams.backfill.exchange.rows import Arrow, Kind
from pystreams.backfill.exchange.task_outcome import TaskOutcome
from pystreams.backfill.plan.manifest import Manifest


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


class Staged(Protocol):
    """Slices that are staged. Raises ``StateError`` for files that cannot be read."""

    @property
    def location(self) -> str:
        """The folder, as its user gave it."""
        ...

    @property
    def folders(self) -> Mapping[int, str]:
        """The folder of each slice within the staging folder, as manifests name it."""
        ...

    def rows(self, selection: Selection, partition: int) -> Iterator[Arrow]:
        """The rows of one partition in the order of ``order.ORDER``, read by this process."""
        ...


class Staging(Staged, Protocol):
    """The staging folder of one backfill, as one driver works with it."""

    def with_slices(self, folders: Mapping[int, str]) -> Self:
        """This staging folder with the slices that a manifest names."""
        ...

    def read_manifest(self) -> Manifest | None:
        """None if nothing was begun here."""
        ...

    def write_manifest(self, manifest: Manifest) -> None:
        """Make a manifest the one that counts. Raises ``StateError`` if another driver has written one since this one
        read or wrote its own."""
        ...

    def require_own(self) -> None:
        """Raises the same, and writes nothing."""
        ...

    def clear(self) -> None:
        """Delete leftovers of earlier runs: all folders that are not in ``folders``, and old manifests."""
        ...

    def outcomes(self, slice: int, tasks: int) -> list[TaskOutcome]:
        """The outcomes of the tasks of a slice, by number. Raises ``StateError`` if there is not exactly one outcome of
        each."""
        ...
