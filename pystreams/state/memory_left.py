"""The content of stores in memory when their task is closed after a commit, for the next task with the same id in this
process. The content of stores on disk stays on the disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias


class StoreLeft(NamedTuple):
    """``entries`` are those of the store's table, ``marks`` those of its layer, both as of the last commit.
    ``changelog_offset`` is the offset from which to restore the rest."""

    entries: dict[Any, bytes]
    marks: Mapping[str, bytes]
    changelog_offset: int | None


#: By store.
MemoryLeft: TypeAlias = Mapping[str, StoreLeft]

NOTHING_LEFT: MemoryLeft = {}
