"""The merge of several steps that write to one store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pystreams.topology.nodes import Operation


@dataclass(eq=False, slots=True)
class TablePassThrough(Operation):
    """Forwards changes unchanged: the merge of a cogroup's aggregations. Source: KTablePassThrough."""

    emits_changes: ClassVar[bool] = True
    store: str
