"""The iteration order of two Java collections: ``describe()`` shows it, and the order of stores depends on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


def string_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 units, as an unsigned 32-bit number."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for i in range(0, len(units), 2):
        value = (31 * value + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    return value


def hash_set_order(texts: Iterable[str], *, capacity: int = 16) -> list[str]:
    """The iteration order of a ``java.util.HashSet`` to which ``texts`` were added one by one.

    By bucket, then by insertion: a growing table keeps the order within a bucket. (A bucket with eight or more entries
    becomes a tree, which also keeps that order unless its root moves.)
    """
    distinct = list(dict.fromkeys(texts))
    while len(distinct) > capacity * 3 // 4:
        capacity *= 2
    return sorted(distinct, key=lambda text: _spread(string_hash(text)) & (capacity - 1))


def copied_hash_set_order(texts: Iterable[str]) -> list[str]:
    """The iteration order of ``new HashSet<>(set)``, where ``texts`` were added to ``set`` one by one.

    The copy's table may be larger than the original's (in Java 17; since Java 19 it has the same size).
    """
    original = hash_set_order(texts)
    wanted = max(int(len(original) / 0.75) + 1, 16)
    return hash_set_order(original, capacity=1 << (wanted - 1).bit_length())


def _spread(value: int) -> int:
    return value ^ (value >> 16)


class _Entry(Generic[T]):
    __slots__ = ("item", "left", "parent", "red", "right")

    def __init__(self, item: T, parent: _Entry[T] | None) -> None:
        self.item = item
        self.parent = parent
        self.left: _Entry[T] | None = None
        self.right: _Entry[T] | None = None
        self.red = True


class TreeSet(Generic[T]):
    """A ``java.util.TreeSet`` that only grows.

    It is a red-black tree instead of ``sorted``, because Kafka Streams adds nodes to such sets while their sort keys,
    the sizes, still change. The iteration order then depends on the shape of the tree at each insertion.
    """

    def __init__(self, compare: Callable[[T, T], int]) -> None:
        self._compare = compare
        self._root: _Entry[T] | None = None

    def add(self, item: T) -> None:
        """Insert ``item``, unless the search for its place meets an equal one."""
        parent: _Entry[T] | None = None
        entry, order = self._root, 0
        while entry is not None:
            parent, order = entry, self._compare(item, entry.item)
            if order == 0:
                return
            entry = entry.left if order < 0 else entry.right
        new = _Entry(item, parent)
        if parent is None:
            self._root = new
        elif order < 0:
            parent.left = new
        else:
            parent.right = new
        self._balance(new)

    def __iter__(self) -> Iterator[T]:
        stack: list[_Entry[T]] = []
        entry = self._root
        while stack or entry is not None:
            while entry is not None:
                stack.append(entry)
                entry = entry.left
            entry = stack.pop()
            yield entry.item
            entry = entry.right

    def _balance(self, entry: _Entry[T]) -> None:
        while (parent := entry.parent) is not None and parent.red:
            grandparent = parent.parent
            assert grandparent is not None  # the root is black
            on_left = parent is grandparent.left
            uncle = grandparent.right if on_left else grandparent.left
            if uncle is not None and uncle.red:
                parent.red = uncle.red = False
                grandparent.red = True
                entry = grandparent
                continue
            if entry is (parent.right if on_left else parent.left):
                self._rotate(parent, left=on_left)
                parent = entry
            parent.red = False
            grandparent.red = True
            self._rotate(grandparent, left=not on_left)
            break
        assert self._root is not None
        self._root.red = False

    def _rotate(self, entry: _Entry[T], *, left: bool) -> None:
        """Rotate so that a child of ``entry`` takes its place: the right child if ``left``, else the left one."""
        child = entry.right if left else entry.left
        assert child is not None
        inner = child.left if left else child.right
        if left:
            entry.right, child.left = inner, entry
        else:
            entry.left, child.right = inner, entry
        if inner is not None:
            inner.parent = entry
        parent = child.parent = entry.parent
        entry.parent = child
        if parent is None:
            self._root = child
        elif parent.left is entry:
            parent.left = child
        else:
            parent.right = child
