"""Records to archive, and a process that dies at a chosen moment of a run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from pystreams.backfill.archive.merging import Mergeable
from pystreams.backfill.sources import MemorySource
from pystreams.ids import TopicPartition
from tests.backfill.sources.files_kit import Row, in_memory

#: The tests merge from this number of files on, instead of ``merging.FILES_MIN``, because each file takes a run.
FILES_MIN = 4

ONE, OTHER = TopicPartition("lines", 0), TopicPartition("lines", 1)


def rows(count: int, *, start: int = 0, partition: TopicPartition = ONE) -> list[Row]:
    """Every third offset is a hole."""
    number = partition.partition
    return [
        (offset, 1000 + offset, b"k%d" % number, b"v%d" % offset, ((("h", b"x"),) if offset % 2 else ()))
        for offset in range(start, start + count)
        if offset % 3 != 2
    ]


def history(count: int, start: int = 0) -> MemorySource:
    return in_memory({p: rows(count, start=start, partition=p) for p in (ONE, OTHER)})


class Killed(BaseException):
    """In place of a signal."""


def die_at(
    monkeypatch: pytest.MonkeyPatch, operations: Collection[tuple[type, str]], moment: int, *, after: bool
) -> None:
    """Have the operation number ``moment`` be the last one. Operations are methods, by their classes."""
    done = 0

    def dying(operation: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            nonlocal done
            done += 1
            if done > moment or (done == moment and not after):
                raise Killed
            result = operation(*args, **kwargs)
            if done == moment:
                if hasattr(result, "close"):
                    result.close()
                raise Killed
            return result

        return run

    for owner, name in operations:
        monkeypatch.setattr(owner, name, dying(getattr(owner, name)))


def from_its_merge_on(
    monkeypatch: pytest.MonkeyPatch, table: Mergeable, owner: type, name: str, do: Any
) -> None:
    """Replace a method of a class as soon as a run has committed all its rounds, and looks what it can merge."""
    files = table.files

    def replaced_first() -> Any:
        monkeypatch.setattr(owner, name, do)
        return files()

    monkeypatch.setattr(table, "files", replaced_first)
