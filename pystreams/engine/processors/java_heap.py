"""A priority queue that takes equal elements in the order in which ``java.util.PriorityQueue`` takes them.

``heapq`` returns equal elements in another order. Where Kafka Streams uses a PriorityQueue, this order is visible in
the output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class JavaHeap(Generic[T]):
    """A binary heap ordered by ``key``. An element's key must not change while the element is in the heap."""

    __slots__ = ("_items", "_key")

    def __init__(self, key: Callable[[T], int]) -> None:
        self._items: list[T] = []
        self._key = key

    def __len__(self) -> int:
        return len(self._items)

    def peek(self) -> T:
        """The first element. Raises ``IndexError`` if there is none."""
        return self._items[0]

    def offer(self, item: T) -> None:
        items, key, at = self._items, self._key, len(self._items)
        items.append(item)
        while at > 0:
            parent = (at - 1) >> 1
            if key(item) >= key(items[parent]):
                break
            items[at] = items[parent]
            at = parent
        items[at] = item

    def poll(self) -> T:
        """Remove and return the first element. Raises ``IndexError`` if there is none."""
        items, key = self._items, self._key
        last = items.pop()
        if not items:
            return last
        first, at, size = items[0], 0, len(items)
        while at < size >> 1:
            child = 2 * at + 1
            if child + 1 < size and key(items[child]) > key(items[child + 1]):
                child += 1
            if key(last) <= key(items[child]):
                break
            items[at] = items[child]
            at = child
        items[at] = last
        return first
