"""The key of a windowed aggregation."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K")


class Windowed(NamedTuple, Generic[K]):
    """A key within a window of event time, in milliseconds. ``end`` is exclusive for tumbling and hopping windows,
    inclusive for sliding and session windows."""

    key: K
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.key}@{self.start}/{self.end}"
