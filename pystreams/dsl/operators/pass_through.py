"""The table that several steps with one store write to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pystreams.topology.nodes import Operation


@dataclass(eq=False, slots=True)
class TablePassThrough(Operation):
    """Forwards changes as they are: the merge of a cogroup's aggregations. Source: KTablePassThrough."""

    emits_changes: ClassVar[bool] = True
    store: str
