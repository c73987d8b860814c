"""Where slices leave what they give, and how it is read again: whatever the file system.

    <staging>/manifest-00003.json           see manifest_files.py
    <staging>/slice-02-5d41…/…              Parquet, rows of ``EXCHANGE_SCHEMA``; each attempt has a folder of its own

A slice counts once the manifest names its folder. Where and by whom the files are written is the executor's
(executor.py).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, Self
from uuid import uuid4

from pystreams.backfill.manifest import Manifest
from pystreams.backfill.outcome import Outcome
from pystreams.backfill.places import shown
from pystreams.backfill.records import Arrow, Kind
from pystreams.errors import StateCorruptedError, StateError

_OURS: Final = re.compile(r"slice-\d{2,}-[0-9a-f]{32}")


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
        """By slice, where it is in the folder: what a manifest names."""
        ...

    def rows(self, selection: Selection, partition: int) -> Iterator[Arrow]:
        """The rows of one partition in the order of ``order.ORDER``, read by this process."""
        ...


class Staging(Staged, Protocol):
    """The staging folder of one backfill, as one driver works with it."""

    def with_slices(self, folders: Mapping[int, str]) -> Self:
        """The same with the slices that a manifest names."""
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
        """Delete what former runs have left: all that is not one of ``folders``, and manifests that do not count."""
        ...

    def outcomes(self, slice: int, tasks: int) -> list[Outcome]:
        """What became of the tasks of a slice, by number. Raises ``StateError`` if there is not exactly one outcome of
        each."""
        ...


def new_folder(slice: int) -> str:
    """Where an attempt of a slice is staged."""
    return f"slice-{slice:02}-{uuid4().hex}"


def left_over(names: Iterable[str], folders: Mapping[int, str]) -> list[str]:
    """Of what is in a staging folder, what an attempt has left that is none of ``folders``."""
    return [name for name in names if _OURS.fullmatch(name) and name not in folders.values()]


def one_of_each(
    found: Collection[tuple[int, Outcome]], slice: int, tasks: int, location: str
) -> list[Outcome]:
    """Outcomes of (task, outcome) by task. Raises ``StateError`` unless each task from 0 to ``tasks`` - 1 has one."""
    if not found:
        raise not_staged(slice, location)
    numbers = sorted(task for task, _ in found)
    if numbers != list(range(tasks)):
        raise StateCorruptedError(
            f"what slice {slice} of the backfill has left is not whole",
            where=shown(location),
            why=f"there are outcomes of the tasks {', '.join(map(str, numbers))}, it has the tasks 0 to {tasks - 1}",
            hint="begin the backfill anew (overwrite)",
        )
    by_task = dict(found)
    return [by_task[task] for task in range(tasks)]


def not_staged(slice: int, location: str) -> StateError:
    """For a slice that the manifest names, but that is not there."""
    return StateError(
        f"what slice {slice} of the backfill has left cannot be found",
        where=shown(location),
        why="it was removed, or staged by another executor: what Spark has staged is read on Spark alone",
        hint="resume with the executor that began the backfill, or begin it anew (overwrite)",
    )
